"""A small real door with engines behind it: speaks the door protocol of docs/wire.md, misbehaves on request."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field


@dataclass
class Engine:
    """How replica `id` behaves; tests change it while it runs."""

    chunks: int = 5
    gap_s: float = 0.0
    mode: str = "ok"  # ok, unknown, unreachable, error, busy, leaving, busy_event, dead_event, cut, mute, stall, token
    flood_kib: int = 0
    open: int = 0
    aborted: int = 0
    calls: list[dict] = field(default_factory=list)
    heads: list[dict[str, str]] = field(default_factory=list)


class Door:
    """Runs in a thread of its own on 127.0.0.1; `engines` by replica id."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.engines: dict[int, Engine] = {}
        self.loop = asyncio.new_event_loop()
        self.port = 0
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._started.wait(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._listen())
        self._started.set()
        self.loop.run_forever()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self.loop), return_exceptions=True))
        self.loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await self._answer(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.decode().strip().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        _, _, replica, path = first.split(" ")[1].split("/", 3)
        engine = self.engines.get(int(replica))
        if headers.get("authorization") != f"bearer {self.token}".lower() or (engine and engine.mode == "token"):
            return whole(writer, 401, {"error": {"code": "unauthorized"}})
        if engine is None or engine.mode == "unknown":
            return whole(writer, 404, {"error": {"code": "unknown_replica"}})
        if engine.mode == "unreachable":
            return whole(writer, 502, {"error": {"code": "engine_unreachable"}})
        if path == "health":
            return whole(writer, 200, {})
        engine.heads.append(headers)
        engine.calls.append(json.loads(body))
        engine.open += 1
        try:
            await Turn(engine, reader, writer, json.loads(body), "chat" in path).run()
        finally:
            engine.open -= 1
        return None


def whole(writer: asyncio.StreamWriter, status: int, content: object) -> None:
    body = json.dumps(content).encode()
    writer.write(b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body)))
    writer.write(body)


ERRORS = {
    "error": (500, "something odd", "InternalServerError"),
    "busy": (503, "The engine is currently busy and cannot accept new requests.", "Service Unavailable"),
    "leaving": (500, "cannot schedule new futures after shutdown", "InternalServerError"),
}


@dataclass
class Turn:
    engine: Engine
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    call: dict
    chat: bool

    async def run(self) -> None:
        mode = self.engine.mode
        if mode in ERRORS:
            status, message, kind = ERRORS[mode]
            whole(self.writer, status, {"error": {"message": message, "type": kind, "param": None, "code": status}})
        elif mode == "mute":  # as an engine killed with its clients left hanging
            await self._until_hangup(3600)
        elif self.call.get("stream"):
            await self._stream()
        elif await self._until_hangup(self.engine.gap_s * self.engine.chunks):
            whole(self.writer, 200, self._plain())

    async def _until_hangup(self, limit_s: float) -> bool:
        """True when the caller stayed for `limit_s`."""
        if not limit_s:
            return True
        try:
            async with asyncio.timeout(limit_s):
                await self.reader.read(1)
        except TimeoutError:
            return True
        self.engine.aborted += 1
        raise ConnectionResetError

    def _usage(self) -> dict[str, int]:
        return {"prompt_tokens": 7, "total_tokens": 7 + self.engine.chunks, "completion_tokens": self.engine.chunks}

    def _plain(self) -> dict:
        text = " ".join(f"word{n}" for n in range(self.engine.chunks))
        choice = {"index": 0, "finish_reason": "stop", "logprobs": None}
        choice |= {"message": {"role": "assistant", "content": text}} if self.chat else {"text": text}
        kind = "chat.completion" if self.chat else "text_completion"
        return {
            "id": "x",
            "object": kind,
            "created": 1,
            "model": self.call["model"],
            "choices": [choice],
            "usage": self._usage(),
        }

    async def _stream(self) -> None:
        engine = self.engine
        self.writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        if engine.mode in ("busy_event", "dead_event"):
            code, text = (503, "busy") if engine.mode == "busy_event" else (500, "EngineCore encountered an issue.")
            self._event({"error": {"message": text, "type": "X", "param": None, "code": code}})
        else:
            for n in range(engine.chunks):
                self._event(self._chunk(f"word{n} " + "x" * engine.flood_kib * 1024))
                await self.writer.drain()
                await self._until_hangup(engine.gap_s)
            if engine.mode == "cut":
                self.writer.write(b"100\r\ndata: {half")
                self.writer.transport.abort()
                raise ConnectionResetError
            if engine.mode == "stall":
                await self._until_hangup(3600)
            if (self.call.get("stream_options") or {}).get("include_usage"):
                self._event({"id": "x", "object": "chunk", "model": "m", "choices": [], "usage": self._usage()})
        self._raw(b"data: [DONE]\n\n")
        self.writer.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> dict:
        choice = {"index": 0, "logprobs": None, "finish_reason": None}
        choice |= {"delta": {"content": text}} if self.chat else {"text": text}
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {"id": "x", "object": kind, "created": 1, "model": self.call["model"], "choices": [choice]}

    def _event(self, content: object) -> None:
        self._raw(b"data: " + json.dumps(content).encode() + b"\n\n")

    def _raw(self, data: bytes) -> None:
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))

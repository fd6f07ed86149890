"""Token counts of answers, without rebuilding them: bytes pass as they come, only the usage chunk is looked at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import msgspec

DONE = b"data: [DONE]\n\n"
EVENT_LIMIT = 2**20  # bytes of one event; a longer one passes unread
_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_BYTES_PER_TOKEN = 4  # rough, for what no engine counted; such records are marked


class Counted(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class EngineError(msgspec.Struct):
    message: str = ""
    code: int | str | None = None


class Event(msgspec.Struct):
    """What matters of a chunk, or of a whole plain answer."""

    choices: list[msgspec.Raw] = []
    usage: Counted | None = None
    error: EngineError | str | None = None


def read_event(data: bytes) -> Event | None:
    """A JSON answer or the JSON of one event; None when it is neither."""
    try:
        return msgspec.json.decode(data, type=Event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def data_of(event: bytes) -> bytes:
    """The data lines of one SSE event, joined; empty for comments."""
    lines = event.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"\n".join(line[5:].strip() for line in lines if line.startswith(b"data:"))


def prompt_estimate(body_bytes: int) -> int:
    return max(1, body_bytes // _BYTES_PER_TOKEN)


@dataclass(slots=True)
class Stream:
    """Whole events in, whole events out: an answer cut in the middle of one still ends in good order.

    `usage_asked` leaves the usage chunk in; else it is removed, since the gateway asked for it, not the caller.
    """

    usage_asked: bool
    counted: Counted | None = None
    chunks: int = 0  # events with content, [DONE] apart
    done: bool = False
    error: EngineError | str | None = None
    _rest: bytes = field(default=b"", repr=False)

    def feed(self, data: bytes) -> bytes:
        """Bytes to pass on now."""
        plain = not data.startswith(b":") and b"\n\n:" not in data  # comments are no chunks
        if not self._rest and plain and data.endswith(b"\n\n") and b'"usage"' not in data and b'"error"' not in data:
            ended = data.endswith(DONE)
            self.chunks += data.count(b"\n\n") - ended
            self.done = self.done or ended
            return data
        return self._slowly(self._rest + data if self._rest else data)

    def _slowly(self, data: bytes) -> bytes:
        passed: list[bytes] = []
        start = 0
        for end in _END.finditer(data):
            event = data[start : end.end()]
            start = end.end()
            if self._keep(event):
                passed.append(event)
        self._rest = data[start:]
        if len(self._rest) > EVENT_LIMIT:
            passed.append(self._rest)
            self._rest = b""
        return b"".join(passed)

    def _keep(self, raw: bytes) -> bool:
        data = data_of(raw)
        if not data:
            return True
        if data == b"[DONE]":
            self.done = True
            return True
        self.chunks += 1
        if b'"usage"' not in data and b'"error"' not in data:
            return True
        event = read_event(data)
        if event is None:
            return True
        self.error = event.error or self.error
        if event.usage is None:
            return True
        self.counted = event.usage
        if event.choices:
            return True
        self.chunks -= 1
        return self.usage_asked

"""What a held stream is told while its model loads: comment lines for all, readable deltas for who opted in."""

from __future__ import annotations

import time

import msgspec

from console.gateway.call import Call
from console.gateway.limits import Limits
from console.gateway.reply import Reply
from console.gateway.routes import Service

STAGES = {
    "queued": ("排队等待", "queued"),
    "room": ("腾出显存", "making room"),
    "weights": ("读取权重", "reading weights"),
    "warmup": ("预热引擎", "warming up"),
    "retrying": ("重试实例", "retrying"),  # routed, but none answered this call
    "turn": ("等待轮到", "waiting for its turn"),  # ready, and as busy as it may be
    "waking": ("从休眠唤醒", "waking"),
}


class Progress:
    """A line at once and at each new stage or first estimate, else every `line_every_s`.

    Words when stage or position changed, else at most every `told_every_s`.
    """

    def __init__(self, call: Call, reply: Reply, limits: Limits) -> None:
        self._call, self._reply, self._limits = call, reply, limits
        self._line_at = self._words_at = float("-inf")
        self._told: tuple[str, int] | None = None
        self._line: tuple[str, bool] | None = None

    def next_s(self) -> float:
        """Seconds until the next line is due."""
        return max(0.0, self._line_at + self._limits.line_every_s - time.monotonic())

    async def tell(self, service: Service, stage: str, eta_s: float | None, position: int) -> None:
        now = time.monotonic()
        parts: list[bytes] = []
        line = (stage, eta_s is not None)
        if line != self._line or now >= self._line_at + self._limits.line_every_s:
            parts.append(comment(stage, eta_s, position))
            self._line, self._line_at = line, now
        changed = self._told != (stage, position)
        if self._call.progress_content and (changed or now >= self._words_at + self._limits.told_every_s):
            parts.append(self._delta(words(service.label, stage, eta_s, position, self._reply.english)))
            self._told, self._words_at = (stage, position), now
        if parts:
            if not self._reply.opened:
                await self._reply.open_stream()
            await self._reply.write(b"".join(parts))

    def _delta(self, text: str) -> bytes:
        """One chunk of the endpoint's own shape, so that a stock client shows it as text."""
        chat = self._call.path.endswith("/chat/completions")
        choice = {"delta": {"role": "assistant", "content": text}} if chat else {"text": text}
        chunk = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{self._call.id}",
            "object": "chat.completion.chunk" if chat else "text_completion",
            "created": int(self._call.started),
            "model": self._call.service,
            "choices": [{"index": 0, **choice, "logprobs": None, "finish_reason": None}],
        }
        return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


def comment(stage: str, eta_s: float | None, position: int) -> bytes:
    """Invisible to stock clients. An unknown estimate is left out, never zero."""
    eta = "" if eta_s is None else f" eta_s={eta_s:.0f}"
    return f": gongka loading stage={stage}{eta} position={position}\n\n".encode()


def words(label: str, stage: str, eta_s: float | None, position: int, english: bool) -> str:
    zh, en = STAGES.get(stage, (stage, stage))
    if stage == "turn":
        return f"[{label} is busy: position {position}]\n" if english else f"【{label}正忙：排在第 {position} 位】\n"
    if english:
        eta = "" if eta_s is None else f", about {eta_s:.0f} s to go"
        return f"[{label} is loading: {en}{eta}, position {position}]\n"
    eta = "" if eta_s is None else f"，预计还需 {eta_s:.0f} 秒"
    return f"【{label}正在加载：{zh}{eta}，排在第 {position} 位】\n"

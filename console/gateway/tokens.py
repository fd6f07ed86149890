"""How long a call is, in tokens, without a tokenizer: by its bytes, at the rate its service's engines have shown.

An estimate is marked as one. Exact are a prompt given as token ids, and what `max_tokens` says of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from console.gateway.body import Body
from console.gateway.limits import Limits

#: Members of a request that engines read as text, by the last word of its path.
TEXT = {"completions": ("prompt", "suffix"), "chat/completions": ("messages", "tools")}
_ATTACHED = re.compile(rb'"(?:image_url|input_audio|video_url|image)"')
#: A prompt of token ids, alone or several of them.
_IDS = re.compile(rb"\s*\[\s*(\[\s*)?\d")
#: Six bytes of an escape stand for three of UTF-8, of one below U+0100 for two.
_ESCAPED, _ESCAPED_LOW, _SPARED = rb"\u", rb"\u00", 3
_LOOK_BYTES = 1024  # of the beginning and of the middle: how much of a long text is escaped
MOST_BYTES, LEAST_BYTES = 16.0, 0.5  # a token, whatever an engine counts
TOO_SHORT_BYTES = 256  # of a prompt: what the engine's template adds would count too much
KEEP, NEW = 0.9, 0.1  # weights of what is known and of one more answer


class _Part(msgspec.Struct):
    type: str = "text"
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None


@dataclass(frozen=True, slots=True)
class Prompt:
    """What of a request is its prompt: token ids, or bytes of text, and things attached."""

    ids: int | None
    text_bytes: int
    attached: int = 0


@dataclass(frozen=True, slots=True)
class Size:
    """Tokens of one call. `answer`: the most it may be, None where the caller set no bound; `expected`: for room."""

    source: Prompt
    prompt: int
    answer: int | None
    expected: int
    exact: bool

    @property
    def total(self) -> int:
        """The least that the call may come to by what is known of it."""
        return self.prompt + (self.answer or 0)

    @property
    def room(self) -> int:
        """Tokens of KV it is expected to hold in its engine."""
        return self.prompt + self.expected


def prompt_of(body: Body, path: str) -> Prompt:
    """Never refuses: what cannot be read is for the engine to judge."""
    names = TEXT.get(path.removeprefix("/v1/"), ())
    read = {name: raw for name in names if (raw := body.value(name)) is not None}
    values, prompt, messages = read.values(), read.get("prompt"), read.get("messages")
    if prompt is not None and _IDS.match(prompt):
        return Prompt(prompt.count(b",") + 1, sum(map(len, values)) - len(prompt))
    attached = 0
    size = sum(map(_utf8_bytes, values))
    if messages is not None and _ATTACHED.search(messages):
        try:
            parts = msgspec.json.decode(messages, type=list[_Message])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Prompt(None, size)
        text, attached = _text_and_attached(parts)
        size += text - _utf8_bytes(messages)
    return Prompt(None, size, attached)


def _utf8_bytes(raw: bytes) -> int:
    """Of JSON, were nothing in it escaped. Of a long text a sample is looked at: every call passes here."""
    whole, middle = len(raw), len(raw) // 2
    seen = raw if whole <= 4 * _LOOK_BYTES else raw[:_LOOK_BYTES] + raw[middle : middle + _LOOK_BYTES]
    spared = _SPARED * seen.count(_ESCAPED) + seen.count(_ESCAPED_LOW)
    return whole - spared * whole // max(1, len(seen))


def _text_and_attached(messages: list[_Message]) -> tuple[int, int]:
    """(bytes of text, things that are none)."""
    size = attached = 0
    for message in messages:
        content = message.content
        if isinstance(content, str):
            size += len(content.encode())
            continue
        for part in content or []:
            size += len(part.text.encode())
            attached += part.type not in ("text", "input_text", "refusal")
    return size, attached


@dataclass(slots=True)
class _Known:
    """Of one service: bytes a token of its prompts, tokens an answer."""

    bytes_per_token: float
    answer: float


class Sizes:
    """Sizes calls, and learns from every answer whose engine counted it. In memory: a new process begins anew."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._known: dict[str, _Known] = {}

    def of(self, service: str, body: Body, path: str) -> Size:
        """Of a call as it came, before anything is done with it."""
        prompt, known = prompt_of(body, path), self._of(service)
        counted = prompt.ids if prompt.ids is not None else 0
        estimated = round(max(0, prompt.text_bytes) / known.bytes_per_token)
        answer = body.max_tokens
        expected = round(known.answer) if answer is None else min(answer, round(known.answer))
        total = max(1, counted + estimated + prompt.attached * self._limits.attached_tokens)
        return Size(prompt, total, answer, max(1, expected), prompt.ids is not None and not prompt.attached)

    def learn(self, service: str, prompt: Prompt, prompt_tokens: int, answer_tokens: int) -> None:
        """One answer's own figures, of a call that was sized before."""
        known = self._of(service)
        known.answer = KEEP * known.answer + NEW * answer_tokens
        if prompt.ids is None and not prompt.attached and prompt.text_bytes >= TOO_SHORT_BYTES and prompt_tokens > 0:
            rate = min(MOST_BYTES, max(LEAST_BYTES, prompt.text_bytes / prompt_tokens))
            known.bytes_per_token = KEEP * known.bytes_per_token + NEW * rate

    def _of(self, service: str) -> _Known:
        found = self._known.get(service)
        if found is None:
            first = _Known(float(self._limits.bytes_per_token), float(self._limits.answer_tokens))
            found = self._known[service] = first
        return found

"""A caller's JSON body: read once, and only `model` and the usage option replaced; every other value's bytes stay."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from console.gateway.errors import bad_request


@dataclass(frozen=True, slots=True)
class Body:
    raw: bytes = field(repr=False)
    model: str
    stream: bool
    usage_asked: bool  # the caller wants the usage chunk of its stream
    max_tokens: int | None  # of the answer; None: the caller sets no bound
    _values: dict[str, msgspec.Raw] = field(repr=False)

    def value(self, name: str) -> bytes | None:
        """The bytes of one member as they came; None where it is absent."""
        raw = self._values.get(name)
        return None if raw is None else bytes(raw)

    def upstream(self, engine_model: str) -> bytes:
        """The bytes for the engine: its own name for the model, and usage asked for in streams."""
        changed: dict[str, bytes] = {}
        if engine_model != self.model:
            changed["model"] = msgspec.json.encode(engine_model)
        if self.stream and not self.usage_asked:
            changed["stream_options"] = self._options()
        if not changed:
            return self.raw
        values = {name: bytes(raw) for name, raw in self._values.items()} | changed
        return b"{" + b",".join(msgspec.json.encode(name) + b":" + value for name, value in values.items()) + b"}"

    def _options(self) -> bytes:
        old = self._values.get("stream_options")
        options = msgspec.json.decode(old, type=dict[str, object] | None) if old is not None else None
        # Without the caller's own include_usage the engine would have ignored continuous usage: so it must stay off.
        kept = {name: value for name, value in (options or {}).items() if name != "continuous_usage_stats"}
        return msgspec.json.encode({**kept, "include_usage": True})


class Options(msgspec.Struct):
    include_usage: bool | None = None


class Head(msgspec.Struct):
    """The fields the gateway acts on; the engine judges the rest."""

    model: str
    stream: bool | None = None
    stream_options: Options | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None  # its newer name


def parse(raw: bytes) -> Body:
    """Raises `Refused` (400) when it is no JSON object or a field the gateway acts on has the wrong type."""
    try:
        head = msgspec.json.decode(raw, type=Head)
        values = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError as error:
        # The text names fields and types only, never what the caller wrote.
        raise bad_request(f"请求体字段有误：{error}", f"Invalid request: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("请求体不是合法的 JSON。", "The body is not valid JSON.") from None
    options = head.stream_options
    most = head.max_completion_tokens if head.max_completion_tokens is not None else head.max_tokens
    return Body(raw, head.model, bool(head.stream), bool(options and options.include_usage), most, values)

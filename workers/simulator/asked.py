"""Reading a request's body: what was asked, or the very error that vLLM answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from workers.simulator import shapes
from workers.simulator.flags import Flags
from workers.simulator.http1 import Request
from workers.simulator.words import count_tokens, natural_length, seed_of

TEMPLATE_TOKENS = 3  # a chat template adds these once, and MESSAGE_TOKENS for each message
MESSAGE_TOKENS = 4


class Refused(Exception):
    """The request is answered with this status and body, and nothing else happens."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request. `limit`: tokens at most; `natural`: where its answer ends by itself."""

    text: str
    prompt_tokens: int
    limit: int
    natural: int
    stream: bool
    include_usage: bool
    continuous_usage: bool


def read_json(request: Request) -> dict[str, Any]:
    """The body as an object. Raises Refused."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        text = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        raise Refused(400, shapes.error(text, "Bad Request", 400))
    try:
        body = json.loads(request.body)
    except json.JSONDecodeError as error:
        context = f", 'ctx': {{'error': '{error.msg}'}}"
        where = f"body.{error.pos}"
        answer = shapes.validation("json_invalid", where, "JSON decode error", "<dict of 0 items>", context)
        raise Refused(400, answer) from None
    except UnicodeDecodeError:
        answer = shapes.error("There was an error parsing the body", "Bad Request", 400)
        raise Refused(400, answer) from None
    if not isinstance(body, dict):
        text = "Input should be a valid dictionary"
        raise Refused(400, shapes.validation("dict_type", "body", text, f"<{type(body).__name__}>"))
    return body


def check_model(body: dict[str, Any], flags: Flags) -> None:
    """A missing model is the served one. Raises Refused."""
    model = body.get("model")
    if model not in (None, "", flags.served_name):
        text = f"The model `{model}` does not exist. Valid aliases: {flags.served_name}."
        raise Refused(404, shapes.error(text, "NotFoundError", 404, "model"))


def chat_text(body: dict[str, Any]) -> tuple[str, int]:
    """All messages' text, and their tokens with the template's. Raises Refused."""
    messages = _needed(body, "messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        text = shapes.validation("list_type", "body.messages", "Input should be a valid list", "<not a list>")
        raise Refused(400, text)
    texts = [_content(message.get("content")) for message in messages]
    tokens = sum(count_tokens(text) for text in texts) + MESSAGE_TOKENS * len(texts) + TEMPLATE_TOKENS
    return "\n".join(texts), tokens


def _content(content: Any) -> str:
    """A message's content: a string, or parts of which the texts count."""
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def prompt_text(body: dict[str, Any], name: str = "prompt") -> tuple[str, int]:
    """A plain prompt: a string, a list of one string, or token ids. Raises Refused."""
    prompt = _needed(body, name)
    if isinstance(prompt, list) and prompt and all(isinstance(one, int) for one in prompt):
        return " ".join(map(str, prompt)), len(prompt)
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        text = shapes.validation("string_type", f"body.{name}", "Input should be a valid string", "<not a string>")
        raise Refused(400, text)
    return prompt, count_tokens(prompt)


def _needed(body: dict[str, Any], name: str) -> Any:
    if name not in body:
        entry = f"<dict of {len(body)} items>"
        raise Refused(400, shapes.validation("missing", f"body.{name}", "Field required", entry))
    return body[name]


def asked(body: dict[str, Any], text: str, prompt_tokens: int, flags: Flags) -> Asked:
    """The rest of a generation request. Raises Refused."""
    _check_sampling(body)
    stream = bool(body.get("stream"))
    options = body.get("stream_options") or {}
    if options and not stream:
        text_ = "Stream options can only be defined when `stream=True`."
        raise Refused(400, shapes.error(text_, "BadRequestError", 400, "stream_options"))
    wanted = body.get("max_completion_tokens", body.get("max_tokens"))
    limit = _limit(wanted, prompt_tokens, flags.max_model_len)
    natural = max(natural_length(seed_of(text)), int(body.get("min_tokens") or 0))
    return Asked(
        text=text,
        prompt_tokens=prompt_tokens,
        limit=limit,
        natural=limit + 1 if body.get("ignore_eos") else natural,
        stream=stream,
        include_usage=bool(options.get("include_usage")) or (stream and flags.force_usage),
        continuous_usage=bool(options.get("continuous_usage_stats")),
    )


def _check_sampling(body: dict[str, Any]) -> None:
    temperature = body.get("temperature")
    if isinstance(temperature, int | float) and temperature < 0:
        text = f"temperature must be non-negative, got {float(temperature)}."
        raise Refused(400, _bad_parameter(text, "temperature", float(temperature)))
    if body.get("n") not in (None, 1):
        raise Refused(400, _bad_parameter("the simulated engine gives one answer.", "n", body["n"]))


def _limit(wanted: Any, prompt_tokens: int, max_model_len: int) -> int:
    """Tokens the answer may have at most. Raises Refused."""
    if wanted is not None and (not isinstance(wanted, int) or wanted < 1):
        raise Refused(400, _bad_parameter(f"max_tokens must be at least 1, got {wanted}.", "max_tokens", wanted))
    if wanted is not None and wanted > max_model_len:
        text = f"max_tokens={wanted} cannot be greater than max_model_len={max_model_len}. "
        text += "Please request fewer output tokens."
        raise Refused(400, _bad_parameter(text, "max_tokens", wanted))
    check_length(prompt_tokens, max_model_len)
    rest = max_model_len - prompt_tokens
    if (wanted or 1) > rest:
        text = (
            f"This model's maximum context length is {max_model_len} tokens. However, you requested {wanted or 1} "
            f"output tokens and your prompt contains at least {prompt_tokens} input tokens, for a total of at least "
            f"{prompt_tokens + (wanted or 1)} tokens. Please reduce the length of the input prompt or the number of "
            "requested output tokens."
        )
        raise Refused(400, _bad_parameter(text, "input_tokens", prompt_tokens))
    return wanted or rest


def check_length(prompt_tokens: int, max_model_len: int) -> None:
    """Raises Refused; the count in the text is cut off just over the limit, as vLLM's is."""
    if prompt_tokens > max_model_len:
        text = (
            f"This model's maximum context length is {max_model_len} tokens. However, your prompt contains at least "
            f"{max_model_len + 1} input tokens, which exceeds this limit even without any output tokens. Please reduce "
            "the length of the input prompt."
        )
        raise Refused(400, _bad_parameter(text, "input_tokens", max_model_len + 1))


def _bad_parameter(text: str, name: str, value: Any) -> bytes:
    return shapes.error(f"{text} (parameter={name}, value={value})", "BadRequestError", 400, name)

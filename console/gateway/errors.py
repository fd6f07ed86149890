"""What the gateway itself refuses: OpenAI's error object, in the caller's language."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.utils.timezone import get_default_timezone

TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_error",
}


class Refused(Exception):
    """A call that gets an error of ours. `code` is stable, the words are not."""

    def __init__(
        self,
        status: int,
        code: str,
        zh: str,
        en: str,
        *,
        param: str | None = None,
        retry_after_s: float | None = None,
        eta_s: float | None = None,
        outcome: str = "refused",
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(code)
        self.status, self.code, self.zh, self.en = status, code, zh, en
        self.param, self.retry_after_s, self.eta_s, self.outcome = param, retry_after_s, eta_s, outcome
        self.more = more or {}

    def body(self, english: bool) -> bytes:
        error: dict[str, Any] = {
            "message": self.en if english else self.zh,
            "type": TYPES.get(self.status, "server_error"),
            "param": self.param,
            "code": self.code,
        }
        if self.eta_s is not None:
            error["eta_s"] = round(self.eta_s, 1)
        return msgspec.json.encode({"error": {**error, **self.more}})

    def headers(self) -> list[tuple[bytes, bytes]]:
        if self.retry_after_s is None:
            return []
        return [(b"retry-after", b"%d" % max(1, math.ceil(self.retry_after_s)))]


def speaks_english(accept_language: bytes) -> bool:
    """Chinese unless English is asked for first."""
    first = accept_language.split(b",", 1)[0].split(b";", 1)[0].strip().lower()
    return first == b"en" or first.startswith(b"en-")


def invalid_key() -> Refused:
    return Refused(
        401, "invalid_api_key", "API Key 无效、已过期或已吊销。", "The API key is invalid, expired or revoked."
    )


def model_not_found(name: str) -> Refused:
    """The same for what does not exist and for what the key may not call."""
    shown = name[:80]
    return Refused(
        404,
        "model_not_found",
        f"服务“{shown}”不存在，或这个 Key 无权调用。",
        f"The model `{shown}` does not exist or you do not have access to it.",
        param="model",
    )


def bad_request(zh: str, en: str, param: str | None = None) -> Refused:
    return Refused(400, "invalid_request", zh, en, param=param)


def too_large(limit_mib: int) -> Refused:
    return Refused(
        413, "request_too_large", f"请求体超过 {limit_mib} MiB。", f"The body is larger than {limit_mib} MiB."
    )


def not_found(path: str) -> Refused:
    return Refused(404, "not_found", f"没有这个地址：{path[:80]}", f"No such path: {path[:80]}")


def wrong_method() -> Refused:
    return Refused(405, "method_not_allowed", "这个地址不支持该方法。", "This path does not take that method.")


def starting_up() -> Refused:
    return Refused(
        503, "starting", "网关正在启动，请稍后重试。", "The gateway is starting; try again soon.", retry_after_s=1
    )


def wrong_task(name: str, task: str) -> Refused:
    return Refused(
        400,
        "wrong_task",
        f"服务“{name}”的用途是 {task}，不支持这个接口。",
        f"The model `{name}` serves {task}; it does not take this path.",
        param="model",
    )


def budget_exceeded(resets_at: float, left_s: float) -> Refused:
    """A spent call budget, with the instant at which calls are taken again, in site time."""
    instant = datetime.fromtimestamp(resets_at, get_default_timezone())
    return Refused(
        429,
        "budget_exceeded",
        f"本月调用预算已用完，{instant:%Y-%m-%d %H:%M:%S %z} 起恢复。",
        f"The call budget of this month is spent; calls are taken again from {instant:%Y-%m-%d %H:%M:%S %z}.",
        retry_after_s=left_s,
    )


def model_loading(label: str, eta_s: float | None, retry_after_s: float) -> Refused:
    zh = f"模型“{label}”正在加载" + ("。" if eta_s is None else f"，预计还需 {eta_s:.0f} 秒。")
    en = f"The model `{label}` is loading" + ("." if eta_s is None else f", about {eta_s:.0f} s to go.")
    return Refused(
        503,
        "model_loading",
        zh + "加载会继续，请稍后重试。",
        en + " Loading goes on; retry later.",
        eta_s=eta_s,
        retry_after_s=retry_after_s,
    )


def unreachable(label: str) -> Refused:
    return Refused(
        503,
        "unreachable",
        f"模型“{label}”的实例暂时无法访问，请稍后重试。",
        f"No replica of the model `{label}` can be reached now; retry later.",
        retry_after_s=1,
        outcome="failed",
    )


def too_many_held(retry_after_s: float) -> Refused:
    return Refused(
        429,
        "too_many_waiting",
        "等待这个模型的请求过多，请稍后重试。",
        "Too many requests are waiting for this model; retry later.",
        retry_after_s=retry_after_s,
    )


_WHY_BATCH = {
    "day": ("现在不是批处理时段，并发受限", "it is outside the batch window"),
    "neighbour": ("同卡的在线业务变慢，批处理让路", "an online service on the same card is slower"),
    "pressure": ("所在的卡显存将满，暂停接收批处理", "its card is nearly full"),
}


def no_turn(label: str, bound: str, why: str, retry_after_s: float) -> Refused:
    """Ready, and as busy as it may be for as long as this call would wait."""
    if bound == "batch":
        zh, en = _WHY_BATCH.get(why, ("批处理并发受限", "batch calls are limited"))
        text = (f"“{label}”：{zh}，请稍后重试。", f"`{label}`: {en}; batch calls are limited, retry later.")
        return Refused(429, "batch_limited", *text, retry_after_s=retry_after_s, more={"reason": why})
    return Refused(
        429,
        "engine_full",
        f"模型“{label}”的 KV 显存正被在途请求用满，请稍后重试。",
        f"The KV memory of the model `{label}` is taken by calls in flight; retry later.",
        retry_after_s=retry_after_s,
    )


def over_capacity(label: str, retry_after_s: float | None) -> Refused:
    """More than its copies, and those that come, can serve in time. Told before it is let in: nothing is dropped."""
    return Refused(
        429,
        "over_capacity",
        f"模型“{label}”的请求超过了现有实例能及时处理的数量，请稍后重试。",
        f"There are more requests for the model `{label}` than its replicas can serve in time; retry later.",
        retry_after_s=retry_after_s,
    )


def too_long(what: str, tokens: int, limit: int, exact: bool, param: str | None) -> Refused:
    """`what` is over its service's limit: prompt, or prompt and answer together."""
    zh = {"prompt": "提示词", "total": "提示词加回答"}[what]
    en = {"prompt": "The prompt", "total": "Prompt and answer together"}[what]
    about_zh, about_en = ("", "") if exact else ("约", "about ")
    return Refused(
        400,
        "context_length_exceeded",
        f"{zh}{about_zh}有 {tokens} 个 token，这个服务至多接受 {limit} 个。",
        f"{en} come to {about_en}{tokens} tokens; this model takes at most {limit}.",
        param=param,
        more={"tokens": tokens, "limit": limit, "estimated": not exact},
    )


def drained() -> Refused:
    return Refused(
        502,
        "drained",
        "模型实例已停止服务，回答未完成，请重试。",
        "The replica stopped serving before the answer was complete; please retry.",
        retry_after_s=1,
        outcome="cut",
    )


def stalled() -> Refused:
    return Refused(
        504,
        "stalled",
        "模型长时间没有输出，请求已结束，请重试。",
        "The model has been silent for too long; the request was ended.",
        retry_after_s=1,
        outcome="failed",
    )


def stopping() -> Refused:
    return Refused(
        503,
        "stopping",
        "网关正在停机，请重试。",
        "The gateway is stopping; please retry.",
        retry_after_s=1,
        outcome="cut",
    )


def internal() -> Refused:
    return Refused(500, "internal_error", "网关内部错误。", "Internal error of the gateway.", outcome="failed")

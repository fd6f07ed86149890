"""Refusals in words, for callers: what is missing, by how much, and when to come back."""

from __future__ import annotations

from typing import Any

from scheduler.decision import Code, Refusal

RETRY_S = 30  # where the refusal itself does not know when to come back

_TEXTS: dict[Code, tuple[str, str]] = {
    Code.NO_CAPACITY: ("显存不足，没有可以让出的实例", "no card has room and nothing may be moved"),
    Code.SHORT_OF_MEMORY: ("显存不足，最接近的卡差 {short_mib} MiB", "the nearest card is short of {short_mib} MiB"),
    Code.ANTI_SWAP: ("刚刚换入过，{retry_after_s} 秒后再试", "swapped a moment ago; try again in {retry_after_s} s"),
    Code.LOAD_FAILED: (
        "模型装载失败，{retry_after_s} 秒后自动再试",
        "loading failed; tried again in {retry_after_s} s",
    ),
    Code.QUOTA_EXCEEDED: (
        "超出公司在资源池 {pool} 的配额：已占 {holds_mib} MiB，还要 {asked_mib} MiB，保证 {guaranteed_mib}、可借"
        " {borrowable_mib} MiB，保证或可借再多 {needed_mib} MiB 才够",
        "over the company's quota in pool {pool}: {holds_mib} MiB held, {asked_mib} MiB asked, {guaranteed_mib}"
        " guaranteed and {borrowable_mib} MiB borrowable; it takes {needed_mib} MiB more of either",
    ),
    Code.FROZEN: ("多台主机同时失联，调度已冻结", "several hosts fell silent at once; scheduling is frozen"),
    Code.HOST_LOST: ("主机失联", "the host is lost"),
    Code.TWO_HOSTS: ("主备不能在同一台主机", "primary and standby may not share a host"),
    Code.REPLICA_LIMIT: ("卡上实例数已满", "the cards are at their replica limit"),
    Code.CONTEXT_TOO_LONG: ("显存放不下一个最长请求", "one request of full length does not fit"),
    Code.UNDER_PRESSURE: ("卡有显存压力，暂不接新实例", "the cards are under memory pressure and take nobody new"),
    Code.ELASTIC: ("资源池要按页增减 KV，暂不可用", "the pool needs KV pages on demand, which are not available"),
    Code.OUTSIDE_WINDOW: (
        "现在不是它的批处理时段，{retry_after_s} 秒后再试",
        "it is outside its batch hours; try again in {retry_after_s} s",
    ),
    Code.MAX_REPLICAS: ("已到最大实例数", "at the maximum number of replicas"),
}
_OTHER = ("没有符合条件的卡", "no card qualifies")

#: What a caller's program sees: few codes, each with one meaning.
_CALLER_CODES = {
    Code.LOAD_FAILED: "load_failed",
    Code.QUOTA_EXCEEDED: "quota_exceeded",
    Code.OUTSIDE_WINDOW: "batch_limited",
}

_ADVICE = {
    "not_managed": ("该资源池只观察，不调度", "this pool is only observed, nothing is moved"),
    "awaiting_approval": ("等待运维批准", "waits for an operator's approval"),
}


class _Known(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


def refusal(why: Refusal | None) -> dict[str, Any] | None:
    """The routes blob's refusal; None for none and for those that pass by themselves."""
    if why is None or why.passing:
        return None
    retry_after_s = int(why.numbers.get("retry_after_s", RETRY_S))
    numbers = _Known(why.numbers, retry_after_s=retry_after_s)
    zh, en = _TEXTS.get(why.code, _OTHER)
    return {
        "code": _CALLER_CODES.get(why.code, "no_capacity"),
        "retry_after_s": retry_after_s,
        "zh": zh.format_map(numbers),
        "en": en.format_map(numbers),
    }


def advice(mode: str) -> dict[str, Any]:
    zh, en = _ADVICE[mode]
    return {"code": mode, "retry_after_s": RETRY_S, "zh": zh, "en": en}

"""A decision in words: what was done or refused, why, and the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.filters import TIERS, clock, yuan
from console.journal.models import Decision
from scheduler.decision import Code, Reason, Verb
from scheduler.forecast import HOURLY, LISTED, PERIODIC, RECALLED, RESIDENT

VERBS: dict[str, Any] = {
    Verb.START: gettext_lazy("装载"),
    Verb.WAKE: gettext_lazy("唤醒"),
    Verb.DRAIN: gettext_lazy("摘流"),
    Verb.SLEEP: gettext_lazy("休眠"),
    Verb.STOP: gettext_lazy("停止"),
}
REASONS: dict[str, Any] = {
    Reason.HOLD: gettext_lazy("有调用在等它"),
    Reason.MINIMUM: gettext_lazy("就绪的实例少于应保持的数"),
    Reason.CALL: gettext_lazy("宽限期内来了调用，留下"),
    Reason.FORECAST: gettext_lazy("预计不久有调用"),
    Reason.IDLE: gettext_lazy("空闲已满时限"),
    Reason.ROOM: gettext_lazy("给在等的调用让出显存"),
    Reason.QUEUE: gettext_lazy("排队变长"),
    Reason.P99: gettext_lazy("响应变慢"),
    Reason.SURPLUS: gettext_lazy("实例多于所需"),
    Reason.PRESSURE: gettext_lazy("显存压力"),
    Reason.REBUILD: gettext_lazy("在别处重建"),
    Reason.REGRANT: gettext_lazy("重新分配 KV"),
    Reason.REPACK: gettext_lazy("碎片整理"),
    Reason.BUDGET: gettext_lazy("预算用完"),
    Reason.OPERATOR: gettext_lazy("人工操作"),
    Reason.MAINTENANCE: gettext_lazy("主机维护"),
    Reason.FAULT: gettext_lazy("出了故障"),
    Reason.THROTTLE: gettext_lazy("预热拖慢了邻居"),
    Reason.UNNEEDED: gettext_lazy("让位后没有用上，还给它"),
}
#: Where verb and reason together have a word of their own.
SAID: dict[tuple[str, str], Any] = {
    (Verb.DRAIN, Reason.IDLE): gettext_lazy("通知让位"),
    (Verb.WAKE, Reason.CALL): gettext_lazy("撤回通知"),
    (Verb.WAKE, Reason.UNNEEDED): gettext_lazy("恢复"),
    (Verb.START, Reason.QUEUE): gettext_lazy("扩容装载"),
    (Verb.START, Reason.P99): gettext_lazy("扩容装载"),
    (Verb.WAKE, Reason.QUEUE): gettext_lazy("扩容唤醒"),
    (Verb.WAKE, Reason.P99): gettext_lazy("扩容唤醒"),
    (Verb.DRAIN, Reason.SURPLUS): gettext_lazy("缩容摘流"),
}
#: Rows that are no act of the planner's: a tier changed by calls, batch limited on a card.
OTHERS: dict[str, Any] = {
    "budget": gettext_lazy("卡预算"),
    "warned": gettext_lazy("预警"),
    "spent": gettext_lazy("已用完，开始收缩"),
    "preload": gettext_lazy("停用自动预热"),
    "unused": gettext_lazy("最近的预热用上的太少"),
    "tier": gettext_lazy("换档"),
    "calls": gettext_lazy("近七日调用"),
    "limit": gettext_lazy("调整批处理并发"),
    "neighbour": gettext_lazy("在线邻居变慢"),
    "well": gettext_lazy("在线邻居已恢复"),
}
REFUSALS: dict[str, Any] = {
    Code.NO_CAPACITY: gettext_lazy("放不下，也没有可以让位的"),
    Code.SHORT_OF_MEMORY: gettext_lazy("显存不够"),
    Code.CARD_UNHEALTHY: gettext_lazy("卡不健康"),
    Code.CORDONED: gettext_lazy("卡或主机已停止调度"),
    Code.HOST_LOST: gettext_lazy("主机失联"),
    Code.UNMEASURED: gettext_lazy("显存量不到，不敢放"),
    Code.WRONG_FAMILY: gettext_lazy("镜像与卡的软件栈不符"),
    Code.WRONG_CLASS: gettext_lazy("不在允许的卡型里"),
    Code.WRONG_POOL: gettext_lazy("资源池不许"),
    Code.COMPUTE_CAPABILITY: gettext_lazy("卡不支持这种精度"),
    Code.WEIGHTS_ABSENT: gettext_lazy("主机上没有完整的权重"),
    Code.IMAGE_ABSENT: gettext_lazy("主机上没有镜像"),
    Code.PREFLIGHT: gettext_lazy("主机自检没有通过"),
    Code.OVERSELL: gettext_lazy("KV 会超卖过限"),
    Code.CONTEXT_TOO_LONG: gettext_lazy("余下的 KV 装不下一个最长请求"),
    Code.REPLICA_LIMIT: gettext_lazy("卡上的实例已到上限"),
    Code.TOO_FEW_CARDS: gettext_lazy("没有哪台主机有这么多张卡"),
    Code.SAME_SERVICE: gettext_lazy("卡上已有同一业务的实例"),
    Code.TENANTS_APART: gettext_lazy("两家公司约定不同卡"),
    Code.LOAD_IN_FLIGHT: gettext_lazy("前面有装载，排队"),
    Code.TWO_HOSTS: gettext_lazy("两台主机上都要有实例"),
    Code.ANTI_SWAP: gettext_lazy("刚互换过，稍后再换"),
    Code.BACK_OFF: gettext_lazy("上次失败，稍后再试"),
    Code.LOAD_FAILED: gettext_lazy("多次装载失败"),
    Code.MAX_REPLICAS: gettext_lazy("实例已到业务的上限"),
    Code.QUOTA_EXCEEDED: gettext_lazy("超出公司的配额"),
    Code.FROZEN: gettext_lazy("多台主机同时失联，暂不移动"),
    Code.NOT_NOW: gettext_lazy("正在腾显存"),
    Code.ALREADY_SO: gettext_lazy("已经是这样"),
    Code.LAPSED: gettext_lazy("过了时限还没等到机会"),
    Code.WRONG_PHASE: gettext_lazy("实例此刻的状态做不了这件事"),
    Code.UNDER_PRESSURE: gettext_lazy("卡有显存压力，暂不接新实例"),
    Code.OUTSIDE_WINDOW: gettext_lazy("不在它的批处理时段"),
    Code.SLICE_REQUIRED: gettext_lazy("只能放在硬件切片上"),
    Code.THROTTLED: gettext_lazy("邻居变慢，预热等一等"),
    Code.KV_FULL: gettext_lazy("KV 用满，只能少派请求"),
    Code.NO_VICTIM: gettext_lazy("显存有压力，没有可以让出的实例"),
    Code.STAYS: gettext_lazy("不为整理移动：在白名单上，或摘流没能结束"),
    Code.IMPORTED: gettext_lazy("接管的引擎，不由这里停"),
    Code.ELASTIC: gettext_lazy("资源池要按页增减 KV，现有引擎做不到"),
    Code.CANNOT_SLEEP: gettext_lazy("引擎不能休眠"),
    Code.SLEEPER_LIMIT: gettext_lazy("卡上休眠的实例已到上限"),
    Code.HOST_MEMORY: gettext_lazy("主机内存放不下它的权重"),
}
#: Services named among the numbers, by key.
#: Sums of money, by key; they are fen.
SUMS = {
    "spent_fen": gettext_lazy("已用 %(n)s 元"),
    "limit_fen": gettext_lazy("预算 %(n)s 元"),
    "forecast_fen": gettext_lazy("预计月底 %(n)s 元"),
}
OTHERS_NAMED = {"room_for": gettext_lazy("让给%(who)s"), "neighbour": gettext_lazy("邻居：%(who)s")}
#: Numbers people understand, by key; what is not here stays in the row and its export.
NUMBERS = {
    "short_mib": gettext_lazy("差 %(n)s MiB"),
    "needed_mib": gettext_lazy("保证或可借再多 %(n)s MiB 才够"),
    "asked_mib": gettext_lazy("要 %(n)s MiB"),
    "holds_mib": gettext_lazy("已占 %(n)s MiB"),
    "borrowed_mib": gettext_lazy("它的公司借着 %(n)s MiB"),
    "guaranteed_mib": gettext_lazy("保证 %(n)s MiB"),
    "borrowable_mib": gettext_lazy("可借 %(n)s MiB"),
    "room_mib": gettext_lazy("余 %(n)s MiB"),
    "frees_mib": gettext_lazy("可还 %(n)s MiB"),
    "freed_mib": gettext_lazy("已还 %(n)s MiB"),
    "kv_granted_mib": gettext_lazy("给 KV %(n)s MiB"),
    "fixed_mib": gettext_lazy("固定 %(n)s MiB"),
    "one_request_mib": gettext_lazy("一个最长请求要 %(n)s MiB"),
    "idle_s": gettext_lazy("空闲 %(n)s 秒"),
    "held": gettext_lazy("%(n)s 个调用在等"),
    "held_s": gettext_lazy("已等 %(n)s 秒"),
    "waited_s": gettext_lazy("已等 %(n)s 秒"),
    "eta_s": gettext_lazy("约 %(n)s 秒就绪"),
    "retry_after_s": gettext_lazy("%(n)s 秒后再试"),
    "grace_s": gettext_lazy("宽限 %(n)s 秒"),
    "min_replicas": gettext_lazy("至少 %(n)s 个"),
    "ready": gettext_lazy("就绪 %(n)s 个"),
    "in_flight": gettext_lazy("在途 %(n)s"),
    "limit_pct": gettext_lazy("上限 %(n)s%%"),
    "oversell_pct": gettext_lazy("超卖 %(n)s%%"),
    "priority": gettext_lazy("优先级 %(n)s"),
    "cards_needed": gettext_lazy("一份实例要 %(n)s 张卡"),
    "cards_that_fit": gettext_lazy("放得下的卡 %(n)s 张"),
    "most_on_a_host": gettext_lazy("一台主机最多 %(n)s 张"),
    "awake": gettext_lazy("醒着 %(n)s 个"),
    "failures": gettext_lazy("失败 %(n)s 次"),
    "took_s": gettext_lazy("用时 %(n)s 秒"),
    "lasted_s": gettext_lazy("历时 %(n)s 秒"),
    "left_s": gettext_lazy("离期限 %(n)s 秒"),
    "wait_s": gettext_lazy("约等 %(n)s 秒"),
    "silence_s": gettext_lazy("失联 %(n)s 秒"),
    "copy_mib": gettext_lazy("要复制 %(n)s MiB"),
    "cards": gettext_lazy("看过 %(n)s 张卡"),
    "max_replicas": gettext_lazy("上限 %(n)s 个"),
    "calls_7d": gettext_lazy("七日 %(n)s 次"),
    "busiest_day": gettext_lazy("最忙一日 %(n)s 次"),
    "used_pct": gettext_lazy("已用 %(n)s%%"),
    "over_mib": gettext_lazy("超出申报 %(n)s MiB"),
    "external_mib": gettext_lazy("外部占用 %(n)s MiB"),
    "probability_pct": gettext_lazy("可能性 %(n)s%%"),
    "preloads": gettext_lazy("预热 %(n)s 次"),
    "used": gettext_lazy("用上 %(n)s 次"),
    "kv_cap_mib": gettext_lazy("KV 上限 %(n)s MiB"),
    "host_room_mib": gettext_lazy("主机内存余 %(n)s MiB"),
    "asleep": gettext_lazy("休眠着 %(n)s 个"),
    "disturbance_pct": gettext_lazy("邻居输出间隔升 %(n)s%%"),
    "rise_pct": gettext_lazy("邻居 P99 升 %(n)s%%"),
    "p99_ms": gettext_lazy("P99 %(n)s 毫秒"),
    "target_ms": gettext_lazy("目标 %(n)s 毫秒"),
    "limit_from": gettext_lazy("原来至多 %(n)s 个并发"),
    "limit_to": gettext_lazy("至多 %(n)s 个并发"),
    "kv_used_pct": gettext_lazy("KV 已用 %(n)s%%"),
    "kv_now_mib": gettext_lazy("现有 KV %(n)s MiB"),
    "running": gettext_lazy("%(n)s 个调用在处理"),
    "waiting": gettext_lazy("%(n)s 个调用在排队"),
    "capacity": gettext_lazy("每个实例承载 %(n)s 个"),
    "desired": gettext_lazy("应有 %(n)s 个实例"),
    "raised_from": gettext_lazy("现有 %(n)s 个实例"),
    "came_from": gettext_lazy("原有 %(n)s 个实例"),
    "load": gettext_lazy("最忙的一分钟 %(n)s 个调用"),
    "calm_s": gettext_lazy("已平静 %(n)s 秒"),
    "admit_pct": gettext_lazy("在途 token 至多占 KV 的 %(n)s%%"),
}
#: By which rule a call is expected.
RULES: dict[str, Any] = {
    HOURLY: gettext_lazy("按这个钟点的规律"),
    PERIODIC: gettext_lazy("定时任务"),
    RESIDENT: gettext_lazy("常驻时段"),
    RECALLED: gettext_lazy("昨天此时有调用"),
    LISTED: gettext_lazy("在资源池的预取名单上"),
}


@dataclass(frozen=True, slots=True)
class Said:
    """One decision as printed; `tone` is a class of the step list: bad, ok or empty."""

    row: Decision
    service: str
    verb: str
    reason: str
    numbers: str
    card: str
    tone: str
    where: str = ""


def verb_word(verb: str) -> Any:
    return VERBS.get(verb, OTHERS.get(verb, verb))


def reason_word(reason: str) -> Any:
    return REASONS.get(reason, OTHERS.get(reason, reason))


def about_a_card(row: Decision) -> bool:
    """An alert is about a card, not about a service."""
    return row.refusal == Code.NO_VICTIM


def said(row: Decision, services: Mapping[str, str]) -> Said:
    """`services`: label by name, of what the reader may see; any other is another company's."""
    verb, reason = verb_word(row.verb), reason_word(row.reason)
    if row.refusal:
        refusal = REFUSALS.get(row.refusal, row.refusal)
        text, tone = _("%(verb)s未成：%(refusal)s") % {"verb": verb, "refusal": refusal}, "bad"
    elif (row.verb, row.reason) in SAID:
        text, tone = str(SAID[row.verb, row.reason]), "ok" if row.verb == Verb.WAKE else ""
    else:
        text, tone = str(verb), "ok" if row.verb in (Verb.START, Verb.WAKE) else ""
    card = row.card
    number = "" if card is None else (f"{card.number:02d}" if card.number is not None else str(card))
    where = "" if card is None else str(card)
    gone = _("%s 号卡") % number if about_a_card(row) else row.numbers.get("tenant_name") or _("已删除的业务")
    service = row.service.label if row.service is not None else gone
    return Said(row, service, text, str(reason), figures(row.numbers, services), number, tone, where)


def figures(numbers: Mapping[str, object], services: Mapping[str, str]) -> str:
    """The numbers of a decision, joined; a service named among them by its label."""
    parts = []
    for key, value in numbers.items():
        if key in NUMBERS and isinstance(value, int | float):
            shown = f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")
            parts.append(str(NUMBERS[key]) % {"n": shown})
        elif key in SUMS and isinstance(value, int | float):
            parts.append(str(SUMS[key]) % {"n": yuan(value)})
        elif key == "expected_at" and isinstance(value, int | float):
            parts.append(_("预计 %(time)s 有调用") % {"time": clock(float(value))})
        elif key == "rule" and value in RULES:
            parts.append(str(RULES[str(value)]))
        elif key == "to" and value in TIERS:
            parts.append(_("改为%(tier)s") % {"tier": TIERS[str(value)]})
        elif key == "no_sleep":
            parts.append(_("不休眠：%(why)s") % {"why": REFUSALS.get(str(value), value)})
        elif key in OTHERS_NAMED and isinstance(value, str):
            parts.append(str(OTHERS_NAMED[key]) % {"who": services.get(value, _("其他公司的业务"))})
    return _("，").join(parts)

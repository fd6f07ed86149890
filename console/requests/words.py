"""What requests say: refusals, failures, and consequences in words, for the person who reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.filters import gib, when, yuan
from console.journal.words import REASONS, SAID, VERBS
from console.requests.colder import NEXT, NO_ROOM, OWES
from console.services.tell import Names

#: Why a step was not taken.
NO: Mapping[str, Any] = {
    "overtaken": gettext_lazy("这期间有人处理过了，什么也没有改。下面是现在的样子。"),
    "unseen": gettext_lazy("您看到的后果已经旧了，或没有打开过这一页。看一眼新的再决定，什么也没有改。"),
    "own": gettext_lazy("自己的申请要由别人决定。"),
    "twice": gettext_lazy("您已经决定过，第二个人要是另一位。"),
    "not_yours": gettext_lazy("您不是审批人，现在也没有代谁审批。"),
    "past": gettext_lazy("结束的时间已经过去了。"),
    "no_reason": gettext_lazy("不批准或退回要写原因。"),
    "not_returned": gettext_lazy("已经紧急生效的，只能同意或结束，不能退回修改。"),
    "not_another_end": gettext_lazy("已经紧急生效的，不能在复核时改结束时间。"),
    "not_urgent": gettext_lazy("只有运维能紧急生效，而且只限能收回的事。"),
    "not_the_asker": gettext_lazy("只有提出的人和他的公司可以。"),
    "not_theirs": gettext_lazy("不能转给这个人：要是另一位审批人，没有决定过它。"),
    "file_many": gettext_lazy("一个申请最多 5 个附件，没有附上。"),
    "file_long": gettext_lazy("一个附件最大 10 MiB，没有附上。"),
    "file_empty": gettext_lazy("文件是空的，没有附上。"),
    "file_type": gettext_lazy("只收 PDF、PNG、JPEG、不带宏的 Office 文件、TXT 和 CSV，内容要与扩展名相符。"),
    "file_kept": gettext_lazy("附件留下：只有附上的人能拿掉，而且要在有人决定之前。"),
    "file_gone": gettext_lazy("这个附件的文件不在了，请运维看主目录的备份。"),
    "nothing_said": gettext_lazy("没有写什么。"),
}
#: Why what was approved could not be done.
STALE: Mapping[str, Any] = {
    "service_gone": gettext_lazy("这个业务已经不在了。"),
    "changed": gettext_lazy("批准之前，有人已经把它改成别的了。"),
    "name_taken": gettext_lazy("这个名称已经有业务在用。"),
    "invalid": gettext_lazy("填的内容现在通不过检查。"),
    "over_promised": gettext_lazy("资源池里剩下的已经不够承诺这么多。"),
    "pool_gone": gettext_lazy("公司或资源池已经不在了。"),
}
#: What a kind has to say of consequences, besides cards, people and money.
FACTS: Mapping[str, Any] = {
    "copies": gettext_lazy("它现在有 %(n)s 个实例，期间不会让给别人。"),
    "nothing_held": gettext_lazy("它现在没有实例，不占显存；装载之后才留着。"),
    "budget": gettext_lazy("本月已用 %(spent)s 元，预计月底 %(foreseen)s 元。"),
    "first_budget": gettext_lazy("现在没有预算，不限；有了以后用满就收缩。"),
    "call_tokens": gettext_lazy("本月已用 %(used)s token；最近 7 天平均每天 %(day)s token。"),
    "call_fen": gettext_lazy("本月已入账 %(used)s 元。"),
    "call_spent": gettext_lazy("已用的到了上限：一生效，调用就被拒绝，直到下月初。"),
    "call_ends": gettext_lazy("照最近 7 天的用量约 %(days)s 天用完，之后的调用被拒绝，直到下月初。"),
    "call_lasts": gettext_lazy("照最近 7 天的用量，够用到月底。"),
    "first_call_budget": gettext_lazy("现在没有调用预算，不限；有了以后用完就拒绝。"),
    "callers": gettext_lazy("之后 %(all)s 家公司可以调用：多 %(gained)s 家，少 %(lost)s 家。"),
    "lost_calls": gettext_lazy("不能再调用的公司最近 7 天调用了 %(calls)s 次，之后会被拒绝。"),
    "key": gettext_lazy("它能调用 %(services)s 个业务；公司最近 7 天调用 %(calls)s 次，已有 %(keys)s 个有效密钥。"),
    "fits": gettext_lazy("%(n)s 个实例现在放得下，约 %(s)s 秒就绪；所列是它一直装着时的占用和钱。"),
    "fits_not": gettext_lazy("至少有一个实例现在放不下。"),
    "promised": gettext_lazy("这个资源池共可规划 %(of)s GiB：现在承诺 %(was)s GiB，之后承诺 %(will)s GiB。"),
    "over_promised": gettext_lazy("承诺的比有的多 %(mib)s MiB，不能这样定。"),
    "quota_use": gettext_lazy("公司在这里已占 %(used)s GiB，之后最多 %(limit)s GiB。"),
    "over_quota": gettext_lazy("已占的比上限多 %(gib)s GiB：不收回，只是让出这么多之前不再起新的实例。"),
    "no_limit": gettext_lazy("公司在这里已占 %(used)s GiB；之后没有上限，也没有保证，占着的都算借的。"),
    "kept_from": gettext_lazy("其中 %(gib)s GiB 眼下收不回：占着的实例受保护，或刚装载不久。"),
    "unclear": gettext_lazy("现在算不出：所填的有些已经不在了。"),
    "nothing_now": gettext_lazy("此刻没有什么会动；新的值从下一次该做决定时起作用。"),
}


#: Why somebody is colder.
COLDER: Mapping[str, Any] = {
    NO_ROOM: gettext_lazy("除了这里没有地方放"),
    NEXT: gettext_lazy("同卡，要腾地方时先轮到它"),
    OWES: gettext_lazy("借着公司的保证，公司要用时先轮到"),
}


def no(code: str) -> str:
    return str(NO.get(code) or STALE.get(code) or code)


@dataclass(frozen=True, slots=True)
class Told:
    """Consequences as a page shows them. `lines`: (label, value); `colder`: (who, why, wait); `effects`: sentences."""

    at: datetime
    lines: list[tuple[str, str]]
    colder: list[tuple[str, str, str]]
    more: int  # colder ones that are not named
    effects: list[str]
    facts: list[str]


def told(weighed: Mapping[str, Any], names: Names) -> Told:
    """`names`: what the reader may be told; services of others stay without a name."""
    colder = [_colder(one, names) for one in weighed["colder"]]
    return Told(
        at=datetime.fromtimestamp(weighed["at"], UTC),
        lines=_lines(weighed, names),
        colder=colder,
        more=weighed["colder_n"] - len(colder),
        effects=[effect(one, names) for one in weighed["effects"]],
        facts=[str(FACTS[code]) % numbers for code, numbers in weighed["facts"] if code in FACTS],
    )


def _lines(weighed: Mapping[str, Any], names: Names) -> list[tuple[str, str]]:
    cards, n = weighed["cards"], weighed["colder_n"]
    found = [(_("涉及的卡"), _("、").join(names.card(card) for card in cards) if cards else _("没有"))]
    if weighed["held_mib"] is not None:
        found.append((_("占着不让的显存"), f"{gib(weighed['held_mib'])} GiB"))
    found.append((_("谁会变冷"), ngettext("%(n)d 个业务", "%(n)d 个业务", n) % {"n": n} if n else _("没有谁")))
    if n:
        found.append((_("最久要等"), _("至少 %(s)s 秒") % {"s": f"{weighed['wait_s']:,.0f}"}))
    if weighed["fen_month"] is not None:
        found.append((_("每月多花"), _("%(yuan)s 元") % {"yuan": yuan(weighed["fen_month"])}))
    return found


def _colder(one: list[Any], names: Names) -> tuple[str, str, str]:
    service, why, wait_s, rough = one
    who = names.services.get(service, _("其他公司的一个业务"))
    because = str(COLDER.get(why, why))
    values = {"s": f"{wait_s:,.0f}"}
    return who, because, (_("约 %(s)s 秒（粗估）") if rough else _("约 %(s)s 秒")) % values


def effect(one: Sequence[Any], names: Names) -> str:
    """`one`: verb, reason, services, and whether there is more of it."""
    verb, reason, services, more = one
    act = SAID.get((verb, reason), VERBS.get(verb, verb))
    values = {"act": act, "reason": REASONS.get(reason, reason), "who": names.several(tuple(services))}
    return (_("会%(act)s：%(who)s（%(reason)s）") if more else _("不再%(act)s：%(who)s（%(reason)s）")) % values


def until_said(numbers: Mapping[str, Any]) -> str:
    """Of a line of the record: until when."""
    at = numbers.get("until")
    return "" if at is None else when(datetime.fromtimestamp(at, UTC))

"""Advice and notices in words: what would be done and who must let it, what is about to happen and what prevents it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from console.accounts.access import Act, may, own, tenant_of
from console.accounts.models import User
from console.catalog.models import Service
from console.filters import TIERS, clock, gib
from console.journal.models import Advice, Notice
from console.journal.words import figures, reason_word, verb_word
from scheduler.modes import SUGGEST, TOLD

FEN = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One advice as printed. `asks`: it waits for a click, and the reader may give it."""

    row: Advice
    service: str
    verb: str
    reason: str
    numbers: str
    card: str
    state: str
    asks: bool


@dataclass(frozen=True, slots=True)
class Told:
    """One notice as printed. `keeps`: the reader may keep the copy with a click."""

    row: Notice
    kind: str
    about: str
    text: str
    keeps: bool


def standing(user: User) -> QuerySet[Advice]:
    """Open advice the person may see; what is about no service is staff's."""
    rows = Advice.objects.filter(closed_at=None).select_related("pool", "service", "card__host", "approved_by")
    return own(rows, user, "service__tenant_id")


def open_notices(user: User) -> QuerySet[Notice]:
    """Open notices the person may see; those of pools and of the site are staff's."""
    return own(Notice.objects.filter(closed_at=None).select_related("service", "pool"), user, "service__tenant_id")


def count(user: User) -> int:
    """What waits for somebody: advice to approve for who may, and notices."""
    asking = standing(user).filter(told=TOLD[SUGGEST]).count() if may(user, Act.APPROVE_ADVICE) else 0
    return asking + open_notices(user).count()


def labels(user: User) -> dict[str, str]:
    """Label by name of the services the person may know."""
    return dict(own(Service.objects.all(), user).values_list("name", "label"))


def line(row: Advice, known: Mapping[str, str], user: User, now: datetime) -> Line:
    card = "" if row.card is None else (f"{row.card.number:02d}" if row.card.number is not None else str(row.card))
    approved = row.approved_until is not None and row.approved_until > now
    waits = row.told == TOLD[SUGGEST]
    if not waits:
        state = _("只观察")
    elif approved:
        state = _("已批，等下一轮调度")
    else:
        state = _("等人点头")
    return Line(
        row,
        row.service.label if row.service is not None else "",
        str(verb_word(row.verb)),
        str(reason_word(row.reason)),
        figures(row.numbers, known),
        card,
        state,
        waits and not approved and may(user, Act.APPROVE_ADVICE),
    )


def told(row: Notice, known: Mapping[str, str], user: User) -> Told:
    about = row.service.label if row.service is not None else row.pool.label if row.pool is not None else ""
    text = SENTENCES[row.kind](row.numbers, known)
    keeps = row.kind == Notice.Kind.RECLAIM and row.replica_id is not None and may(user, Act.KEEP)
    return Told(row, str(Notice.Kind(row.kind).label), about, text, keeps)


def _reclaim(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    values = {"at": clock(numbers["at"]), "held": gib(numbers["held_mib"])}
    if numbers.get("noticed"):
        return _("已通知：%(at)s 让位，还回 %(held)s GiB。来一次调用就撤回，点保留也撤回。") % values
    return _("空闲着，没有调用的话 %(at)s 让位，还回 %(held)s GiB。来一次调用就重新计时，点保留就不收。") % values


def _waterline(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    first = _("、").join(known.get(name, name) for name in numbers.get("first", []))
    values = {"pct": numbers["used_pct"], "total": gib(numbers["total_mib"]), "first": first}
    if first:
        return _("已用 %(pct)s%%，共 %(total)s GiB。最先让位的是%(first)s。") % values
    return _("已用 %(pct)s%%，共 %(total)s GiB。现在没有空闲的可以让位。") % values


def _thrash(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    said = _("过去一小时 %(calls)s 次调用，装载 %(loads)s 次，因为刚换过而等候 %(waits)s 次。") % numbers
    ways = []
    if "slot_fen_h" in numbers:
        ways.append(_("多留一个它的位置，每小时 %(yuan)s 元") % {"yuan": _yuan(numbers["slot_fen_h"])})
    if "tier_to" in numbers:
        values = {"tier": TIERS[numbers["tier_to"]], "yuan": _yuan(numbers["tier_fen_h"])}
        ways.append(_("升到%(tier)s，每小时 %(yuan)s 元") % values)
    return said + (_("办法：%(ways)s。") % {"ways": _("；或").join(ways)} if ways else "")


def _regret(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    values = {
        "n": numbers["regrets"],
        "now": round(numbers["idle_s"] / 60),
        "longer": round(numbers["longer_idle_s"] / 60),
    }
    return _("七日内有 %(n)s 次刚收回又被叫回。空闲时限从 %(now)s 分改到 %(longer)s 分，就都不会发生。") % values


def _tiers(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    hot = _("高频可以是七日多于 %(hot_calls_7d)s 次，有 %(hot)s 个业务") % numbers
    warm = _("中频多于 %(warm_calls_7d)s 次，有 %(warm)s 个") % numbers
    moves = _("%(up)s 个升档，%(down)s 个降档") % numbers
    values = {"hot": hot, "warm": warm, "moves": moves}
    return _("按现有的卡和主机内存：%(hot)s；%(warm)s；%(moves)s。") % values


def _waiting(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    values = {"n": numbers["request"], "what": numbers["what"], "at": clock(numbers["asked_at"])}
    if numbers["review_by"] is not None:
        values["by"] = clock(numbers["review_by"])
        return _("申请 %(n)s（%(what)s）已紧急生效，%(by)s 前没有人复核就结束。") % values
    return _("申请 %(n)s（%(what)s）自 %(at)s 起在等决定。") % values


def _expiry(numbers: Mapping[str, Any], known: Mapping[str, str]) -> str:
    values = {"n": numbers["request"], "what": numbers["what"], "at": clock(numbers["until"])}
    return _("申请 %(n)s（%(what)s）批准到 %(at)s，到时自己结束；还要用就再提。") % values


def _yuan(fen: int) -> str:
    return f"{fen / FEN:,.2f}"


SENTENCES: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, str]], str]] = {
    Notice.Kind.RECLAIM: _reclaim,
    Notice.Kind.WATERLINE: _waterline,
    Notice.Kind.THRASH: _thrash,
    Notice.Kind.REGRET: _regret,
    Notice.Kind.TIERS: _tiers,
    Notice.Kind.WAITING: _waiting,
    Notice.Kind.EXPIRY: _expiry,
}


def staff(user: User) -> bool:
    return tenant_of(user) is None

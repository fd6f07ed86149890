"""What limits calls of one service now, in sentences: batch beside online services, and how long a call may be."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _

from console.catalog.models import Service
from console.fleet.models import Card
from console.state import moment
from console.workdays import intervals, said
from scheduler.policy import Policy
from scheduler.world import Profile

DAY_S, WEEK = 86400, 7


def clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


def hours_of(service: Service, rules: Policy) -> list[dict[str, str]]:
    """Its own batch hours, else the policy's window."""
    window = {"days": "daily", "from": clock(rules.batch_from_min), "to": clock(rules.batch_until_min)}
    return service.batch_hours or [window]


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a batch service may run freely now, and when that changes; `until` None: later than tomorrow."""

    free: bool
    until: datetime | None

    @property
    def said(self) -> str:
        at = "" if self.until is None else timezone.localtime(self.until).strftime("%m-%d %H:%M")
        if self.free:
            return _("现在在时段内，到 %s。") % at if at else _("现在在时段内。")
        return _("现在在时段外，%s 开始。") % at if at else _("现在在时段外。")


def standing(service: Service, rules: Policy, now: float) -> Standing:
    spans = intervals(hours_of(service, rules), now)
    ends = max((end for begin, end in spans if begin <= now < end), default=None)
    if ends is None:
        begins = min((begin for begin, _end in spans if begin > now), default=None)
        return Standing(False, None if begins is None else moment(begins))
    for begin, end in spans:  # those that overlap or touch are one
        ends = max(ends, end) if begin <= ends else ends
    endless = ends == max(end for _begin, end in spans) and ends - now > DAY_S
    return Standing(True, None if endless else moment(ends))


@dataclass(frozen=True, slots=True)
class Day:
    """One day of the coming week and its spans of batch hours: (left and width in percent, words)."""

    label: str
    spans: list[tuple[float, float, str]]


def coming_week(service: Service, rules: Policy, now: float) -> list[Day]:
    """Today and six more days, holidays and moved workdays as they are; spans that overlap or touch are one."""
    zone = timezone.get_default_timezone()
    today = datetime.fromtimestamp(now, zone).date()
    days = [today + timedelta(days=n) for n in range(WEEK)]
    return [Day(_label(day), _spans_of(day, hours_of(service, rules), zone)) for day in days]


def _label(day: date) -> str:
    return f"{day:%m-%d} {WEEKDAYS[day.weekday()]}"


def _spans_of(day: date, hours: list[dict[str, str]], zone: tzinfo) -> list[tuple[float, float, str]]:
    begins = datetime.combine(day, datetime.min.time(), zone).timestamp()
    ends = datetime.combine(day + timedelta(days=1), datetime.min.time(), zone).timestamp()
    merged: list[list[float]] = []
    for begin, end in intervals(hours, begins):
        low, high = max(begin, begins), min(end, ends)
        if merged and low <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], high)
        elif low < high:
            merged.append([low, high])
    whole = ends - begins
    return [
        (
            round(100 * (low - begins) / whole, 2),
            round(100 * (high - low) / whole, 2),
            f"{clock(round((low - begins) / 60))}–{clock(round((high - begins) / 60))}",
        )
        for low, high in merged
    ]


def card_limit(card: Card) -> str:
    """How many batch calls may be in flight on the card at once for a neighbour's sake; empty: no limit."""
    if card.batch_calls is None:
        return ""
    text = _("批处理至多 %(calls)s 个并发：同卡的在线业务变慢") % {"calls": card.batch_calls}
    if card.batch_calls_at is None:
        return text
    return text + _("，自 %s 起") % timezone.localtime(card.batch_calls_at).strftime("%H:%M")


def batch_lines(service: Service, cards: Iterable[Card], rules: Policy) -> list[str]:
    """Of a batch service: its hours, and the limit of each card where it runs."""
    if service.profile != Profile.BATCH:
        return []
    values = {"hours": said(hours_of(service, rules)), "calls": rules.batch_day_calls}
    found = [_("批处理时段：%(hours)s；时段外每张卡至多 %(calls)s 个并发。") % values]
    found.append(standing(service, rules, time.time()).said)
    for card in cards:
        if limit := card_limit(card):
            found.append(_("%(card)s：%(limit)s。") % {"card": card, "limit": limit})
    return found


def length_lines(service: Service) -> list[str]:
    """How long a call may be, and where long ones go."""
    found = []
    if service.max_prompt_tokens is not None:
        found.append(_("提示词至多 %s 个 token，超过的答 400。") % f"{service.max_prompt_tokens:,}")
    if service.max_total_tokens is not None:
        found.append(_("提示词加回答至多 %s 个 token，超过的答 400。") % f"{service.max_total_tokens:,}")
    if service.long_from_tokens is None:
        return found
    values = {"tokens": f"{service.long_from_tokens:,}", "lane": service.long_lane, "pct": service.long_share_pct}
    if service.long_lane is not None:
        found.append(_("%(tokens)s 个 token 起算长请求，由“%(lane)s”应答。") % values)
    elif service.long_share_pct:
        found.append(_("%(tokens)s 个 token 起算长请求，专用 %(pct)s%% 的实例。") % values)
    return found


def lines(service: Service, cards: Sequence[Card | None], rules: Policy) -> list[str]:
    return [*batch_lines(service, [card for card in cards if card is not None], rules), *length_lines(service)]

"""Which days are worked on, and the hours of the week in which a service shall always be ready. Site time.

Holidays and the workdays moved for them are decreed once a year. Of a year that is not known yet, Monday to Friday are
workdays: that is said in the log, and on the page of each service it matters to.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import chinese_calendar
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler.habits import DayKind

log = logging.getLogger(__name__)

SATURDAY = 5
DAYS: dict[str, Any] = {
    "workday": gettext_lazy("工作日"),
    "dayoff": gettext_lazy("休息日"),
    "daily": gettext_lazy("每天"),
}
NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: Intervals are kept for the days around now: one that began yesterday may cross midnight, tomorrow's is prepared for.
AROUND = (-1, 0, 1)
#: (from, to) in seconds since the epoch.
Spans = tuple[tuple[float, float], ...]


@cache
def year_known(year: int) -> bool:
    """Is the decree of that year in the calendar? Said once in the log when not."""
    try:
        chinese_calendar.is_workday(date(year, 1, 1))
    except NotImplementedError:
        log.warning("holidays of %d are not known: Monday to Friday count as workdays", year)
        return False
    return True


def kind(day: date) -> DayKind:
    works = chinese_calendar.is_workday(day) if year_known(day.year) else day.weekday() < SATURDAY
    return DayKind.WORKDAY if works else DayKind.DAY_OFF


@lru_cache(maxsize=8)
def kinds(first: date, last: date) -> Mapping[date, DayKind]:
    """Every date from first to last."""
    days = (first + timedelta(days=n) for n in range((last - first).days + 1))
    return {day: kind(day) for day in days}


def valid_hours(value: object) -> None:
    """A list of {"days", "from", "to"}: days are a key of DAYS or one of NAMES. Raises ValidationError with the reason.

    An end at or before its beginning is on the next day.
    """
    if not isinstance(value, list):
        raise ValidationError(_("常驻时段应当是一个列表。"))
    for one in value:
        if not isinstance(one, dict) or set(one) != {"days", "from", "to"}:
            raise ValidationError(_("每个时段要有日子、开始和结束。"))
        if one["days"] not in DAYS and one["days"] not in NAMES:
            raise ValidationError(_("不认识的日子：%(days)s") % {"days": one["days"]})
        for edge in (one["from"], one["to"]):
            _clock(edge)


def _clock(text: object) -> time:
    try:
        return time.fromisoformat(str(text))
    except ValueError:
        raise ValidationError(_("时间要写成 08:00 的样子，不是“%(text)s”。") % {"text": text}) from None


def day_word(days: str) -> str:
    """工作日, 周一 …"""
    return str(DAYS[days]) if days in DAYS else str(WEEKDAYS[NAMES.index(days)])


def said(hours: Iterable[Mapping[str, str]], between: str = "") -> str:
    """The hours in words, as `read` takes them where they are parted by semicolons; empty when there are none."""
    return (between or _("，")).join(f"{day_word(one['days'])} {one['from']}–{one['to']}" for one in hours)


def read(text: str) -> list[dict[str, str]]:
    """What a person typed, one span a line or between semicolons: `工作日 08:00-18:00`, `mon 09:00-12:00`.

    Raises ValidationError with the part that cannot be read.
    """
    words = {str(word): name for name, word in DAYS.items()} | {day_word(name): name for name in NAMES}
    found = []
    for part in text.replace("；", ";").replace("\n", ";").split(";"):
        if not part.strip():
            continue
        days, _gap, span = part.strip().rpartition(" ")
        begins, dash, ends = span.replace("–", "-").partition("-")
        if not days or not dash:
            raise ValidationError(_("看不懂“%(part)s”，请写成：工作日 08:00-18:00") % {"part": part.strip()})
        found.append({"days": words.get(days.strip(), days.strip()), "from": begins.strip(), "to": ends.strip()})
    valid_hours(found)
    return found


def intervals(hours: Sequence[Mapping[str, str]], now: float) -> Spans:
    """(from, to) in seconds since the epoch of the days around now, ascending."""
    if not hours:
        return ()
    zone = timezone.get_default_timezone()
    today = datetime.fromtimestamp(now, zone).date()
    return _intervals(tuple((one["days"], one["from"], one["to"]) for one in hours), today, zone)


@lru_cache(maxsize=4096)
def _intervals(hours: tuple[tuple[str, str, str], ...], today: date, zone: ZoneInfo) -> Spans:
    found = []
    for day in (today + timedelta(days=n) for n in AROUND):
        for days, begins, ends in hours:
            if _holds(days, day):
                last = day if ends > begins else day + timedelta(days=1)
                first_s = datetime.combine(day, time.fromisoformat(begins), zone).timestamp()
                found.append((first_s, datetime.combine(last, time.fromisoformat(ends), zone).timestamp()))
    return tuple(sorted(found))


def _holds(days: str, day: date) -> bool:
    if days in NAMES:
        return NAMES.index(days) == day.weekday()
    return days == "daily" or kind(day) == days

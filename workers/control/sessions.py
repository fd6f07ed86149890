"""Calls into sessions: the first after a pause begins one. Whether it had to wait is what a forecast is measured by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from django.db.models import F
from django.utils import timezone

from console.state import moment
from console.usage.models import DailyForecast, Session
from scheduler.policy import Policy

MS = 1000
#: Outcomes of a call that was not answered, however soon that was said.
UNANSWERED = ("failed", "refused")


class Called(Protocol):
    """What is read of a usage record."""

    @property
    def at(self) -> float: ...
    @property
    def service(self) -> str: ...
    @property
    def outcome(self) -> str: ...
    @property
    def hold_ms(self) -> int: ...


@dataclass(slots=True)
class Open:
    """A session that records may extend; `pk` None: it is new."""

    start: float
    last: float
    hit: bool
    pk: int | None = None
    grew: bool = False


def add(records: Iterable[Called], rules: Policy) -> None:
    """Within the transaction that counts these records: each is in exactly one session afterwards."""
    by_service: dict[str, list[Called]] = defaultdict(list)
    for record in sorted(records, key=lambda r: r.at):
        by_service[record.service[:50]].append(record)
    if not by_service:
        return
    earliest = min(calls[0].at for calls in by_service.values()) - rules.session_gap_s
    known: dict[str, list[Open]] = defaultdict(list)
    rows = Session.objects.filter(service__in=by_service, last__gte=moment(earliest)).order_by("start")
    for pk, service, start, last, hit in rows.values_list("pk", "service", "start", "last", "hit"):
        known[service].append(Open(start.timestamp(), last.timestamp(), hit, pk))
    for service, calls in by_service.items():
        for call in calls:
            _take(known[service], call, rules)
    _write(known)


def _take(sessions: list[Open], call: Called, rules: Policy) -> None:
    """Gateways' records come a little out of order: one just before a known start moves that start."""
    for session in reversed(sessions):
        if session.start - rules.session_gap_s < call.at < session.last + rules.session_gap_s:
            session.grew = session.grew or not session.start <= call.at <= session.last
            session.start, session.last = min(session.start, call.at), max(session.last, call.at)
            return
    hit = call.outcome not in UNANSWERED and call.hold_ms <= rules.hit_wait_s * MS
    sessions.append(Open(call.at, call.at, hit))


def _write(known: Mapping[str, list[Open]]) -> None:
    fresh = [(service, one) for service, sessions in known.items() for one in sessions if one.pk is None]
    Session.objects.bulk_create(
        Session(service=service, start=moment(one.start), last=moment(one.last), hit=one.hit) for service, one in fresh
    )
    for sessions in known.values():
        for one in sessions:
            if one.pk is not None and one.grew:
                Session.objects.filter(pk=one.pk).update(start=moment(one.start), last=moment(one.last))
    for service, one in fresh:
        count(day_of(moment(one.start)), service, sessions=1, hits=int(one.hit))


def day_of(at: datetime) -> date:
    """The day of site time."""
    return timezone.localdate(at, timezone.get_default_timezone())


def count(day: date, service: str, **more: int) -> None:
    """Add to the day's row of the service."""
    row, _ = DailyForecast.objects.get_or_create(day=day, service=service)
    DailyForecast.objects.filter(pk=row.pk).update(**{name: F(name) + n for name, n in more.items() if n})

"""What is expected of a service, what is loaded ahead for it, how often that was right, and the switch of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import forecasts
from console.catalog.models import Forecast, Service
from console.filters import clock
from console.fleet.models import Pool
from console.state import moment
from console.usage.models import DailyForecast
from console.workdays import said, year_known
from scheduler import forecast as core
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.world import Forecast as CoreForecast

DAYS = 7
SHOWN = 4
RULES: dict[str, Any] = {
    "daily": gettext_lazy("每个同类日"),
    "weekly": gettext_lazy("每周"),
    "monthly": gettext_lazy("每月"),
    "last_workday": gettext_lazy("月末最后一个工作日"),
}


@dataclass(frozen=True, slots=True)
class Ahead:
    """`expected`: (when, what, percent), soonest first. `hit_share` None: no session yet. `known` false: none yet."""

    known: bool
    hour_pct: int
    expected: list[tuple[str, str, int]]
    automatic: bool
    judged: int
    used: int
    sessions: int
    hit_share: float | None
    resident: str
    unknown_year: int | None
    pools: list[tuple[int, str, bool]]  # that it may be placed in: id, label, is it on the list of idle moments

    @property
    def used_share(self) -> float | None:
        return self.used / self.judged if self.judged else None


def ahead(service: Service, rules: Policy, now: float | None = None) -> Ahead:
    """Four queries."""
    now = time.time() if now is None else now
    row = Forecast.objects.filter(service=service).first()
    today = timezone.localdate(moment(now), timezone.get_default_timezone())
    days = DailyForecast.objects.filter(service=service.name, day__gt=today - timedelta(days=DAYS))
    sums = days.aggregate(sessions=Sum("sessions"), hits=Sum("hits"))
    year = (today + timedelta(days=1)).year
    last = service.last_call_at.timestamp() if service.last_call_at else None
    seen = _core(row) if row is not None else CoreForecast(now)
    return Ahead(
        known=row is not None,
        hour_pct=round(HUNDRED * core.within(seen, rules, now, rules.preload_horizon_s, last)),
        expected=_expected(row, rules, now) if row is not None else [],
        automatic=row is None or row.automatic,
        judged=len(row.judged) if row is not None else 0,
        used=sum(of_use for _at, of_use in row.judged) if row is not None else 0,
        sessions=sums["sessions"] or 0,
        hit_share=sums["hits"] / sums["sessions"] if sums["sessions"] else None,
        resident=said(service.resident_hours),
        unknown_year=None if year_known(year) else year,
        pools=[(pool.pk, pool.label, service.name in pool.prefetch) for pool in pools_of(service)],
    )


@dataclass(frozen=True, slots=True)
class Hits:
    """Of the last seven days: sessions and the share that did not wait, preloads and the share that was of use."""

    sessions: int
    hit_share: float
    preloads: int
    used_share: float | None


def hits(services: QuerySet[Service]) -> Hits | None:
    """One query; None: nobody began to use any of them."""
    since = timezone.localdate(timezone=timezone.get_default_timezone()) - timedelta(days=DAYS)
    days = DailyForecast.objects.filter(day__gt=since, service__in=services.order_by().values("name"))
    sums = days.aggregate(*(Sum(name) for name in ("sessions", "hits", "preloads", "used")))
    sessions, preloads = sums["sessions__sum"] or 0, sums["preloads__sum"] or 0
    if not sessions:
        return None
    used = sums["used__sum"] / preloads if preloads else None
    return Hits(sessions, sums["hits__sum"] / sessions, preloads, used)


def _core(row: Forecast) -> CoreForecast:
    moments = tuple((at, probability) for at, probability, _rule in row.moments)
    return CoreForecast(row.hours_from.timestamp(), tuple(row.hours), moments=moments)


def _expected(row: Forecast, rules: Policy, now: float) -> list[tuple[str, str, int]]:
    """What is likely enough to be loaded ahead for, of the rest of today and tomorrow."""
    found = []
    for at, probability, rule in row.moments:
        if at >= now and probability * HUNDRED >= rules.preload_at_pct:
            found.append((at, str(RULES.get(rule, rule)), round(HUNDRED * probability)))
    for i, probability in enumerate(row.hours):
        begins = row.hours_from.timestamp() + i * core.HOUR_S
        if begins + core.HOUR_S > now and probability * HUNDRED >= rules.preload_at_pct:
            found.append((begins, _("这个钟点"), round(HUNDRED * probability)))
    return [(clock(at), what, pct) for at, what, pct in sorted(found)[:SHOWN]]


def pools_of(service: Service) -> list[Pool]:
    """The pools it may be placed in: its own, or all."""
    return list(service.pools.order_by("pk")) or list(Pool.objects.order_by("pk"))


def list_in(service: Service, pool: int, on: bool) -> bool:
    """On or off the pool's list of services loaded in idle moments; False where it was so, or may not be there."""
    with transaction.atomic():
        row = Pool.objects.select_for_update().filter(pk=pool).first()
        if row is None or (service.name in row.prefetch) == on or pool not in {p.pk for p in pools_of(service)}:
            return False
        row.prefetch = sorted({*row.prefetch, service.name} if on else {*row.prefetch} - {service.name})
        row.save(update_fields=["prefetch"])
    return True


def switch(service: Service, on: bool, now: datetime) -> bool:
    """Automatic preloads of the service on or off; False where they already were, or nothing is known yet."""
    return (forecasts.turn_on if on else forecasts.turn_off)(service, now)

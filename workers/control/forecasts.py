"""Forecasts from what was called: a few services at a time, each looked at every few minutes.

What rests on whole days is worked out once a day and when the policy changes; in between only today's calls and load
estimates move. A row is written when something in it changed, for every reader of a World looks for that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from hashlib import blake2s
from typing import Any

from django.db.models import F, Q
from django.utils import timezone

from console import forecasts as seam
from console import machines, state, workdays
from console.catalog.models import Forecast, LoadTime, Service
from console.fleet.models import Card
from console.usage.models import HourlyCalls, Session
from console.wire import UNKNOWN
from scheduler.estimate import load_estimate
from scheduler.habits import FARTHEST, HOURS, Day, Past, day_ahead
from scheduler.policy import Policy
from scheduler.world import LoadTimes, World
from workers.control import preloads

#: Services in one run: well under a second where all are busy (measured in docs/decisions).
MOST = 25
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Where:
    """A host that may carry services of a class and a pool."""

    host: str
    card_class: str
    pool: int


def run(now: datetime | None = None, most: int = MOST) -> int:
    """Look at the services whose turn it is, and judge preloads; how many forecasts were written."""
    now = now or timezone.now()
    rules = state.policy()
    preloads.judge(now, rules)
    stale = Q(forecast=None) | Q(forecast__checked_at__lt=now - timedelta(seconds=rules.forecast_every_s))
    turn = Service.objects.filter(stale).order_by(F("forecast__checked_at").asc(nulls_first=True), "pk")
    services = list(turn.select_related("forecast", "model").prefetch_related("pools")[:most])
    if not services:
        return 0
    written = _refresh(services, now, rules)
    Forecast.objects.filter(service__in=services).update(checked_at=now)
    return written


def _refresh(services: Sequence[Service], now: datetime, rules: Policy) -> int:
    today = timezone.localdate(now, timezone.get_default_timezone())
    basis = f"{today.isoformat()} {_fingerprint(rules)}"
    fresh = [one for one in services if (row := _row(one)) is None or row.basis != basis]
    days = _days(fresh, today, rules) if fresh else {}
    called = _called([one.name for one in services], today - timedelta(days=1))
    loads = _load_s(services, rules, now)
    written = 0
    for one in services:
        values: dict[str, Any] = {"load_s": round(loads[one.name], 1)}
        values["recalls"] = _bits(called[one.name], today - timedelta(days=1)) + _bits(called[one.name], today)
        if one.name in days:
            values |= _of_days(days[one.name], today) | {"basis": basis}
        written += _write(one, values, now)
    return written


def _row(service: Service) -> Forecast | None:
    return getattr(service, "forecast", None)


def _write(service: Service, values: dict[str, Any], now: datetime) -> int:
    row = _row(service)
    if row is None:
        _, made = Forecast.objects.get_or_create(
            service=service, defaults={**values, "checked_at": now, "changed_at": now}
        )
        return int(made)
    changed = {name: value for name, value in values.items() if getattr(row, name) != value}
    if not changed:
        return 0
    return Forecast.objects.filter(pk=row.pk).update(**changed, changed_at=now)


def _fingerprint(rules: Policy) -> str:
    """Of the numbers that a day's forecast rests on."""
    names = [f.name for f in fields(rules) if f.name.startswith("forecast_")]
    return blake2s(repr([getattr(rules, name) for name in names]).encode(), digest_size=4).hexdigest()


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=timezone.get_default_timezone())


def _of_days(days: Sequence[Day], today: date) -> dict[str, Any]:
    """The columns that two days fill."""
    moments = [
        [midnight(today + timedelta(days=n)).timestamp() + one.minute * 60, round(one.probability, DIGITS), one.rule]
        for n, day in enumerate(days)
        for one in day.moments
    ]
    hours = [round(probability, DIGITS) for day in days for probability in day.hours]
    return {"hours_from": midnight(today), "hours": hours, "moments": moments}


def _days(services: Collection[Service], today: date, rules: Policy) -> dict[str, tuple[Day, Day]]:
    """Today and tomorrow, from everything before today."""
    tomorrow = today + timedelta(days=1)
    kinds = workdays.kinds(today - timedelta(days=FARTHEST), _month_end(tomorrow))
    names = [one.name for one in services]
    first = today - timedelta(weeks=rules.forecast_weeks)
    called, starts = _called(names, first), _starts(names, today - timedelta(days=FARTHEST))
    found = {}
    for one in services:
        since = max(first, min([_local(one.created_at).date(), *called[one.name]]))
        observed = {since + timedelta(days=n): 0 for n in range((today - since).days)}
        past = Past({**observed, **called[one.name]}, starts[one.name])
        found[one.name] = (
            day_ahead(past, kinds, today, today, rules),
            day_ahead(past, kinds, tomorrow, today, rules),
        )
    return found


def _month_end(day: date) -> date:
    """A day past the end of its month: whether it is the last workday needs all that come after it."""
    return day.replace(day=1) + timedelta(days=31)


def _local(at: datetime) -> datetime:
    return timezone.localtime(at, timezone.get_default_timezone())


def _called(names: Iterable[str], first: date) -> Mapping[str, dict[date, int]]:
    """Service → date → its called hours as bits."""
    found: dict[str, dict[date, int]] = defaultdict(dict)
    rows = HourlyCalls.objects.filter(service__in=list(names), hour__gte=midnight(first), calls__gt=0).order_by()
    for service, hour in rows.values_list("service", "hour").distinct():
        local = _local(hour)
        bits = found[service]
        bits[local.date()] = bits.get(local.date(), 0) | 1 << local.hour
    return found


def _bits(called: Mapping[date, int], day: date) -> list[int]:
    return [called.get(day, 0) >> hour & 1 for hour in range(HOURS)]


def _starts(names: Iterable[str], first: date) -> Mapping[str, list[tuple[date, int]]]:
    found: dict[str, list[tuple[date, int]]] = defaultdict(list)
    rows = Session.objects.filter(service__in=list(names), last__gte=midnight(first), start__gte=midnight(first))
    for service, start in rows.order_by().values_list("service", "start"):
        local = _local(start)
        found[service].append((local.date(), local.hour * 60 + local.minute))
    return found


def _load_s(services: Sequence[Service], rules: Policy, now: datetime) -> dict[str, float]:
    """By service: the load estimate of the slowest host with a card that it may use; 0 where there is none."""
    hosts = machines.hosts(UNKNOWN, now.timestamp())
    cards = Card.objects.filter(host__declared_gone=False).order_by().distinct()
    places = [Where(*row) for row in cards.values_list("host__name", "card_class", "pool_id")]
    times = LoadTime.objects.filter(service__in=services, kind="start")
    core = state.services_named([one.name for one in services], rules)
    world = World(
        hosts=hosts,
        cards={},
        services=core,
        replicas={},
        load_times={
            (service, host): LoadTimes(tuple(seconds))
            for service, host, seconds in times.values_list("service__name", "host__name", "seconds")
        },
        reads=seam.reads(),
    )
    found = {}
    for one in services:
        pools = {pool.pk for pool in one.pools.all()}
        classes = set(one.card_classes)
        fit = {
            where.host
            for where in places
            if (not classes or where.card_class in classes) and (not pools or where.pool in pools)
        }
        estimates = (load_estimate(world, rules, core[one.name], host).seconds for host in fit if host in hosts)
        found[one.name] = max(estimates, default=0.0)
    return found

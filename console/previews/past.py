"""The last seven days as they were recorded, as a scene for the simulation.

Cards, services, quotas and prices are those of now; who sits where is taken to have been so then, for the days end at
the hour of the day at which they began. Calls, sessions and what loads take are what was counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from statistics import fmean

from django.db.models import Sum
from django.utils import timezone

from console import state
from console.catalog.models import Service as ServiceRow
from console.previews import trace
from console.usage.models import HourlyCalls, Session
from console.workdays import intervals, kinds
from scheduler.policy import Policy
from scheduler.simulation import Machine
from scheduler.simulation.compare import Scene
from scheduler.simulation.trace import Habit
from scheduler.tiers import DAY_S, WEEK
from scheduler.world import Card, Demand, LoadTimes, Phase, Replica, Service, Want, World

WEEK_S = WEEK * DAY_S
HISTORY = timedelta(weeks=5)  # what a forecast may look back at, as far as it matters
LEAST_HOURS = 24  # of calls, or there is no past to try anything on
MINUTE_S = 60
EPOCH = date(1970, 1, 1)


def window(now: datetime) -> tuple[datetime, datetime]:
    """Seven days, up to the last full hour."""
    until = now.replace(minute=0, second=0, microsecond=0)
    return until - timedelta(days=WEEK), until


def hours_known(now: datetime) -> int:
    """Hours of the window in which anybody called."""
    since, until = window(now)
    return HourlyCalls.objects.filter(hour__gte=since, hour__lt=until).values("hour").distinct().count()


def scene(until: datetime, seed: int, rules: Policy) -> tuple[Scene, int]:
    """(the past up to `until`, calls that are bunched). Some ten queries."""
    since = until - timedelta(days=WEEK)
    world = state.world(until.timestamp(), rules=rules)
    rows = {row.name: row for row in ServiceRow.objects.all()}
    hours = [hour for hour in _hours(since, until) if hour.service in world.services]
    found = trace.calls(hours, _sessions(since, until), seed)
    made = Scene(
        world=_then(world, rows, since, until),
        began=since.timestamp(),
        until=until.timestamp(),
        calls=found,
        days=_days(hours, since.timestamp()),
        habits=_habits(since, world.services),
        fixed=frozenset(name for name, row in rows.items() if row.tier_fixed),
        callers=_callers(since, until),
        machine=_machine(world, since, until),
    )
    return made, trace.bunched(hours)


def _hours(since: datetime, until: datetime) -> list[trace.Hour]:
    rows = HourlyCalls.objects.filter(hour__gte=since, hour__lt=until, calls__gt=0).values_list("service", "hour")
    sums = rows.annotate(
        n=Sum("calls"), good=Sum("ok"), ms=Sum("total_ms"), prompt=Sum("prompt_tokens"), said=Sum("generated_tokens")
    )
    return [trace.Hour(name, hour.timestamp(), *counts) for name, hour, *counts in sums.order_by("hour", "service")]


def _sessions(since: datetime, until: datetime) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    rows = Session.objects.filter(last__gte=since, start__lt=until).order_by("start", "pk")
    for name, start, last in rows.values_list("service", "start", "last"):
        found[name].append((start.timestamp(), last.timestamp()))
    return found


def _days(hours: Iterable[trace.Hour], began: float) -> dict[str, Sequence[int]]:
    found: dict[str, list[int]] = defaultdict(lambda: [0] * WEEK)
    for hour in hours:
        found[hour.service][int((hour.start - began) // DAY_S)] += hour.calls
    return dict(found)


def _callers(since: datetime, until: datetime) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    rows = HourlyCalls.objects.filter(hour__gte=since, hour__lt=until).values_list("service", "tenant")
    for name, tenant, prompt, said in rows.annotate(p=Sum("prompt_tokens"), g=Sum("generated_tokens")).order_by():
        found[name][tenant] = prompt + said
    return found


def _habits(since: datetime, services: Iterable[str]) -> dict[str, Habit]:
    """What was known when the window began: hours with calls, and the minutes of first calls."""
    hours: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    called = HourlyCalls.objects.filter(hour__gte=since - HISTORY, hour__lt=since, calls__gt=0)
    for name, hour in called.values_list("service", "hour").distinct().order_by():
        there = timezone.localtime(hour)
        hours[name][_day(there)] |= 1 << there.hour
    starts: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, start in Session.objects.filter(start__lt=since).order_by("start").values_list("service", "start"):
        there = timezone.localtime(start)
        starts[name].append((_day(there), there.hour * 60 + there.minute))
    known = {*hours, *starts} & set(services)
    return {name: Habit(dict(hours.get(name, {})), starts.get(name, ())) for name in sorted(known)}


def _day(there: datetime) -> int:
    return (there.date() - EPOCH).days


# The farm as it is taken to have been


def _then(world: World, rows: Mapping[str, ServiceRow], since: datetime, until: datetime) -> World:
    began = since.timestamp()
    replicas = {r.id: _settled(r, began) for r in world.replicas.values() if _stays(r, world)}
    return World(
        hosts={name: replace(host, seen_at=began, serving=False) for name, host in world.hosts.items()},
        cards={name: _empty(card) for name, card in world.cards.items()},
        services={name: _untouched(one, rows[name], since, until) for name, one in world.services.items()},
        replicas=replicas,
        pools={name: replace(pool, refused_at=None) for name, pool in world.pools.items()},
        load_times=world.load_times,
        wake_times=world.wake_times,
        reads=world.reads,
        quotas=world.quotas,
    )


def _stays(replica: Replica, world: World) -> bool:
    """Is it there to be called, or asleep, on cards that are known?"""
    known = replica.service in world.services and all(card in world.cards for card in replica.cards)
    return known and bool(replica.cards) and replica.phase in (Phase.READY, Phase.STARTING, Phase.ASLEEP)


def _settled(replica: Replica, began: float) -> Replica:
    asleep = replica.phase is Phase.ASLEEP
    return Replica(
        replica.id, replica.service, replica.cards,
        Want.ASLEEP if asleep else Want.READY, Phase.ASLEEP if asleep else Phase.READY,
        kv_granted_mib=replica.kv_granted_mib, residue_mib=replica.residue_mib, since=began, want_since=began,
        loaded_at=began, in_flight=None if asleep else 0, can_sleep=replica.can_sleep, external=replica.external,
    )  # fmt: skip


def _empty(card: Card) -> Card:
    """What others hold on it now says nothing of a week ago. The simulation fills in what is ours."""
    return replace(
        card, unavailable_mib=card.driver_reserved_mib, releasing_mib=0, pressed_samples=0, batch_calls=None,
        batch_calls_at=None, batch_lowered_at=None,
    )  # fmt: skip


def _untouched(service: Service, row: ServiceRow, since: datetime, until: datetime) -> Service:
    """As it is declared, with none of what goes on right now; its hours are those of the window."""
    return replace(
        service, failures=(), demand=Demand(calls_7d=service.demand.calls_7d), wished_at=None, last_reclaimed_at=None,
        p99_ms=None, p99_samples=0, running=None, waiting=None, scaling=None, let_go_at=None,
        resident=_spans(row.resident_hours, since, until),
        batch_hours=_spans(row.batch_hours, since, until) if row.batch_hours else None,
    )  # fmt: skip


def _spans(hours: list[dict[str, str]], since: datetime, until: datetime) -> tuple[tuple[float, float], ...]:
    days = [since + timedelta(days=n) for n in range(WEEK + 1)]
    return tuple(sorted({span for day in days for span in intervals(hours, day.timestamp())}))


def _machine(world: World, since: datetime, until: datetime) -> Machine:
    """As loads and wakes really went; what was never measured as it usually goes."""
    usual, here = Machine(), timezone.localtime(until)
    offset = here.utcoffset() or timedelta()
    wakes = [s for times in world.wake_times.values() for s in times.seconds]
    starts = [s for key, times in world.load_times.items() for s in _beside_reading(world, key, times)]
    first, last = (timezone.localtime(since) - timedelta(days=400)).date(), here.date() + timedelta(days=3)
    return replace(
        usual,
        wake_s=fmean(wakes) if wakes else usual.wake_s,
        init_s=max(0.0, fmean(starts) - usual.warm_up_s) if starts else usual.init_s,
        site_offset_s=int(offset.total_seconds()),
        kinds=dict(kinds(first, last)),
    )


def _beside_reading(world: World, key: tuple[str, str], times: LoadTimes) -> list[float]:
    """Seconds of real starts that reading the weights does not explain."""
    service, host = world.services.get(key[0]), world.hosts.get(key[1])
    if service is None or host is None or not host.bandwidth_mib_s:
        return []
    return [max(0.0, s - service.weights_mib / host.bandwidth_mib_s) for s in times.seconds]

"""What people should know before it happens: idle copies about to go, pools nearly full, models that swap all day.

Ticked every half minute on the side of the loop: it reads a World of its own and writes notices only.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import timedelta

from django.db.models import Sum

from console import state, wire
from console.fleet.models import Pool
from console.journal.models import Decision, Event, Notice, ReclaimDay
from console.state import moment
from console.usage.models import HourlyCalls
from console.wire import Gateways
from scheduler.decision import Code
from scheduler.draft import Draft
from scheduler.memory import allocatable_mib
from scheduler.policy import Policy
from scheduler.regret import longer_idle_s
from scheduler.slots import resident_slots
from scheduler.thrash import Hour, remedies, thrashes
from scheduler.tiers import WEEK
from scheduler.waterline import Ahead, Level, ahead, levels
from scheduler.world import Phase, Service, World
from workers.control import noticed
from workers.control.noticed import Said

Kind = Notice.Kind
HOUR_S = 3600
FIRST_TO_GO = 5  # named in the notice of a pool


def run(now: float | None = None, gateways: Gateways | None = None) -> int:
    """Look once; the number of new notices."""
    now = time.time() if now is None else now
    rules = state.policy()
    world = state.world(now, wire.read_gateways() if gateways is None else gateways, rules=rules)
    draft = Draft(world, rules, now)
    going = ahead(draft)
    said = [_reclaim(one) for one in going]
    said += [_waterline(level, going, world) for level in levels(draft) if level.over]
    said += _thrashing(draft, hours(now, rules))
    said += _regretted(world, rules, now)
    _keep_levels(draft)
    kinds = (Kind.RECLAIM, Kind.WATERLINE, Kind.THRASH, Kind.REGRET)
    return noticed.sync(kinds, said, now)


def _reclaim(one: Ahead) -> Said:
    """`at` in whole minutes: a figure that moves by a second is not news."""
    numbers = {
        "at": round(one.at / 60) * 60,
        "held_mib": one.held_mib,
        "noticed": int(one.noticed),
        "tier": one.service.tier.value,
    }
    subject = f"replica {one.replica.id}"
    return Said(Kind.RECLAIM, subject, one.service.name, one.replica.id, numbers=numbers)


def _waterline(level: Level, going: list[Ahead], world: World) -> Said:
    first = [a for a in going if any(world.cards[c].pool == level.pool for c in a.replica.cards if c in world.cards)]
    numbers = {
        "used_pct": round(level.used_pct),
        "total_mib": level.total_mib,
        "first": [a.service.name for a in first[:FIRST_TO_GO]],
    }
    return Said(Kind.WATERLINE, level.pool, pool=level.pool, numbers=numbers)


def _keep_levels(draft: Draft) -> None:
    """How full each pool is and how many on-demand services it has room for: pages read the row."""
    rows = {row.name: row for row in Pool.objects.all()}
    for level in levels(draft):
        slots = resident_slots(draft, level.pool)
        seen = {"used_pct": round(level.used_pct), "awake": slots.awake, "n": slots.n, "services": slots.services}
        if level.pool in rows and rows[level.pool].level != seen:
            Pool.objects.filter(name=level.pool).update(level=seen)


def hours(now: float, rules: Policy) -> Mapping[str, Hour]:
    """By service: the last hour's loads, anti-swap waits and calls; only services that were loaded or had to wait."""
    since = moment(now - HOUR_S)
    loads = Counter(
        Event.objects.filter(at__gte=since, phase=Phase.READY, how__in=("start", "wake"), service__isnull=False)
        .order_by()
        .values_list("service__name", flat=True)
    )
    refused = Decision.objects.filter(at__gte=since, refusal__in=(Code.ANTI_SWAP, Code.NOT_NOW), service__isnull=False)
    waits = Counter(
        name
        for name, refusal, numbers in refused.order_by().values_list("service__name", "refusal", "numbers")
        if refusal == Code.ANTI_SWAP or "rest_s" in numbers
    )
    names = loads.keys() | waits.keys()
    calls, cold = _calls(names, now) if names else ({}, {})
    found = {}
    for name in names:
        # The journal has one row a standing wish; calls that joined it waited as well, all but those that loaded.
        joined = max(0, round(cold.get(name, 0.0)) - loads[name]) if waits[name] else 0
        found[name] = Hour(loads[name], max(waits[name], joined), calls.get(name, 0.0))
    return found


def _calls(names: Collection[str], now: float) -> tuple[dict[str, float], dict[str, float]]:
    """Calls of the last hour, and those that found it not ready: the running hour's, of the one before what is left."""
    hour = moment(now).replace(minute=0, second=0, microsecond=0)
    rows = HourlyCalls.objects.filter(hour__gte=hour - timedelta(hours=1), service__in=names).order_by()
    left = 1.0 - (now - hour.timestamp()) / HOUR_S
    calls: dict[str, float] = defaultdict(float)
    waited: dict[str, float] = defaultdict(float)
    for name, when, n, cold in rows.values_list("service", "hour").annotate(n=Sum("calls"), cold=Sum("cold")):
        share = 1.0 if when >= hour else left
        calls[name] += n * share
        waited[name] += cold * share
    return calls, waited


def _thrashing(draft: Draft, by_service: Mapping[str, Hour]) -> list[Said]:
    found = []
    for name, hour in sorted(by_service.items()):
        service = draft.services.get(name)
        if service is None or not thrashes(hour, draft.policy):
            continue
        numbers = {"loads": hour.loads, "waits": hour.waits, "calls": round(hour.calls), **_prices(draft, service)}
        found.append(Said(Kind.THRASH, name, name, numbers=numbers))
    return found


def _prices(draft: Draft, service: Service) -> dict[str, object]:
    """On the card it sits on, else on the cheapest that has its size."""
    sits = [draft.book(c) for r in draft.of_service(service.name) for c in r.cards if c in draft.world.cards]
    books = sits or [draft.book(c) for c in sorted(draft.world.cards)]
    sized = [(b.card.price_fen_h, b.card.id, room) for b in books if (room := allocatable_mib(b))]
    if not sized:
        return {}
    price, _, room = min(sized)
    return {f"{one.kind}_fen_h": one.fen_h for one in remedies(service, draft.policy, room, price)} | {
        f"{one.kind}_to": one.tier.value for one in remedies(service, draft.policy, room, price) if one.tier
    }


def _regretted(world: World, rules: Policy, now: float) -> list[Said]:
    """Services reclaimed too early this week, with the idle time that would have spared them."""
    since = moment(now - WEEK * 24 * HOUR_S).date()
    rows = ReclaimDay.objects.filter(day__gte=since, regrets__gt=0).order_by()
    weeks = rows.values_list("service__name").annotate(n=Sum("regrets"))
    found = []
    for name, count in sorted(weeks):
        if count >= rules.regrets_a_week and name in world.services:
            longer = longer_idle_s(rules.idle_unload_s, [rules.regret_within_s])
            numbers = {"regrets": count, "idle_s": rules.idle_unload_s, "longer_idle_s": longer}
            found.append(Said(Kind.REGRET, name, name, numbers=numbers))
    return found

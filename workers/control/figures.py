"""What a check-up looks at, from rows and a World: a handful of queries, whatever the size of the farm."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from django.db.models import F, Sum

from console.fleet.models import Card as CardRow
from console.journal.models import Decision
from console.money.models import CardHour
from console.money.months import local
from console.state import moment
from console.usage.models import HourlyCalls, Session
from scheduler.draft import Draft
from scheduler.estimate import learned
from scheduler.hold import hold_cap_s
from scheduler.kept import HALF_EMPTY, QUESTIONS
from scheduler.memory import allocatable_mib, held_mib
from scheduler.policy import Policy
from scheduler.symptoms import Broken, Busy, Caps, Figures, Mornings, Neighbour, PoolUse, Resident, Swaps
from scheduler.thrash import remedies
from scheduler.tiers import WEEK
from scheduler.world import Card, Phase, Replica, Service, World
from workers.control.watch import hours

HOUR_S, DAY_S, MS = 3600, 86400, 1000
LOOK_BACK = timedelta(hours=2)  # of a pool's means: the running hour and the one before
#: What keeps a copy for good reason; being hot is what the advice is about, and a little used card passes.
GOOD_REASONS = {name: ask for name, ask in QUESTIONS.items() if name not in ("hot", HALF_EMPTY)}


def gather(world: World, rules: Policy, now: float) -> Figures:
    """All six."""
    draft = Draft(world, rules, now)
    calls = calls_24h(now)
    return Figures(
        pools=pools(draft, calls),
        mornings=mornings(world, rules, now),
        caps=caps(draft, calls, now),
        broken=broken(world, now),
        swaps=swaps(draft, now),
        busy=busy(draft),
    )


def calls_24h(now: float) -> Mapping[str, int]:
    rows = HourlyCalls.objects.filter(hour__gte=moment(now - DAY_S)).order_by().values_list("service")
    return dict(rows.annotate(n=Sum("calls")))


def pools(draft: Draft, calls: Mapping[str, int]) -> list[PoolUse]:
    """Means of the cards' samples, and who is awake there."""
    sums: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    pool_of = dict(CardRow.objects.values_list("uuid", "pool__name"))
    rows = CardHour.objects.filter(hour__gt=moment(draft.now) - LOOK_BACK, samples__gt=0).order_by().values_list("card")
    columns = {name: Sum(name) for name in ("used_mib", "util_pct", "util_samples", "samples")}
    totals = rows.annotate(whole=Sum(F("total_mib") * F("samples")), **{f"n_{n}": s for n, s in columns.items()})
    for row in totals.values("card", "whole", *(f"n_{n}" for n in columns)):
        if row["card"] in pool_of and row["whole"]:
            util = row["n_util_pct"] / row["n_util_samples"] if row["n_util_samples"] else None
            sums[pool_of[row["card"]]].append((100 * row["n_used_mib"] / row["whole"], util))
    found = []
    for pool, cards in sorted(sums.items()):
        utils = [util for _, util in cards if util is not None]
        used = sum(used for used, _ in cards) / len(cards)
        mean = sum(utils) / len(utils) if utils else None
        found.append(PoolUse(pool, len(cards), used, mean, tuple(residents(draft, pool, calls))))
    return found


def residents(draft: Draft, pool: str, calls: Mapping[str, int]) -> Iterable[Resident]:
    gains: Counter[str] = Counter()
    kept: set[str] = set()
    for replica in draft.replicas.values():
        service = draft.services.get(replica.service)
        if service is None or replica.phase is not Phase.READY or not _sits_in(draft, replica, pool):
            continue
        held = held_mib(replica, service, draft.policy)
        residue = draft.policy.default_residue_mib if replica.residue_mib is None else replica.residue_mib
        gains[service.name] += max(0, held - residue) * len(replica.cards)
        if replica.external or any(ask(draft, replica, service) for ask in GOOD_REASONS.values()):
            kept.add(service.name)
    return (Resident(name, mib, calls.get(name, 0), name in kept) for name, mib in sorted(gains.items()))


def _sits_in(draft: Draft, replica: Replica, pool: str) -> bool:
    return any(card in draft.world.cards and draft.world.cards[card].pool == pool for card in replica.cards)


def mornings(world: World, rules: Policy, now: float) -> list[Mornings]:
    """Of services whose sessions often began with a wait: what the first caller of each day waited."""
    since = moment(now - WEEK * DAY_S)
    missed = Counter(Session.objects.filter(start__gte=since, hit=False).order_by().values_list("service", flat=True))
    names = [name for name, n in missed.items() if n >= rules.first_call_days and name in world.services]
    if not names:
        return []
    firsts: dict[str, dict[date, tuple[Any, bool]]] = defaultdict(dict)
    sessions = Session.objects.filter(start__gte=since, service__in=names).order_by("start")
    for name, start, hit in sessions.values_list("service", "start", "hit"):
        firsts[name].setdefault(local(start).date(), (start, hit))
    waits = _waits(names, since)
    found = []
    for name, days in sorted(firsts.items()):
        waited = tuple(0.0 if hit else waits.get((name, _hour(start)), 0.0) for start, hit in days.values())
        usual = Counter(local(start).hour for start, hit in days.values()).most_common(1)[0][0]
        found.append(Mornings(name, waited, usual, world.services[name].can_sleep))
    return found


def _waits(names: Iterable[str], since: Any) -> dict[tuple[str, Any], float]:
    """(service, hour) → mean seconds that its held callers waited."""
    rows = HourlyCalls.objects.filter(service__in=names, hour__gte=_hour(since), cold__gt=0).order_by()
    sums = rows.values_list("service", "hour").annotate(ms=Sum("hold_ms"), n=Sum("cold"))
    return {(name, hour): ms / n / MS for name, hour, ms, n in sums}


def _hour(when: Any) -> Any:
    return when.replace(minute=0, second=0, microsecond=0)


def caps(draft: Draft, calls: Mapping[str, int], now: float) -> list[Caps]:
    rows = HourlyCalls.objects.filter(hour__gte=moment(now - DAY_S), capped__gt=0).order_by().values_list("service")
    return [
        Caps(name, n, calls.get(name, n), hold_cap_s(draft.policy, draft.services[name]), load_s(draft, name))
        for name, n in sorted(rows.annotate(n=Sum("capped")))
        if name in draft.services
    ]


def load_s(draft: Draft, service: str) -> float | None:
    """Mean of its last real loads on the host where that takes longest; None: never loaded."""
    times = [t for (name, _), t in draft.world.load_times.items() if name == service]
    known = [one.seconds for t in times if (one := learned(draft.policy, t)) is not None]
    return max(known, default=None)


def broken(world: World, now: float) -> list[Broken]:
    copies: dict[str, list[Replica]] = defaultdict(list)
    for replica in world.replicas.values():
        copies[replica.service].append(replica)
    failing = {name for name, own in copies.items() if any(r.phase is Phase.FAILED for r in own)}
    failing |= {name for name, service in world.services.items() if service.failures}
    return [_broken(world.services[name], copies[name], now) for name in sorted(failing) if name in world.services]


def _broken(service: Service, copies: Iterable[Replica], now: float) -> Broken:
    own = list(copies)
    failed = [(r.failed_at, r.fault) for r in own if r.phase is Phase.FAILED and r.failed_at is not None]
    failed += [(f.at, f.code) for f in service.failures]
    first, last = min(failed, default=(now, "")), max(failed, default=(now, ""))
    return Broken(
        service.name,
        now - first[0],
        len(failed),
        last[1],
        ready=sum(r.phase in (Phase.READY, Phase.ASLEEP) for r in own),
        coming=sum(r.phase is Phase.STARTING for r in own),
        calls=service.demand.held,
    )


def swaps(draft: Draft, now: float) -> list[Swaps]:
    by_service = {name: hour for name, hour in hours(now, draft.policy).items() if name in draft.services}
    if not by_service:
        return []
    partners = _partners(now)
    found = []
    for name, hour in sorted(by_service.items()):
        fen = prices(draft, draft.services[name])
        found.append(Swaps(name, hour, tuple(sorted(partners[name])), fen.get("slot"), fen.get("tier")))
    return found


def _partners(now: float) -> dict[str, set[str]]:
    """Who went for whom in the last hour, both ways."""
    rows = Decision.objects.filter(at__gte=moment(now - HOUR_S), reason="room", refusal="", verb__in=("drain", "stop"))
    found: dict[str, set[str]] = defaultdict(set)
    for went, numbers in rows.values_list("service__name", "numbers"):
        came = numbers.get("room_for")
        if went and came and came != went:
            found[went].add(came)
            found[came].add(went)
    return found


def prices(draft: Draft, service: Service) -> dict[str, int]:
    """Kind of remedy → fen an hour, on the cheapest card that the service sits on, or could."""
    sits = {c for r in draft.of_service(service.name) for c in r.cards if c in draft.world.cards}
    cards = [draft.world.cards[c] for c in sorted(sits)] or suitable(draft.world, service)
    sized = [(card.price_fen_h, card.id, mib) for card in cards if (mib := allocatable_mib(draft.book(card.id)))]
    if not sized:
        return {}
    price, _, mib = min(sized)
    return {one.kind: one.fen_h for one in remedies(service, draft.policy, mib, price)}


def suitable(world: World, service: Service) -> list[Card]:
    """Cards of its pools and classes, by id."""
    return [
        card
        for _, card in sorted(world.cards.items())
        if (not service.pools or card.pool in service.pools)
        and (not service.card_classes or card.card_class in service.card_classes)
    ]


def busy(draft: Draft) -> list[Busy]:
    found = []
    for name, service in sorted(draft.services.items()):
        if service.p99_ms is None or not service.waiting:
            continue
        beside = {
            n.replica: n for r in draft.of_service(name) for card in r.cards for n in neighbours(draft, name, card)
        }
        target = service.p99_target_ms or draft.policy.slow_p99_ms
        found.append(Busy(name, service.waiting, service.p99_ms, target, tuple(beside.values())))
    return found


def neighbours(draft: Draft, service: str, card: str) -> Iterable[Neighbour]:
    """Copies of others on the card that have nothing in flight."""
    for other in draft.on_card(card):
        known = draft.services.get(other.service)
        if other.service == service or known is None or other.external or other.in_flight != 0:
            continue
        called = max(other.last_call_at or 0.0, other.loaded_at or other.since)
        yield Neighbour(other.service, other.id, draft.now - called, held_mib(other, known, draft.policy))

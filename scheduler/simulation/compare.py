"""Two policies on the same past: what was measured of each, by class of service, by tenant and by service.

The past is a `Scene`; who makes it up from what was recorded has the seed. Nothing is drawn here, so equal policies
have equal sides.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduler.cost import HOUR_S, apportioned
from scheduler.draft import Draft
from scheduler.fitted import Used, fitted_to_farm, used
from scheduler.policy import Policy
from scheduler.simulation.farm import steps
from scheduler.simulation.measures import Measures, OfService, Waits
from scheduler.simulation.trace import Call, Growth, Habit, Machine, Trace
from scheduler.tiers import recomputed
from scheduler.world import Service, World

STEP_S = 3600.0  # simulated, between two words on progress


@dataclass(frozen=True, slots=True)
class Scene:
    """The past as a simulation takes it. Seconds since the epoch.

    `days`: by service, calls on each of the seven days; `fixed`: services whose tier a person fixed. `callers`: by
    service, tokens by the tenant that called: its money is split so, without any its own tenant pays.
    """

    world: World
    began: float
    until: float
    calls: Sequence[Call]
    days: Mapping[str, Sequence[int]]
    growths: Sequence[Growth] = ()
    habits: Mapping[str, Habit] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    callers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)


@dataclass(frozen=True, slots=True)
class Figures:
    """Of some services together. Waits are of calls that were held and then answered; None: there were none.

    `refused`: calls told to come back, given up, or cut. `fen` None: a card's price is not known. `memory_mib_h`: by
    the ledger, headroom too.
    """

    calls: int = 0
    cold_starts: int = 0
    waited: int = 0
    wait_mean_s: float | None = None
    wait_p95_s: float | None = None
    wait_p99_s: float | None = None
    refused: int = 0
    evictions: int = 0
    reclaims: int = 0
    harmful: int = 0
    memory_mib_h: int = 0
    fen: int | None = 0


@dataclass(frozen=True, slots=True)
class Side:
    """What one policy made of the past. `pressures`: times that a card came over the pressure line."""

    whole: Figures
    by_class: Mapping[str, Figures]
    by_tenant: Mapping[str, Figures]
    by_service: Mapping[str, Figures]
    pressures: int


@dataclass(frozen=True, slots=True)
class Comparison:
    old: Side
    new: Side


def compare(scene: Scene, before: Policy, after: Policy) -> Generator[float, None, Comparison]:
    """Yields the share done, 0..1; returns both sides."""
    old = yield from _share(side(scene, before), 0.0)
    new = yield from _share(side(scene, after), 0.5)
    return Comparison(old, new)


def _share(going: Generator[float, None, Side], done: float) -> Generator[float, None, Side]:
    while True:
        try:
            yield done + next(going) / 2
        except StopIteration as end:
            found: Side = end.value
            return found


def side(scene: Scene, policy: Policy) -> Generator[float, None, Side]:
    """One policy on the scene: yields the share done, 0..1."""
    world = with_tiers(scene, policy)
    trace = Trace(scene.calls, scene.growths, scene.habits, tiers_stand=True)
    going = steps(
        world, policy, trace, scene.until, began=scene.began, every_s=STEP_S, machine=scene.machine, strands=False
    )
    while True:
        try:
            yield (next(going) - scene.began) / (scene.until - scene.began)
        except StopIteration as end:
            return told(scene, end.value)


def with_tiers(scene: Scene, policy: Policy) -> World:
    """Services with the tier that this policy gives them for these very days; they keep it all the week."""
    rules = thresholds(scene, policy)
    services = {name: _with_tier(scene, service, rules) for name, service in scene.world.services.items()}
    return replace(scene.world, services=services)


def thresholds(scene: Scene, policy: Policy) -> Policy:
    """Where the policy says that they are fitted to the farm, with these."""
    if not policy.tiers_fitted:
        return policy
    draft = Draft(scene.world, policy, scene.began)
    weeks = [_week(scene, service) for service in scene.world.services.values()]
    return fitted_to_farm(draft, weeks).into(policy)


def _week(scene: Scene, service: Service) -> Used:
    return replace(used(service), calls_7d=sum(scene.days.get(service.name, ())))


def _with_tier(scene: Scene, service: Service, rules: Policy) -> Service:
    days = scene.days.get(service.name)
    if service.name in scene.fixed or not days:
        return service
    return replace(service, tier=recomputed(service.tier, days, rules))


def told(scene: Scene, measures: Measures) -> Side:
    """The measures of a run, summed as they are read."""
    services = scene.world.services
    own = {name: figures([measures.of[name]], sum(scene.days.get(name, ()))) for name in sorted(services)}
    classes, tenants = _by(services, measures, own, "profile"), _by(services, measures, own, "tenant")
    paid = _paid(scene, own)
    return Side(
        whole=figures([measures.of[name] for name in own], sum(one.calls for one in own.values())),
        by_class=classes,
        by_tenant={tenant: replace(one, fen=paid.get(tenant, 0)) for tenant, one in _all(tenants, paid).items()},
        by_service=own,
        pressures=measures.pressures,
    )


def figures(parts: Sequence[OfService], calls: int) -> Figures:
    """The sum of some services."""
    waits = _merged(part.waits for part in parts)
    return Figures(
        calls=calls,
        cold_starts=sum(p.cold_starts for p in parts),
        waited=waits.count,
        wait_mean_s=waits.total_s / waits.count if waits.count else None,
        wait_p95_s=waits.at(0.95),
        wait_p99_s=waits.at(0.99),
        refused=sum(p.told + p.cut for p in parts),
        evictions=sum(p.evictions for p in parts),
        reclaims=sum(p.reclaims for p in parts),
        harmful=sum(p.harmful_reclaims for p in parts),
        memory_mib_h=round(sum(p.held_mib_s for p in parts) / HOUR_S),
        fen=None if any(p.unpriced for p in parts) else sum(round(p.fen) for p in parts),
    )


def _merged(parts: Iterable[Waits]) -> Waits:
    whole = Waits()
    for part in parts:
        if part.count:
            both = zip(whole.tally.counts, part.tally.counts, strict=True)
            whole.tally.counts = array("I", map(sum, both))
        whole.count += part.count
        whole.total_s += part.total_s
    return whole


def _by(
    services: Mapping[str, Service], measures: Measures, own: Mapping[str, Figures], what: str
) -> dict[str, Figures]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in own:
        groups[str(getattr(services[name], what))].append(name)
    return {
        key: figures([measures.of[name] for name in names], sum(own[name].calls for name in names))
        for key, names in sorted(groups.items())
    }


def _paid(scene: Scene, own: Mapping[str, Figures]) -> dict[str, int | None]:
    """Fen by tenant: a service's money is its callers', by tokens. None: part of it is not known."""
    paid: dict[str, int | None] = {}
    for name, one in own.items():
        tokens = {t: n for t, n in scene.callers.get(name, {}).items() if n > 0}
        payers = tokens or {scene.world.services[name].tenant: 1}
        parts = [None] * len(payers) if one.fen is None else apportioned(one.fen, list(payers.values()))
        for tenant, part in zip(payers, parts, strict=True):
            before = paid.get(tenant, 0)
            paid[tenant] = None if before is None or part is None else before + part
    return paid


def _all(tenants: Mapping[str, Figures], paid: Mapping[str, int | None]) -> dict[str, Figures]:
    """Who only calls others' services is there too."""
    return {tenant: tenants.get(tenant, Figures()) for tenant in sorted({*tenants, *paid})}

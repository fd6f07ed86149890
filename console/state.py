"""The seam: rows to World, and nobody else translates.

A World is read in a handful of queries, whatever the size of the farm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db.models import Sum
from django.utils import timezone

from console import lately, machines, reading
from console.catalog.models import Replica as ReplicaRow
from console.catalog.models import Service as ServiceRow
from console.fleet.foreign import taken
from console.fleet.quotas import quotas
from console.forecasts import forecasts, reads
from console.load_times import load_times
from console.loads import Load, loads
from console.looks import scalings
from console.machines import at as at
from console.money import seam
from console.unchanged import Unchanged
from console.usage.models import HourlyCalls
from console.wire import UNKNOWN, Gateways, ReplicaLatency, ServiceCount
from console.workdays import Spans, intervals
from scheduler.freeze import fell_together
from scheduler.layers import NOTHING_SET, Overrides
from scheduler.lifecycle import seen_phase
from scheduler.looks import Scaling
from scheduler.move import Move
from scheduler.policy import DEFAULT, Policy
from scheduler.settable import numbers
from scheduler.world import (
    Act,
    Claim,
    Demand,
    Failure,
    Order,
    Phase,
    Profile,
    Replica,
    Service,
    Tier,
    Want,
    World,
)

WEEK_S = 7 * 86400
Hours = tuple[Spans, Spans | None]  # resident ones, and its own batch window
NO_HOURS: Hours = ((), None)
UNHEARD = (None, False)  # calls in flight of a copy, and whether it is quiet, while no gateway is heard
IDLE, UNMEASURED = Load(), ReplicaLatency()
Week = tuple[int, float | None]  # calls of 7 days, and mean seconds of a good answer
UNCALLED: Week = (0, None)
NOBODY: tuple[ServiceCount, ...] = ()
_known_policy: Unchanged[Policy] = Unchanged()
_known_services: Unchanged[Service] = Unchanged()
_known_replicas: Unchanged[Replica] = Unchanged()


def moment(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def site_minute(now: float) -> int:
    """Of the day, by the site's clock."""
    there = timezone.localtime(moment(now))
    return there.hour * 60 + there.minute


def policy() -> Policy:
    """The group's policy, defaults under what somebody set, with the values of pools and services over it."""
    rows = reading.POLICY_VALUES.all()
    return _known_policy.of("", rows, partial(_policy, rows))


def _policy(rows: list[Any]) -> Policy:
    known = numbers()
    layers: dict[str, dict[str, dict[str, float]]] = {"group": {}, "pool": {}, "service": {}}
    for _, layer, subject, name, value in rows:
        if name in known and layer in layers:
            layers[layer].setdefault(subject, {})[name] = value
    overrides = Overrides(layers["pool"], layers["service"]) if layers["pool"] or layers["service"] else NOTHING_SET
    group = {name: type(getattr(DEFAULT, name))(value) for name, value in layers["group"].get("", {}).items()}
    return Policy(**group, overrides=overrides)


def world(
    now: float,
    gateways: Gateways = UNKNOWN,
    *,
    rules: Policy | None = None,
    week_of: Collection[str] | None = None,
    week: reading.Week | None = None,
) -> World:
    """Everything the planner may know at `now`. Without `gateways` all traffic counts are unknown.

    `week_of`: a page that asks about these services reads nobody else's calls of the week. `week`: the loop, which
    asks every second, has them at hand.
    """
    rules = rules or policy()
    farm = machines.cards(taken(moment(now)))
    replicas = _replicas(gateways)
    week = reading.week(moment(now - WEEK_S), week_of) if week is None else week
    busy = loads(replicas.values(), gateways)
    scaled = scalings()
    hosts = machines.hosts(gateways, now)
    starts, wakes = load_times()
    swaps, throttled = lately.made_way(moment(now - rules.min_loaded_s), moment(now - rules.throttle_pause_s))
    return World(
        hosts=hosts,
        cards=farm,
        services=_services(rules, now, _counts(gateways), week, (busy, scaled)),
        replicas=replicas,
        pools=machines.pools(),
        load_times=starts,
        wake_times=wakes,
        reads=reads(),
        forecasts=forecasts(),
        swaps=swaps,
        throttled=throttled,
        site_minute=site_minute(now),
        evictions=lately.evictions(moment(now - max(rules.rebuild_within_s, rules.evicted_apart_s))),
        orders=_orders(),
        moves=_moves(),
        budgets=seam.card_budgets(moment(now)),
        quotas=quotas(),
        frozen=fell_together(hosts.values(), rules, now),
    )


def _replicas(gateways: Gateways) -> dict[int, Replica]:
    """By their ids."""
    rows, measured = reading.replicas(), gateways.latencies.replicas
    flying = [traffic(row, gateways) for row in rows] if gateways.known else [UNHEARD] * len(rows)
    asked = [
        (row.pk, (row, row.service__name, *counts, measured.get(row.pk, UNMEASURED)))
        for row, counts in zip(rows, flying, strict=True)
    ]
    return {one.id: one for one in _known_replicas.each(asked, _new_replica)}


def _services(
    rules: Policy,
    now: float,
    counts: Mapping[str, tuple[ServiceCount, ...]],
    week: reading.Week,
    loaded: tuple[Mapping[str, Load], Mapping[int, Scaling]],
) -> dict[str, Service]:
    """All of them, by name."""
    (busy, scaled), overhead_mib = loaded, rules.default_overhead_mib
    said = (
        (
            row,
            pools_of,
            overhead_mib,
            counts.get(row.name, NOBODY),
            week.get(row.name, UNCALLED),
            busy.get(row.name, IDLE),
            scaled.get(row.pk),
            _hours(row, now),
        )
        for row, pools_of in reading.services()
    )
    return _built(said)


def _built(said: Iterable[tuple[Any, ...]]) -> dict[str, Service]:
    """Services by name; each tuple as `_new_service` takes it."""
    return {one.name: one for one in _known_services.each([(one[0].pk, one) for one in said], _new_service)}


def calls_7d(now: float) -> Mapping[str, int]:
    """Calls of the last 7 days by service name."""
    since = moment(now - WEEK_S)
    return dict(HourlyCalls.objects.filter(hour__gte=since).values_list("service").annotate(Sum("calls")).order_by())


def traffic(row: Any, gateways: Gateways) -> tuple[int | None, bool]:
    """(calls in flight or None, quiet): quiet when every live gateway let go of it and nothing is in flight anywhere.

    The door counts too: a gateway cut off from Redis still shows there.
    """
    if not gateways.known:
        return UNHEARD
    counted = sum(gateway.in_flight.get(str(row.pk), 0) for gateway in gateways.gateways)
    total = max(counted, row.door_in_flight) if row.door_in_flight is not None else counted
    let_go = row.unrouted_version is not None and all(
        gateway.routes_version >= row.unrouted_version for gateway in gateways.gateways
    )
    return total, let_go and total == 0 and row.door_in_flight == 0


def claim_of(row: Any, rules: Policy) -> Claim:
    return _claim(row, rules.default_overhead_mib)


def _claim(row: Any, overhead_mib: int) -> Claim:
    """`overhead_mib` stands where none was ever measured."""
    overhead = overhead_mib if row.overhead_mib is None else row.overhead_mib
    return Claim(row.weights_mib, row.kv_cap_mib, row.headroom_mib, overhead)


def _hours(row: Any, now: float) -> Hours:
    if not row.resident_hours and not row.batch_hours:
        return NO_HOURS
    return intervals(row.resident_hours, now), intervals(row.batch_hours, now) if row.batch_hours else None


def _counts(gateways: Gateways) -> Mapping[str, tuple[ServiceCount, ...]]:
    """What each gateway that knows of it says of a service, by its name."""
    found: dict[str, tuple[ServiceCount, ...]] = {}
    for gateway in gateways.gateways:
        for name, count in gateway.services.items():
            found[name] = (*found.get(name, NOBODY), count)
    return found


def _new_service(
    row: Any,
    pools_of: frozenset[str],
    overhead_mib: int,
    counts: tuple[ServiceCount, ...] = NOBODY,
    week: Week = UNCALLED,
    load: Load = IDLE,
    scaling: Scaling | None = None,
    hours: Hours = NO_HOURS,
) -> Service:
    return Service(
        name=row.name,
        tenant=row.tenant__slug,
        claim=_claim(row, overhead_mib),
        profile=Profile(row.profile),
        tier=Tier(row.tier),
        priority=row.priority,
        min_replicas=row.min_replicas,
        max_replicas=row.max_replicas,
        pools=pools_of,
        card_classes=frozenset(row.card_classes),
        min_compute_cap=row.model__min_compute_cap,
        one_request_mib=-(-row.max_model_len * row.model__kv_bytes_per_token // (2**20 * row.cards_per_replica)),
        whitelisted_until=at(row.whitelisted_until),
        first_token_s=row.first_token_s,
        can_sleep=row.can_sleep,
        hold_cap_s=None if row.hold_cap_s is None else float(row.hold_cap_s),
        generation_s=week[1],
        max_num_seqs=row.max_num_seqs,
        slice_required=row.slice_required,
        cards_per_replica=row.cards_per_replica,
        starts_28d=row.starts_28d,
        p99_target_ms=row.p99_target_ms,
        **load.fields(row.profile),
        scaling=scaling,
        failures=tuple(_failure(failure) for failure in row.failures),
        demand=_demand(row, counts, week[0]),
        wished_at=at(row.wished_at),
        last_reclaimed_at=at(row.last_reclaimed_at),
        let_go_at=at(row.let_go_at),
        shards=row.model__shards,
        resident=hours[0],
        batch_hours=hours[1],
    )


def _failure(row: dict[str, Any]) -> Failure:
    return Failure(**row | {"beside": tuple(row.get("beside", ()))})


def services_named(names: Iterable[str], rules: Policy) -> dict[str, Service]:
    """Whole services, without their traffic."""
    return _built((row, pools_of, rules.default_overhead_mib) for row, pools_of in reading.services(names))


def claim_only(row: ServiceRow, rules: Policy) -> Service:
    """A service as far as memory arithmetic needs it: no relations are read."""
    return Service(
        row.name,
        "",
        claim_of(row, rules),
        Profile(row.profile),
        Tier(row.tier),
        cards_per_replica=row.cards_per_replica,
    )


def seen(row: ReplicaRow) -> Replica:
    """A replica without its traffic, for memory arithmetic."""
    return _new_replica(row, row.service.name, *UNHEARD)


def _demand(row: Any, counts: tuple[ServiceCount, ...], calls: int) -> Demand:
    held = streams = 0
    since: list[float] = []
    expected: list[float] = []
    called = [stamp] if (stamp := at(row.last_call_at)) is not None else []
    for count in counts:
        held += count.held
        streams += count.held_streams
        since += [count.held_since] if count.held_since is not None else []
        called += [count.last_call_at] if count.last_call_at is not None else []
        expected += [count.expected_until] if count.expected_until is not None else []
    return Demand(
        held, streams, min(since, default=None), max(called, default=None), calls, max(expected, default=None)
    )


def _new_replica(
    row: Any, service: str, in_flight: int | None, quiet: bool, latency: ReplicaLatency = UNMEASURED
) -> Replica:
    want, reported = Want(row.want), Phase(row.phase)
    return Replica(
        id=row.pk,
        service=service,
        cards=tuple(row.cards),
        want=want,
        phase=seen_phase(want, row.attempt, reported, row.phase_attempt),
        attempt=row.attempt,
        kv_granted_mib=row.kv_granted_mib,
        measured_mib=row.measured_mib,
        residue_mib=row.residue_mib,
        since=row.phase_since.timestamp(),
        want_since=row.want_since.timestamp(),
        loaded_at=at(row.loaded_at),
        last_call_at=at(row.last_call_at),
        in_flight=in_flight,
        quiet=quiet,
        reason=row.reason,
        drain_at=at(row.drain_at),
        stage=row.stage,
        waking=want is Want.READY and reported is Phase.ASLEEP,
        left_alone_until=at(row.left_alone_until),
        failures_here=row.failures_here,
        failed_at=at(row.failed_at),
        fault=row.fault,
        fatal=row.fatal,
        can_sleep=row.can_sleep,
        progress=row.progress,
        running=row.running,
        waiting=row.waiting,
        external=row.external,
        p99_ms=latency.p99_ms,
        disturbance_pct=latency.disturbance_pct,
        quiet_p99_ms=row.quiet_p99_ms,
        kv_used_pct=row.kv_used_pct,
        kv_full_samples=row.kv_full_samples,
    )


def _orders() -> tuple[Order, ...]:
    """Open orders, oldest first."""
    return tuple(
        Order(pk, Act(act), service, until.timestamp(), replica, count, force)
        for pk, act, service, until, replica, count, force in reading.ORDERS.all()
    )


def _moves() -> tuple[Move, ...]:
    """Of repack proposals, those that the planner may take up."""
    return tuple(
        Move(pk, proposal, number, replica, service, tuple(target), copy)
        for pk, proposal, number, replica, service, target, copy in reading.MOVES.all()
    )

"""The seam: rows to World, and nobody else translates.

A World is read in a handful of queries, whatever the size of the farm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from django.db.models import Sum
from django.utils import timezone

from console import lately, reading
from console.catalog.models import Order as OrderRow
from console.catalog.models import Replica as ReplicaRow
from console.catalog.models import Service as ServiceRow
from console.fleet.foreign import Taken, taken
from console.fleet.models import Card as CardRow
from console.fleet.models import Host as HostRow
from console.fleet.models import Pool as PoolRow
from console.fleet.quotas import quotas
from console.forecasts import forecasts, reads
from console.load_times import load_times
from console.loads import Load, loads
from console.looks import scalings
from console.money import seam
from console.policies.models import PolicyValue
from console.repack import proposals
from console.unchanged import Unchanged
from console.usage.models import HourlyCalls
from console.wire import UNKNOWN, Gateways, ReplicaLatency
from console.workdays import Spans, intervals
from scheduler.freeze import fell_together
from scheduler.layers import Overrides
from scheduler.lifecycle import seen_phase
from scheduler.looks import Scaling
from scheduler.move import Move
from scheduler.policy import DEFAULT, Policy
from scheduler.settable import numbers
from scheduler.world import (
    Act,
    Card,
    Claim,
    Demand,
    Failure,
    Host,
    Order,
    Phase,
    Pool,
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
IDLE, UNMEASURED = Load(), ReplicaLatency()
PROBE_FRESH_S = 15.0  # a gateway's word that a host's engines answer
_known_services: Unchanged[Service] = Unchanged()
_known_replicas: Unchanged[Replica] = Unchanged()


def at(moment: datetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


def moment(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, UTC)


def site_minute(now: float) -> int:
    """Of the day, by the site's clock."""
    there = timezone.localtime(moment(now))
    return there.hour * 60 + there.minute


def policy() -> Policy:
    """The group's policy, defaults under what somebody set, with the values of pools and services over it."""
    known = numbers()
    layers: dict[str, dict[str, dict[str, float]]] = {"group": {}, "pool": {}, "service": {}}
    for layer, subject, name, value in PolicyValue.objects.values_list("layer", "subject", "name", "value"):
        if name in known and layer in layers:
            layers[layer].setdefault(subject, {})[name] = value
    overrides = Overrides(layers["pool"], layers["service"])
    group = {name: type(getattr(DEFAULT, name))(value) for name, value in layers["group"].get("", {}).items()}
    return Policy(**group, overrides=overrides)


def world(
    now: float,
    gateways: Gateways = UNKNOWN,
    *,
    rules: Policy | None = None,
    week_of: Collection[str] | None = None,
) -> World:
    """Everything the planner may know at `now`. Without `gateways` all traffic counts are unknown.

    `week_of`: a page that asks about these services reads nobody else's calls of the week.
    """
    rules = rules or policy()
    foreign = taken(moment(now))
    cards = {row.uuid: card_of(row, foreign) for row in reading.card_rows()}
    replicas = {row.pk: _replica(row, row.service__name, gateways) for row in reading.replicas()}
    week, busy = reading.week(moment(now - WEEK_S), week_of), loads(replicas.values(), gateways)
    scaled = scalings()
    hosts = {row.name: host_of(row, gateways, now) for row in HostRow.objects.filter(declared_gone=False)}
    starts, wakes = load_times()
    swaps, throttled = lately.made_way(moment(now - rules.min_loaded_s), moment(now - rules.throttle_pause_s))
    return World(
        hosts=hosts,
        cards=cards,
        services={
            row.name: _service(
                row,
                pools_of,
                rules,
                gateways,
                week,
                (busy.get(row.name, IDLE), scaled.get(row.pk)),
                (intervals(row.resident_hours, now), intervals(row.batch_hours, now) if row.batch_hours else None),
            )
            for row, pools_of in reading.services()
        },
        replicas=replicas,
        pools=pools(),
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


def pools() -> dict[str, Pool]:
    return {row.name: _pool(row) for row in PoolRow.objects.prefetch_related("tenants")}


def _pool(row: PoolRow) -> Pool:
    tenants = frozenset(tenant.slug for tenant in row.tenants.all())
    return Pool(
        row.name, row.purpose, row.mode, tenants, at(row.refused_at), kv=row.kv, prefetch=frozenset(row.prefetch)
    )


def calls_7d(now: float) -> Mapping[str, int]:
    """Calls of the last 7 days by service name."""
    since = moment(now - WEEK_S)
    rows = HourlyCalls.objects.filter(hour__gte=since).values("service").annotate(total=Sum("calls"))
    return {row["service"]: row["total"] for row in rows}


def traffic(row: Any, gateways: Gateways) -> tuple[int | None, bool]:
    """(calls in flight or None, quiet): quiet when every live gateway let go of it and nothing is in flight anywhere.

    The door counts too: a gateway cut off from Redis still shows there.
    """
    if not gateways.known:
        return None, False
    counted = sum(gateway.in_flight.get(str(row.pk), 0) for gateway in gateways.gateways)
    total = max(counted, row.door_in_flight) if row.door_in_flight is not None else counted
    let_go = row.unrouted_version is not None and all(
        gateway.routes_version >= row.unrouted_version for gateway in gateways.gateways
    )
    return total, let_go and total == 0 and row.door_in_flight == 0


def card_of(row: CardRow, foreign: Taken) -> Card:
    """`host` and `pool` of the row must be at hand. What others have now gets nothing new, like what is cordoned."""
    return Card(
        id=row.uuid,
        host=row.host.name,
        index=row.index,
        card_class=row.card_class,
        total_mib=row.total_mib,
        driver_reserved_mib=row.reserved_mib,
        baseline_mib=row.baseline_mib,
        unavailable_mib=None if row.free_mib is None or not row.total_mib else row.total_mib - row.free_mib,
        releasing_mib=row.release.get("releasing_mib", 0),
        pressed_samples=row.pressed_samples,
        pool=row.pool.name,
        compute_cap=row.compute_cap,
        healthy=row.healthy,
        cordoned=row.cordoned or foreign.until(row) is not None,
        price_fen_h=row.price_fen_h,
        slice_of=row.slice_of,
        batch_calls=row.batch_calls,
        batch_calls_at=at(row.batch_calls_at),
        batch_lowered_at=at(row.batch_lowered_at),
        group=row.group,
    )


def host_of(row: HostRow, gateways: Gateways, now: float) -> Host:
    reached = [gateway.reached[row.name] for gateway in gateways.gateways if row.name in gateway.reached]
    return Host(
        name=row.name,
        seen_at=at(row.seen_at),
        memory_mib=row.memory_mib,
        bandwidth_mib_s=row.bandwidth_mib_s,
        cordoned=row.cordoned,
        leave_by=at(row.maintenance_at),
        rack=row.rack,
        storage=row.storage,
        serving=bool(reached) and now - max(reached) <= PROBE_FRESH_S,
    )


def claim_of(row: Any, rules: Policy) -> Claim:
    overhead = rules.default_overhead_mib if row.overhead_mib is None else row.overhead_mib
    return Claim(row.weights_mib, row.kv_cap_mib, row.headroom_mib, overhead)


def _service(
    row: Any,
    pools_of: frozenset[str],
    rules: Policy,
    gateways: Gateways,
    week: Mapping[str, tuple[int, float | None]],
    load: tuple[Load, Scaling | None] = (IDLE, None),
    hours: Hours = NO_HOURS,
) -> Service:
    calls, generation_s = week.get(row.name, (0, None))
    demand = _demand(row, gateways, calls)
    values = (row, pools_of, rules.default_overhead_mib, demand, generation_s, load, hours)
    return _known_services.of(
        row.pk, values, lambda: _new_service(row, pools_of, rules, demand, generation_s, load, hours)
    )


def _new_service(
    row: Any,
    pools_of: frozenset[str],
    rules: Policy,
    demand: Demand,
    generation_s: float | None,
    load: tuple[Load, Scaling | None],
    hours: Hours,
) -> Service:
    return Service(
        name=row.name,
        tenant=row.tenant__slug,
        claim=claim_of(row, rules),
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
        generation_s=generation_s,
        max_num_seqs=row.max_num_seqs,
        slice_required=row.slice_required,
        cards_per_replica=row.cards_per_replica,
        starts_28d=row.starts_28d,
        p99_target_ms=row.p99_target_ms,
        **load[0].fields(row.profile),
        scaling=load[1],
        failures=tuple(_failure(failure) for failure in row.failures),
        demand=demand,
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
    return {row.name: _service(row, pools_of, rules, UNKNOWN, {}) for row, pools_of in reading.services(names)}


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
    return _replica(row, row.service.name, UNKNOWN)


def _demand(row: Any, gateways: Gateways, calls: int) -> Demand:
    held = streams = 0
    since: list[float] = []
    expected: list[float] = []
    called = [stamp] if (stamp := at(row.last_call_at)) is not None else []
    for gateway in gateways.gateways:
        if (count := gateway.services.get(row.name)) is not None:
            held += count.held
            streams += count.held_streams
            since += [count.held_since] if count.held_since is not None else []
            called += [count.last_call_at] if count.last_call_at is not None else []
            expected += [count.expected_until] if count.expected_until is not None else []
    return Demand(
        held, streams, min(since, default=None), max(called, default=None), calls, max(expected, default=None)
    )


def _replica(row: Any, service: str, gateways: Gateways) -> Replica:
    in_flight, quiet = counts = traffic(row, gateways)
    latency = gateways.latencies.replicas.get(row.pk, UNMEASURED)
    if isinstance(row, ReplicaRow):  # a model knows no equality of values
        return _new_replica(row, service, in_flight, quiet, latency)
    values = (row, counts, latency)
    return _known_replicas.of(row.pk, values, lambda: _new_replica(row, service, in_flight, quiet, latency))


def _new_replica(row: Any, service: str, in_flight: int | None, quiet: bool, latency: ReplicaLatency) -> Replica:
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
    rows = OrderRow.objects.filter(done_at=None).order_by("id")
    columns = rows.values_list("id", "act", "service__name", "until", "replica_id", "count", "force")
    return tuple(
        Order(pk, Act(act), service, until.timestamp(), replica, count, force)
        for pk, act, service, until, replica, count, force in columns
    )


def _moves() -> tuple[Move, ...]:
    """Of repack proposals, those that the planner may take up."""
    rows = proposals.may_act().order_by("proposal_id", "number")
    columns = rows.values_list("id", "proposal_id", "number", "replica_id", "service__name", "target", "copy_id")
    return tuple(
        Move(pk, proposal, number, replica, service, tuple(target), copy)
        for pk, proposal, number, replica, service, target, copy in columns
    )

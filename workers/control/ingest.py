"""Reports in: the only writer of what is seen (hosts, cards, `Replica.phase` and its company).

A host may speak of its own cards and replicas and of nothing else; the key of the stream said who it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import F, OuterRef, Q, Subquery

from console.catalog.models import LoadTime, Replica, Service
from console.fleet.models import Card, Host
from console.journal.models import Event
from console.state import moment
from console.wire import Gateways
from scheduler import kv
from scheduler import world as core
from scheduler.policy import Policy
from scheduler.pressed import samples_after
from scheduler.world import Phase
from workers.control import release, storage
from workers.messages import CardSample, HostReport, ReplicaReport, read_report

log = logging.getLogger(__name__)

TIMES_KEPT = 10  # a load estimate looks at the last ten
SKEW_ALARM_S = 1.0  # wants expire by the host's clock
TOLD = frozenset({Phase.READY, Phase.ASLEEP, Phase.STOPPED, Phase.FAILED})  # phases the journal tells of
MISSING = "not listed by the host"
CALL_RESOLUTION_S = 5  # a last call is written no finer: it decides about idle minutes


@dataclass(slots=True)
class Ingested:
    """What came in: hosts heard of, and whether a replica changed phase (the set of routes may change)."""

    hosts: set[str] = field(default_factory=set)
    phases: int = 0


def ingest(bodies: Mapping[str, tuple[float, bytes]], now: float, policy: Policy) -> Ingested:
    """Take in the newest report of each host; what cannot be read is said in the log and skipped.

    What is compared with the reports is read once for all hosts.
    """
    result = Ingested()
    reports = [report for name, (at, body) in bodies.items() if (report := _accepted(name, at, body)) is not None]
    result.hosts |= {report.host for report in reports}
    replicas, cards = _rows(result.hosts)
    for report in reports:
        before = replicas[report.host]
        result.phases += _replicas(report, before, now, policy)
        _cards(report, cards[report.host], before, now, policy)
    sampled = [report.host for report in reports if report.cards_at is not None]
    taken_at = Host.objects.filter(pk=OuterRef("host_id")).values("cards_at")[:1]
    Card.objects.filter(host__name__in=sampled).update(sampled_at=Subquery(taken_at))
    return result


def _accepted(name: str, entered_at: float, body: bytes) -> HostReport | None:
    """The report, once its host's row is written; None where it cannot be read, speaks of another, or is old."""
    try:
        report = read_report(body)
    except ValueError as error:
        log.warning("report of %s refused: %s", name, error)
        return None
    return report if report.host == name and _host(report, entered_at) else None


def _rows(hosts: Collection[str]) -> tuple[dict[str, list[Replica]], dict[str, list[Card]]]:
    """Replicas that have not ended and cards, as they are before the reports, by host."""
    names = dict(Host.objects.filter(name__in=hosts).values_list("pk", "name"))
    replicas: dict[str, list[Replica]] = defaultdict(list)
    for replica in Replica.objects.filter(host__in=names, ended_at=None):
        replicas[names[replica.host_id]].append(replica)
    cards: dict[str, list[Card]] = defaultdict(list)
    for card in Card.objects.filter(host__in=names).order_by().select_related("pool"):
        cards[names[card.host_id]].append(card)
    return replicas, cards


def _host(report: HostReport, entered_at: float) -> bool:
    """Write the host's row unless this report, or a later one of the same life, is already in."""
    skew = report.at - entered_at
    newer = ~Q(boot=report.boot) | Q(report_seq__lt=report.seq)
    written = Host.objects.filter(newer, name=report.host).update(
        seen_at=moment(entered_at),
        boot=report.boot,
        report_seq=report.seq,
        report_generation=report.generation,
        version=report.version[:40],
        door_url=report.door_url[:200],
        door_ok=report.door_ok,
        memory_mib=report.memory_mib,
        bandwidth_mib_s=max(1, report.bandwidth_mib_s),
        skew_s=skew,
        cards_at=None if report.cards_at is None else moment(report.cards_at),
    )
    if written and abs(skew) > SKEW_ALARM_S:
        log.warning("clock of %s is %.1f s apart: its wants will expire unseen", report.host, skew)
    return bool(written)


def _replicas(report: HostReport, before: Iterable[Replica], now: float, policy: Policy) -> int:
    rows = {row.pk: row for row in before}
    changed = 0
    for seen in report.replicas:
        row = rows.get(seen.id)
        if row is not None and seen.attempt <= row.attempt and seen.phase in set(Phase):
            changed += _replica(row, seen, now, policy)
    return changed


def _replica(row: Replica, seen: ReplicaReport, now: float, policy: Policy) -> bool:
    """Write what changed; True when the phase did."""
    moved = seen.phase != row.phase or seen.attempt != row.phase_attempt
    values: dict[str, Any] = {
        "stage": seen.stage[:12],
        "progress": seen.progress,
        "measured_mib": seen.measured_mib,
        "kv_used_pct": seen.kv_used_pct,
        "running": seen.running,
        "waiting": seen.waiting,
        "door_in_flight": seen.door_in_flight,
        "can_sleep": seen.can_sleep,
        "kv_full_samples": kv.samples_after(
            seen.kv_used_pct, seen.waiting, 0 if moved else row.kv_full_samples, policy
        ),
    }
    if seen.phase == Phase.ASLEEP and seen.measured_mib is not None:
        values["residue_mib"] = seen.measured_mib
    if moved:
        values |= _moved(row, seen, moment(now))
    values = {name: value for name, value in values.items() if getattr(row, name) != value}
    if values:
        here = Replica.objects.filter(pk=row.pk, attempt=row.attempt, ended_at=None).update(**values)
        if here and moved and seen.phase in TOLD and {seen.phase, row.phase} != {Phase.STOPPED}:
            _tell(row, seen, now)
    return moved


def _tell(row: Replica, seen: ReplicaReport, now: float) -> None:
    """A line in the journal: the outcome that somebody who reads the decision asks for."""
    ready, failed = seen.phase == Phase.READY, seen.phase == Phase.FAILED
    waited_s = max(0.0, round(now - row.want_since.timestamp(), 1))
    Event.objects.create(
        at=moment(now),
        phase=seen.phase,
        service_id=row.service_id,
        replica_id=row.pk,
        card=Card.objects.filter(uuid__in=row.cards).first(),
        seconds=seen.took_s if ready and seen.took_s is not None else waited_s,
        how=(seen.took or "start") if ready and seen.took_s is not None else seen.fault[:24] if failed else "",
        text=seen.fault_text[:200] if failed else "",
    )


def _moved(row: Replica, seen: ReplicaReport, now: datetime) -> dict[str, Any]:
    """The columns that belong to a change of phase."""
    values: dict[str, Any] = {
        "phase": seen.phase,
        "phase_attempt": seen.attempt,
        "phase_since": min(moment(seen.since), now),
    }
    if seen.phase == Phase.READY:
        if seen.took_s is not None:
            _learn(row, seen.took or "start", seen.took_s)
            if (seen.took or "start") == "start":
                storage.learn(row, seen.took_s)
        values |= {"quiet_p99_ms": None} if seen.took_s is not None else {}  # another card, another life
        values |= {"failures_here": 0, "fault": "", "fault_text": "", "fatal": False, "failed_at": None}
        if row.phase in (Phase.STARTING, Phase.STOPPED, Phase.ASLEEP, Phase.FAILED):
            values["loaded_at"] = now
        Service.objects.filter(pk=row.service_id).update(failures=[], wished_at=None)
    elif seen.phase == Phase.FAILED:
        values |= {
            "failures_here": F("failures_here") + 1,
            "failed_at": now,
            "fault": seen.fault[:24],
            "fault_text": seen.fault_text[:500],
            "fatal": seen.fatal,
        }
    elif seen.phase == Phase.STOPPED and row.want == "stopped" and seen.attempt == row.attempt:
        values["ended_at"] = now
    return values


def _learn(row: Replica, kind: str, took_s: float) -> None:
    times, _ = LoadTime.objects.get_or_create(service_id=row.service_id, host_id=row.host_id, kind=kind)
    times.seconds = [*times.seconds, round(took_s, 2)][-TIMES_KEPT:]
    times.save(update_fields=["seconds"])


def _cards(report: HostReport, cards: Sequence[Card], before: Sequence[Replica], now: float, policy: Policy) -> None:
    if report.cards_at is None:
        Card.objects.filter(host__name=report.host).update(free_mib=None, util_pct=None)
        return
    rows = {row.uuid: row for row in cards}
    known = [(rows[sample.uuid], sample) for sample in report.cards if sample.uuid in rows]
    releases = release.after(report, [row for row, _ in known], before, now, policy)
    for row, sample in known:
        pressed = _pressed(row, sample, moment(report.cards_at), policy)
        _card(row, sample, releases[row.uuid], pressed, _baseline(row, sample, before))
    _missing(report, cards)


def _missing(report: HostReport, cards: Sequence[Card]) -> None:
    """Cards that the host does not list any more, swapped or fallen off the bus: nothing is known of them."""
    listed = {sample.uuid for sample in report.cards}
    gone = [row.pk for row in cards if row.uuid not in listed and (row.healthy or row.note != MISSING)]
    if gone:
        Card.objects.filter(pk__in=gone).update(free_mib=None, util_pct=None, healthy=False, note=MISSING)


def _baseline(row: Card, sample: CardSample, before: Iterable[Replica]) -> int | None:
    """What the card shows with nothing of ours on it; None where each process is measured and none is needed."""
    if sample.per_process:
        return None
    occupied = any(row.uuid in one.cards and one.phase not in (Phase.STOPPED, Phase.FAILED) for one in before)
    if occupied or sample.free_mib is None or row.release:
        return sample.reserved_mib if row.baseline_mib is None else row.baseline_mib
    return sample.total_mib - sample.free_mib


def _pressed(row: Card, sample: CardSample, sampled_at: datetime, policy: Policy) -> int:
    """Samples over the pressure line. A sample that was counted already is not counted again."""
    if row.sampled_at is not None and sampled_at <= row.sampled_at:
        return row.pressed_samples
    unavailable = None if sample.free_mib is None or not sample.total_mib else sample.total_mib - sample.free_mib
    seen = core.Card(
        row.uuid,
        "",
        row.index,
        row.card_class,
        sample.total_mib,
        sample.reserved_mib,
        unavailable_mib=unavailable,
        pool=row.pool.name,
    )
    return samples_after(seen, row.pressed_samples, policy)


def _card(
    row: Card, sample: CardSample, releasing: dict[str, Any], pressed_samples: int, baseline_mib: int | None
) -> None:
    values = {
        "index": sample.index,
        "total_mib": sample.total_mib,
        "reserved_mib": sample.reserved_mib,
        "free_mib": sample.free_mib,
        "util_pct": sample.util_pct,
        "healthy": sample.healthy,
        "baseline_mib": baseline_mib,
        "note": sample.note[:200],
        "slice_of": sample.slice_of[:80],
        "compute_cap": row.compute_cap if sample.compute_cap is None else sample.compute_cap,
        "group": sample.group[:40],
        "release": releasing,
        "pressed_samples": pressed_samples,
    }
    values = {name: value for name, value in values.items() if getattr(row, name) != value}
    if values:
        Card.objects.filter(pk=row.pk).update(**values)


def take_calls(gateways: Gateways, now: float) -> None:
    """Remember when each service, and each of its replicas with calls in flight, was last used."""
    latest: dict[str, float] = {}
    busy: set[int] = set()
    for gateway in gateways.gateways:
        for name, count in gateway.services.items():
            if count.last_call_at is not None:
                latest[name] = max(latest.get(name, 0.0), min(count.last_call_at, now))
        busy |= {int(replica) for replica, calls in gateway.in_flight.items() if calls and replica.isdigit()}
    rows = Service.objects.filter(name__in=latest).values_list("pk", "name", "last_call_at")
    for pk, name, known in rows:
        if known is None or latest[name] - known.timestamp() > CALL_RESOLUTION_S:
            when = moment(latest[name])
            older = Q(last_call_at__lt=when) | Q(last_call_at=None)
            Service.objects.filter(older, pk=pk).update(last_call_at=when)
            Replica.objects.filter(older, service_id=pk, ended_at=None, phase=Phase.READY).update(last_call_at=when)
    stale = Q(last_call_at__lt=moment(now - CALL_RESOLUTION_S)) | Q(last_call_at=None)
    Replica.objects.filter(stale, pk__in=busy, ended_at=None).update(last_call_at=moment(now))

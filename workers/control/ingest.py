"""Reports in: the only writer of what is seen (hosts, cards, `Replica.phase` and its company).

A host may speak of its own cards and replicas and of nothing else; the key of the stream said who it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db.models import F, OuterRef, Q, Subquery

from console.catalog.models import LoadTime, Replica, Service
from console.fleet.models import Card, Host
from console.journal.models import Event
from console.same_rows import Standing
from console.state import moment
from console.wire import Gateways
from console.writing import update_each
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
PHASES, GONE = frozenset(Phase), (Phase.STOPPED, Phase.FAILED)
#: What moves from second to second, of a host that reports, of a replica whose phase stands, and of a card.
HOST_COLUMNS = (
    "seen_at", "boot", "report_seq", "report_generation", "version", "door_url", "door_ok", "memory_mib",
    "bandwidth_mib_s", "skew_s", "cards_at",
)  # fmt: skip
FIGURES = (
    "stage", "progress", "measured_mib", "kv_used_pct", "running", "waiting", "door_in_flight", "can_sleep",
    "kv_full_samples", "residue_mib",
)  # fmt: skip
CARD_FIGURES = (
    "index", "total_mib", "reserved_mib", "free_mib", "util_pct", "healthy", "baseline_mib", "note", "slice_of",
    "compute_cap", "group", "release", "pressed_samples",
)  # fmt: skip
NEWER = "t.boot <> v.boot OR t.report_seq < v.report_seq"
OLDER = "t.last_call_at < v.last_call_at OR t.last_call_at IS NULL"
IN_USE = f"t.ended_at IS NULL AND t.phase = '{Phase.READY.value}'"
SAME_ATTEMPT = "t.attempt = v.attempt AND t.ended_at IS NULL"
REPLICAS = Standing(lambda: Replica.objects.filter(ended_at=None).order_by(), *release.COLUMNS)
CARDS = Standing(lambda: Card.objects.order_by(), "pk", "uuid", "host_id", "card_class", "pool__name", *CARD_FIGURES)
CALLED = Standing(lambda: Service.objects.order_by(), "pk", "name", "last_call_at")
_known_figures, _known_card = attrgetter(*FIGURES), attrgetter(*CARD_FIGURES)


@dataclass(slots=True)
class Ingested:
    """What came in: hosts heard of, and whether a replica changed phase (the set of routes may change)."""

    hosts: set[str] = field(default_factory=set)
    phases: int = 0


def ingest(bodies: Mapping[str, tuple[float, bytes]], now: float, policy: Policy) -> Ingested:
    """Take in the newest report of each host; what cannot be read is said in the log and skipped.

    What is compared with the reports is read once for all hosts, and the figures that moved are written at once.
    """
    reports = _accepted(bodies)
    result = Ingested({report.host for report in reports})
    if not reports:
        return result
    replicas, cards, sampled = _rows(result.hosts)
    figures: list[tuple[Any, ...]] = []
    for report in reports:
        result.phases += _replicas(report, replicas[report.host], now, policy, figures)
    update_each(Replica, figures, FIGURES, given=("attempt",), where=SAME_ATTEMPT)
    figures = []
    for report in reports:
        figures += _cards(report, cards[report.host], replicas[report.host], sampled, now, policy)
    update_each(Card, figures, CARD_FIGURES)
    told = [report.host for report in reports if report.cards_at is not None]
    taken_at = Host.objects.filter(pk=OuterRef("host_id")).values("cards_at")[:1]
    Card.objects.filter(host__name__in=told).update(sampled_at=Subquery(taken_at))
    return result


def _accepted(bodies: Mapping[str, tuple[float, bytes]]) -> list[HostReport]:
    """Those whose host's row is written; not what cannot be read, speaks of another, or is old."""
    found: dict[str, tuple[float, HostReport]] = {}
    for name, (entered_at, body) in bodies.items():
        try:
            report = read_report(body)
        except ValueError as error:
            log.warning("report of %s refused: %s", name, error)
            continue
        if report.host == name:
            found[name] = entered_at, report
    written = _hosts(found.values())
    return [report for name, (_, report) in found.items() if name in written]


def _hosts(told: Collection[tuple[float, HostReport]]) -> set[str]:
    """Write the hosts' rows, but no report that is in already, itself or a later one of the same life."""
    rows = [(report.host, *_host(report, entered_at)) for entered_at, report in told]
    written = update_each(Host, rows, HOST_COLUMNS, key="name", where=NEWER)
    names = set(Host.objects.filter(pk__in=written).values_list("name", flat=True))
    for entered_at, report in told:
        skew = report.at - entered_at
        if report.host in names and abs(skew) > SKEW_ALARM_S:
            log.warning("clock of %s is %.1f s apart: its wants will expire unseen", report.host, skew)
    return names


def _host(report: HostReport, entered_at: float) -> tuple[Any, ...]:
    """The values of HOST_COLUMNS."""
    return (
        moment(entered_at),
        report.boot,
        report.seq,
        report.generation,
        report.version[:40],
        report.door_url[:200],
        report.door_ok,
        report.memory_mib,
        max(1, report.bandwidth_mib_s),
        report.at - entered_at,
        None if report.cards_at is None else moment(report.cards_at),
    )


def _rows(hosts: Collection[str]) -> tuple[dict[str, list[Any]], dict[str, list[Any]], Mapping[int, datetime | None]]:
    """Replicas that have not ended and cards, as they are before the reports, by host; when each card was sampled."""
    names = dict(Host.objects.filter(name__in=hosts).values_list("pk", "name"))
    replicas: dict[str, list[Any]] = defaultdict(list)
    for replica in REPLICAS.all():
        if replica.host_id in names:
            replicas[names[replica.host_id]].append(replica)
    cards: dict[str, list[Any]] = defaultdict(list)
    for card in CARDS.all():
        if card.host_id in names:
            cards[names[card.host_id]].append(card)
    return replicas, cards, dict(Card.objects.order_by().values_list("pk", "sampled_at"))


def _replicas(
    report: HostReport, before: Iterable[Any], now: float, policy: Policy, figures: list[tuple[Any, ...]]
) -> int:
    """How many changed phase: those are written. Of the others the figures that moved are added to `figures`."""
    rows = {row.pk: row for row in before}
    changed = 0
    for seen in report.replicas:
        row = rows.get(seen.id)
        if row is None or seen.attempt > row.attempt or seen.phase not in PHASES:
            continue
        moved = seen.phase != row.phase or seen.attempt != row.phase_attempt
        values = _figures(row, seen, moved, policy)
        if moved:
            _move(row, seen, dict(zip(FIGURES, values, strict=True)), now)
        elif values != _known_figures(row):
            figures.append((row.pk, *values, row.attempt))
        changed += moved
    return changed


def _figures(row: Any, seen: ReplicaReport, moved: bool, policy: Policy) -> tuple[Any, ...]:
    """The values of FIGURES."""
    asleep = seen.phase == Phase.ASLEEP and seen.measured_mib is not None
    return (
        seen.stage[:12],
        seen.progress,
        seen.measured_mib,
        seen.kv_used_pct,
        seen.running,
        seen.waiting,
        seen.door_in_flight,
        seen.can_sleep,
        kv.samples_after(seen.kv_used_pct, seen.waiting, 0 if moved else row.kv_full_samples, policy),
        seen.measured_mib if asleep else row.residue_mib,
    )


def _move(row: Any, seen: ReplicaReport, figures: dict[str, Any], now: float) -> None:
    """Write another phase, and tell of it."""
    values = figures | _moved(row, seen, moment(now))
    here = Replica.objects.filter(pk=row.pk, attempt=row.attempt, ended_at=None).update(**values)
    if here and seen.phase in TOLD and {seen.phase, row.phase} != {Phase.STOPPED}:
        _tell(row, seen, now)


def _tell(row: Any, seen: ReplicaReport, now: float) -> None:
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
        text=_kept(seen.fault_text, 200) if failed else "",
    )


def _moved(row: Any, seen: ReplicaReport, now: datetime) -> dict[str, Any]:
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
            "fault_text": _kept(seen.fault_text, 500),
            "fatal": seen.fatal,
        }
    elif seen.phase == Phase.STOPPED and row.want == "stopped" and seen.attempt == row.attempt:
        values["ended_at"] = now
    return values


def _kept(text: str, length: int) -> str:
    """Words of engines and drivers, which may hold anything, as a column takes them."""
    return text.replace("\x00", "")[:length]


def _learn(row: Any, kind: str, took_s: float) -> None:
    times, _ = LoadTime.objects.get_or_create(service_id=row.service_id, host_id=row.host_id, kind=kind)
    times.seconds = [*times.seconds, round(took_s, 2)][-TIMES_KEPT:]
    times.save(update_fields=["seconds"])


def _cards(
    report: HostReport,
    cards: Sequence[Any],
    before: Sequence[Any],
    sampled: Mapping[int, datetime | None],
    now: float,
    policy: Policy,
) -> list[tuple[Any, ...]]:
    """Key and figures of the cards that show others than before."""
    if report.cards_at is None:
        Card.objects.filter(host__name=report.host).update(free_mib=None, util_pct=None)
        return []
    rows = {row.uuid: row for row in cards}
    known = [(rows[sample.uuid], sample) for sample in report.cards if sample.uuid in rows]
    releases = release.after(report, [row for row, _ in known], before, now, policy)
    occupied = {uuid for one in before if one.phase not in GONE for uuid in one.cards}
    sampled_at, changed = moment(report.cards_at), []
    for row, sample in known:
        last = sampled[row.pk]
        counted = last is not None and sampled_at <= last
        pressed = row.pressed_samples if counted else _pressed(row, sample, policy)
        values = _card(row, sample, releases[row.uuid], pressed, _baseline(row, sample, occupied))
        if values != _known_card(row):
            changed.append((row.pk, *values))
    _missing(report, cards)
    return changed


def _missing(report: HostReport, cards: Sequence[Any]) -> None:
    """Cards that the host does not list any more, swapped or fallen off the bus: nothing is known of them."""
    listed = {sample.uuid for sample in report.cards}
    gone = [row.pk for row in cards if row.uuid not in listed and (row.healthy or row.note != MISSING)]
    if gone:
        Card.objects.filter(pk__in=gone).update(free_mib=None, util_pct=None, healthy=False, note=MISSING)


def _baseline(row: Any, sample: CardSample, occupied: Collection[str]) -> int | None:
    """What the card shows with nothing of ours on it; None where each process is measured and none is needed."""
    if sample.per_process:
        return None
    if row.uuid in occupied or sample.free_mib is None or row.release:
        known: int | None = row.baseline_mib
        return sample.reserved_mib if known is None else known
    return max(0, sample.total_mib - sample.free_mib)


def _pressed(row: Any, sample: CardSample, policy: Policy) -> int:
    """Samples over the pressure line, with this one."""
    unavailable = None if sample.free_mib is None or not sample.total_mib else sample.total_mib - sample.free_mib
    seen = core.Card(
        row.uuid,
        "",
        row.index,
        row.card_class,
        sample.total_mib,
        sample.reserved_mib,
        unavailable_mib=unavailable,
        pool=row.pool__name,
    )
    return samples_after(seen, row.pressed_samples, policy)


def _card(
    row: Any, sample: CardSample, releasing: dict[str, Any], pressed_samples: int, baseline_mib: int | None
) -> tuple[Any, ...]:
    """The values of CARD_FIGURES."""
    return (
        sample.index,
        sample.total_mib,
        sample.reserved_mib,
        sample.free_mib,
        sample.util_pct,
        sample.healthy,
        baseline_mib,
        _kept(sample.note, 200),
        sample.slice_of[:80],
        row.compute_cap if sample.compute_cap is None else sample.compute_cap,
        sample.group[:40],
        releasing,
        pressed_samples,
    )


def take_calls(gateways: Gateways, now: float) -> None:
    """Remember when each service, and each of its replicas with calls in flight, was last used."""
    latest: dict[str, float] = {}
    busy: set[int] = set()
    for gateway in gateways.gateways:
        for name, count in gateway.services.items():
            if count.last_call_at is not None:
                latest[name] = max(latest.get(name, 0.0), min(count.last_call_at, now))
        busy |= {int(replica) for replica, calls in gateway.in_flight.items() if calls and replica.isdigit()}
    rows = CALLED.all() if latest else ()
    later = [
        (pk, moment(latest[name]))
        for pk, name, known in rows
        if name in latest and (known is None or latest[name] - known.timestamp() > CALL_RESOLUTION_S)
    ]
    update_each(Service, later, ("last_call_at",), where=OLDER)
    update_each(Replica, later, ("last_call_at",), key="service", where=f"({OLDER}) AND {IN_USE}")
    if busy:
        stale = Q(last_call_at__lt=moment(now - CALL_RESOLUTION_S)) | Q(last_call_at=None)
        Replica.objects.filter(stale, pk__in=busy, ended_at=None).update(last_call_at=moment(now))

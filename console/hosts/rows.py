"""What the host pages read: every host with its cards and replicas summed, in a handful of queries."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.board.picture import STALE_S
from console.catalog.models import Order, Replica
from console.fleet.models import Card, Host
from scheduler.lifecycle import seen_phase
from scheduler.policy import Policy
from scheduler.world import Phase, Tier, Want

HELD = (Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP)
FRESH_S = 5.0  # a report comes every second: what is older is old, and said with its age


@dataclass(frozen=True, slots=True)
class Standing:
    """How a host stands: a word and its tone."""

    word: str
    tone: str


@dataclass(slots=True)
class Line:
    """One host as listed. Memory in MiB; `used_mib` None: no card of it is measured."""

    host: Host
    standing: Standing
    age_s: float | None
    cards: int = 0
    sick: int = 0
    stale: int = 0  # cards that reported once and cannot be measured now
    total_mib: int = 0
    used_mib: int | None = None
    phases: Counter[Phase] = field(default_factory=Counter)
    sleeping_mib: int = 0  # weights of its sleepers, in the host's memory

    @property
    def awake(self) -> int:
        return self.phases[Phase.STARTING] + self.phases[Phase.READY] + self.phases[Phase.DRAINING]

    @property
    def used_pct(self) -> float | None:
        return None if self.used_mib is None or not self.total_mib else 100 * self.used_mib / self.total_mib

    @property
    def old(self) -> bool:
        return self.age_s is None or self.age_s > FRESH_S


def age_s(host: Host, now: datetime) -> float | None:
    return None if host.seen_at is None else max(0.0, (now - host.seen_at).total_seconds())


def standing(host: Host, rules: Policy, now: datetime, stale: int = 0) -> Standing:
    """The most urgent word first; `stale`: how many of its cards cannot be measured."""
    age = age_s(host, now)
    if host.declared_gone:
        return Standing(_("已宣告不再回来"), "")
    if age is None:
        return Standing(_("尚未报到"), "")
    if age > rules.lost_s:
        return Standing(_("失联"), "bad")
    if age > rules.silent_s:
        return Standing(_("没有消息"), "warn")
    if stale:
        return Standing(_("陈旧"), "warn")
    if host.maintenance_at is not None:
        return Standing(_("维护中"), "warn")
    if host.cordoned:
        return Standing(_("停止调度"), "warn")
    if not host.door_ok:
        return Standing(_("入口不通"), "bad")
    return Standing(_("正常"), "ok")


def _stale(now: datetime) -> Q:
    """A card that was measured once and is not now: its telemetry says nothing, or nothing new."""
    old = Q(sampled_at__lt=now - timedelta(seconds=STALE_S))
    return Q(sampled_at__isnull=False) & (Q(free_mib=None) | old)


def lines(hosts: QuerySet[Host]) -> list[Line]:
    """Three queries beside the hosts' own."""
    rules, now = state.policy(), timezone.now()
    found = {row.pk: Line(row, standing(row, rules, now), age_s(row, now)) for row in hosts}
    sums = (
        Card.objects.filter(host__in=found)
        .values("host")
        .annotate(
            n=Count("pk"),
            sick=Count("pk", filter=Q(healthy=False)),
            stale=Count("pk", filter=_stale(now)),
            total=Sum("total_mib"),
            measured=Sum("total_mib", filter=Q(free_mib__isnull=False)),
            free=Sum("free_mib"),
        )
    )
    for row in sums.order_by():
        line = found[row["host"]]
        line.cards, line.sick, line.stale, line.total_mib = row["n"], row["sick"], row["stale"], row["total"] or 0
        line.standing = standing(line.host, rules, now, line.stale)
        line.used_mib = None if row["measured"] is None else row["measured"] - row["free"]
    columns = ("host", "want", "attempt", "phase", "phase_attempt", "service__weights_mib")
    replicas = Replica.objects.filter(ended_at=None).values_list(*columns)
    for host, want, attempt, phase, phase_attempt, weights in replicas:
        if host in found:
            seen = seen_phase(Want(want), attempt, Phase(phase), phase_attempt)
            found[host].phases[seen] += 1
            found[host].sleeping_mib += weights if seen is Phase.ASLEEP else 0
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Seat:
    """One replica on the host's page; `ordered`: a button's order about it is open."""

    row: Replica
    phase: Phase
    card: Card | None
    ordered: bool

    @property
    def owed(self) -> bool:
        """Does its service have to have ready copies, so that maintenance replaces it first?"""
        service = self.row.service
        return bool(service.min_replicas) or service.tier == Tier.HOT


def seats(host: Host) -> list[Seat]:
    """What holds memory there, by card."""
    cards = {card.uuid: card for card in host.cards.all()}
    ordered = set(Order.objects.filter(replica__host=host, done_at=None).values_list("replica_id", flat=True))
    rows = Replica.objects.filter(host=host, ended_at=None).select_related("service__tenant")
    found = [
        Seat(
            row,
            seen_phase(Want(row.want), row.attempt, Phase(row.phase), row.phase_attempt),
            cards.get(row.cards[0]) if row.cards else None,
            row.pk in ordered,
        )
        for row in rows
    ]
    here = [one for one in found if one.phase in HELD]
    return sorted(here, key=lambda one: (one.card.index if one.card else -1, one.row.pk))


def in_flight(seats: Iterable[Seat]) -> int:
    return sum(one.row.door_in_flight or 0 for one in seats)


def by_card(seats: Iterable[Seat]) -> dict[int, list[Seat]]:
    """Card id → its replicas."""
    result: dict[int, list[Seat]] = defaultdict(list)
    for one in seats:
        if one.card is not None:
            result[one.card.pk].append(one)
    return result

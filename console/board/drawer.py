"""What the drawer of one card says: its replicas in numbers, what was decided here lately, and what if it failed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from console.board import draw
from console.board.failing import Fate, fates
from console.board.names import Line, line, number_of
from console.board.picture import CardNumbers
from console.board.rows import Board
from console.catalog.models import Replica, Service
from console.fleet.models import Card
from console.journal.models import Decision
from console.journal.words import REFUSALS, Said, figures, said
from console.services.limits import card_limit
from console.wire import ReplicaLatency, read_gateways
from scheduler.decision import Reason
from scheduler.world import Profile

DECISIONS = 8
AXIS_STEPS = 4


@dataclass(frozen=True, slots=True)
class Seat:
    """One replica in the drawer's table; `row` is None for a foreign one."""

    line: Line
    row: Replica | None
    p99_ms: float | None = None  # of too few calls: None

    def mib(self, *kinds: str) -> int:
        return sum(size for kind, size in self.line.group.segments if kind in kinds)

    @property
    def weights_mib(self) -> int:
        return self.mib("w", "load")

    @property
    def kv_used_mib(self) -> int | None:
        """None where the engine does not say."""
        return self.mib("ku") if self.row is not None and self.row.kv_used_pct is not None else None

    @property
    def kv_granted_mib(self) -> int:
        return self.mib("ku", "kg")

    @property
    def spare_mib(self) -> int:
        return self.mib("h", "asleep", "anon")

    @property
    def declared_mib(self) -> int | None:
        if self.row is None:
            return None
        service = self.row.service
        return service.weights_mib + service.kv_cap_mib + service.headroom_mib


def _seats(numbers: CardNumbers, board: Board) -> list[Seat]:
    ids = [group.replica for group in numbers.groups if group.replica is not None]
    rows = Replica.objects.filter(pk__in=ids).select_related("service").in_bulk()
    measured, unknown = read_gateways().latencies.replicas, ReplicaLatency()
    return [
        Seat(line(group, board.names), rows.get(number), measured.get(number, unknown).p99_ms)
        for group in numbers.groups
        for number in [group.replica or 0]
    ]


def decisions(numbers: CardNumbers, services: QuerySet[Service]) -> list[Said]:
    """The last ones about this card or a replica now on it, of services the reader may see; alerts of the card too."""
    seats = [group.replica for group in numbers.groups if group.replica is not None]
    about = Q(card=numbers.id) | Q(replica_id__in=seats)
    alert = Q(service=None, replica=None, card=numbers.id, reason=Reason.PRESSURE)
    seen = Q(service__in=services) | alert
    rows = Decision.objects.filter(about, seen).select_related("service__tenant", "card__host")
    return [said(row, _Labels(services)) for row in rows[:DECISIONS]]


class _Labels(dict[str, str]):
    """Labels of what the reader may see, read when the first is asked for: most decisions name no other service."""

    def __init__(self, services: QuerySet[Service]) -> None:
        super().__init__()
        self.services: QuerySet[Service] | None = services

    def get(self, name: str, default: Any = None) -> Any:
        if self.services is not None:
            self.update(self.services.values_list("name", "label"))
            self.services = None
        return super().get(name, default)


def card_drawer(numbers: CardNumbers, board: Board, services: QuerySet[Service]) -> dict[str, Any]:
    card, total = board.names.cards[numbers.id], numbers.total_mib
    return {
        "card": card,
        "number": number_of(card),
        "numbers": numbers,
        "mark": draw.mark(numbers, board.names),
        "bar": draw.bar(numbers, board.names, board.policy.pressure_pct, big=True),
        "line_pct": board.policy.pressure_pct,
        "batch": _batch(card, numbers, board),
        "seats": _seats(numbers, board),
        "held_mib": sum(group.mib for group in numbers.groups),
        "axis": [(100 * i // AXIS_STEPS, round(total / 1024 * i / AXIS_STEPS)) for i in range(AXIS_STEPS + 1)],
        "decisions": decisions(numbers, services),
    }


def _batch(card: Card, numbers: CardNumbers, board: Board) -> str:
    """What limits batch calls here; empty where no batch service is, or nothing limits it."""
    if not any(group.profile == Profile.BATCH for group in numbers.groups):
        return ""
    return card_limit(card)


@dataclass(frozen=True, slots=True)
class Told:
    """One service's fate in words; `tone`: ok it goes on, warn it is rebuilt, bad it is homeless."""

    service: str
    text: str
    tone: str


def card_failure(numbers: CardNumbers, board: Board, services: QuerySet[Service]) -> dict[str, Any]:
    """`told`, most urgent first, and the three counts of the sentence above it."""
    labels = dict(services.values_list("name", "label"))
    card = board.names.cards[numbers.id]
    found = fates(card.uuid, read_gateways(), board.policy, time.time(), labels)
    uuids = {uuid for fate in found for uuid in (*fate.others, fate.card) if uuid}
    cards = {row.uuid: row for row in Card.objects.filter(uuid__in=uuids)}
    told = [_told(fate, labels, cards) for fate in found]
    tones = [one.tone for one in told]
    return {
        "told": told,
        "go_on": tones.count("ok"),
        "rebuilt": tones.count("warn"),
        "homeless": tones.count("bad"),
        "foreign": len(numbers.groups) - len(told),
    }


def _told(fate: Fate, labels: dict[str, str], cards: dict[str, Card]) -> Told:
    label = labels[fate.service]
    if fate.others:
        where = _("、").join(_("%s 号卡") % number_of(cards[uuid]) for uuid in fate.others if uuid in cards)
        return Told(label, _("不断，另有就绪实例在 %s") % where, "ok")
    if fate.card and fate.card in cards:
        numbers = {"card": number_of(cards[fate.card]), "s": round(fate.ready_s or 0)}
        return Told(label, _("在 %(card)s 号卡重建，约 %(s)d 秒") % numbers, "warn")
    refusal = fate.refusal
    why = "" if refusal is None else str(REFUSALS.get(refusal.code, refusal.code))
    more = "" if refusal is None else figures(refusal.numbers, labels)
    return Told(label, _("没有地方重建：%s") % _("，").join(part for part in (why, more) if part), "bad")


def card_cordon(numbers: CardNumbers, board: Board) -> dict[str, Any]:
    """The consequence of (un)cordoning in numbers."""
    return {
        "card": board.names.cards[numbers.id],
        "number": number_of(board.names.cards[numbers.id]),
        "wanted": not board.names.cards[numbers.id].cordoned,
        "replicas": len(numbers.groups),
        "calls": sum(group.in_flight or 0 for group in numbers.groups),
        "free_mib": numbers.mib("free"),
    }

"""What the page of one service says. A fixed number of queries, however long its history."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.models import User
from console.board.names import hue
from console.catalog.models import Order, Replica, Service
from console.costs.residency import word
from console.fleet.models import Card
from console.journal.models import Decision
from console.journal.words import REFUSALS, Said, said
from console.services import limits, scaled
from console.services.ahead import ahead
from console.services.drains import overdue
from console.services.hours import week
from console.services.loads import loads, summed
from console.services.p99 import p99_of
from console.services.shapes import card_class
from console.services.standing import phase_of, phases_of, standing
from console.state import claim_of, moment, traffic
from console.wire import Gateways, ReplicaLatency
from scheduler.policy import Policy
from scheduler.world import Act, Claim, Phase, Profile, Tier, Want

DECISIONS = 10
ORDERS = 5

STAGES = {
    "queued": gettext_lazy("排队"),
    "process": gettext_lazy("起进程"),
    "weights": gettext_lazy("读权重"),
    "warmup": gettext_lazy("预热"),
}
PHASES: dict[Phase, tuple[Any, str]] = {
    Phase.STARTING: (gettext_lazy("装载中"), "warn"),
    Phase.READY: (gettext_lazy("就绪"), "ok"),
    Phase.DRAINING: (gettext_lazy("摘流中"), "warn"),
    Phase.ASLEEP: (gettext_lazy("休眠"), ""),
    Phase.STOPPED: (gettext_lazy("已停"), ""),
    Phase.FAILED: (gettext_lazy("失败"), "bad"),
}
ACTS: dict[Act, Any] = {
    Act.PRELOAD: gettext_lazy("预热"),
    Act.WAKE: gettext_lazy("唤醒"),
    Act.KEEP: gettext_lazy("撤回通知"),
    Act.DRAIN: gettext_lazy("摘流"),
    Act.STOP: gettext_lazy("停止"),
}


@dataclass(frozen=True, slots=True)
class Seat:
    """One replica as listed; `acts` is what an operator may ask of it now."""

    row: Replica
    phase: Phase
    card: Card | None
    in_flight: int | None
    p99_ms: float | None = None  # None: too few calls
    overdue: bool = False  # drains for longer than it should, and cuts nothing

    @property
    def more_cards(self) -> int:
        """Beside the first."""
        return max(0, len(self.row.cards) - 1)

    @property
    def word(self) -> str:
        if self.overdue:
            return _("摘流超时，等在途做完")
        return str(PHASES[self.phase][0])

    @property
    def tone(self) -> str:
        return PHASES[self.phase][1]

    @property
    def stage(self) -> str:
        """Of a start: what the host is at, and how far."""
        if self.phase is not Phase.STARTING:
            return ""
        share = "" if self.row.progress is None else f" {self.row.progress:.0%}"
        return f"{STAGES.get(self.row.stage, self.row.stage)}{share}"

    @property
    def acts(self) -> list[tuple[Act, Any]]:
        wanted, found = Want(self.row.want), []
        if self.phase is Phase.READY and self.row.drain_at is not None:
            found.append(Act.KEEP)
        if self.phase is Phase.ASLEEP and wanted is Want.ASLEEP:
            found.append(Act.WAKE)
        if self.phase is Phase.READY:
            found.append(Act.DRAIN)
        if wanted is not Want.STOPPED:
            found.append(Act.STOP)
        return [(act, ACTS[act]) for act in found]


def seats(service: Service, gateways: Gateways, rules: Policy) -> list[Seat]:
    rows = list(Replica.objects.filter(service=service, ended_at=None).select_related("host").order_by("pk"))
    uuids = {uuid for row in rows for uuid in row.cards}
    cards = {card.uuid: card for card in Card.objects.filter(uuid__in=uuids).select_related("host")}
    measured, unknown = gateways.latencies.replicas, ReplicaLatency()
    late = overdue(service, rows, rules)
    return [
        Seat(
            row,
            phase_of(row),
            cards.get(row.cards[0]) if row.cards else None,
            traffic(row, gateways)[0],
            measured.get(row.pk, unknown).p99_ms,
            row.pk in late,
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Part:
    """One of the claim's numbers; `share` of the whole claim in percent, `measured_mib` None where nobody can say."""

    label: str
    mib: int
    share: float


def claim_parts(claim: Claim) -> list[Part]:
    whole = max(1, claim.fixed_mib + claim.kv_cap_mib)
    named = (
        (_("权重"), claim.weights_mib),
        (_("KV 上限"), claim.kv_cap_mib),
        (_("余量"), claim.headroom_mib),
        (_("进程开销"), claim.overhead_mib),
    )
    return [Part(label, mib, 100 * mib / whole) for label, mib in named]


def idle_rule(service: Service, rules: Policy) -> str:
    """What its tier means when nobody calls, with the policy's own numbers."""
    values = {
        "idle": round(rules.idle_unload_s / 60),
        "grace": round(rules.grace_s),
        "wake": round(rules.wake_s),
    }
    if service.tier == Tier.HOT:
        return _("常驻：闲着也不收回。只有显存压力和故障能移动它。")
    if service.tier == Tier.WARM and service.can_sleep:
        return (
            _("空闲 %(idle)s 分钟后通知，宽限 %(grace)s 秒，然后休眠：权重留在主机内存，唤醒约 %(wake)s 秒。") % values
        )
    if service.tier == Tier.WARM:
        values["idle"] *= rules.no_sleep_idle_factor
        return _("引擎不能休眠，按低频处理，空闲时限加倍：%(idle)s 分钟后通知，宽限 %(grace)s 秒，然后卸载。") % values
    return _("空闲 %(idle)s 分钟后通知，宽限 %(grace)s 秒，然后卸载，还回全部显存。") % values


@dataclass(frozen=True, slots=True)
class Failure:
    where: str
    at: datetime | None
    code: str
    message: str


def failures(service: Service, seated: Sequence[Seat]) -> list[Failure]:
    """The engine's own words: of cards given up since it was last ready, and of copies that failed just now."""
    cards = {seat.card.uuid: str(seat.card) for seat in seated if seat.card is not None}
    found = [
        Failure(cards.get(one["card"], ""), moment(one["at"]), str(one.get("code", "")), str(one.get("message") or ""))
        for one in service.failures
    ]
    for seat in seated:
        if seat.row.fault:
            found.append(
                Failure(str(seat.card or seat.row.host), seat.row.failed_at, seat.row.fault, seat.row.fault_text)
            )
    return sorted(found, key=lambda f: f.at.timestamp() if f.at else 0.0, reverse=True)


@dataclass(frozen=True, slots=True)
class Given:
    """One order as printed."""

    row: Order
    act: str
    outcome: str
    tone: str


def orders(service: Service) -> list[Given]:
    rows = Order.objects.filter(service=service).select_related("by")[:ORDERS]
    return [Given(row, str(ACTS[Act(row.act)]), *_outcome(row)) for row in rows]


def _outcome(row: Order) -> tuple[str, str]:
    if row.done_at is None:
        return _("进行中"), "warn"
    if row.outcome == "done":
        return _("已完成"), "ok"
    known = {"not_managed": _("资源池只观察，不动手"), "replaced": _("被后来的命令取代")}
    return known.get(row.outcome) or str(REFUSALS.get(row.outcome, row.outcome)), "bad"


def decisions(service: Service, labels: dict[str, str]) -> list[Said]:
    rows = Decision.objects.filter(service=service).select_related("service__tenant", "card__host")[:DECISIONS]
    return [said(row, labels) for row in rows]


def now_part(service: Service, gateways: Gateways, rules: Policy) -> dict[str, Any]:
    """What changes by the second: drawn with the page, and again every few seconds."""
    seated = seats(service, gateways, rules)
    counted = [seat.in_flight for seat in seated]
    unknown = any(count is None for count in counted) or not gateways.known
    held = sum(g.services[service.name].held for g in gateways.gateways if service.name in g.services)
    return {
        "service": service,
        "seats": seated,
        "standing": standing(
            service.failures, phases_of(s.row for s in seated).get(service.pk, {}), rules, time.time()
        ),
        "in_flight": None if unknown else sum(count or 0 for count in counted),
        "held": held if gateways.known else None,
        "p99": p99_of(service, gateways, rules),
        "orders": orders(service),
        "failures": failures(service, seated),
        "scaled": scaled.lines(service, rules),
        "batch_week": limits.coming_week(service, rules, time.time()) if service.profile == Profile.BATCH else [],
        "limits": limits.lines(service, [s.card for s in seated if s.phase is Phase.READY], rules),
        "ready": sum(seat.phase is Phase.READY for seat in seated),
    }


def page(service: Service, user: User, labels: dict[str, str], gateways: Gateways, rules: Policy) -> dict[str, Any]:
    claim = claim_of(service, rules)
    now = now_part(service, gateways, rules)
    return {
        **now,
        "classes": [card_class(one) for one in service.card_classes],
        "hue": hue(service.tenant),
        "measured_mib": max((s.row.measured_mib for s in now["seats"] if s.row.measured_mib is not None), default=None),
        "claim": claim,
        "parts": claim_parts(claim),
        "whole_mib": claim.fixed_mib + claim.kv_cap_mib,
        "idle_rule": idle_rule(service, rules),
        "week": week(service.name),
        "residency": word(service),
        "loads": summed(loads(service, rules)),
        "ahead": ahead(service, rules),
        "decisions": decisions(service, labels),
        "gateway": settings.GATEWAY_URL.rstrip("/"),
        "crumbs": [(_("业务"), "/services/")],
    }

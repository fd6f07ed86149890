"""Decisions out: the only writer of `Replica.want`, and the journal beside it.

Every write holds only where the old value still does; a decision that finds another world is dropped, the next tick
plans again. What a pool's mode does not let act is recorded as advice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.db.models import F, Q

from console.catalog.models import Replica, Scaling, Service
from console.fleet.models import Card, Host, Pool
from console.journal.models import Decision as Entry
from console.state import moment
from scheduler import modes
from scheduler.decision import Code, Decision, Reason, Verb
from scheduler.lifecycle import WANT_AFTER
from scheduler.scaling import SCALE_OUT
from scheduler.world import Phase, Want, World
from scheduler.world import Replica as CoreReplica
from workers.control import moves, orders, reclaims
from workers.control.advise import Adviser

KEPT_AHEAD_S = 7200.0  # past its hour no preload is refused again
FAILURES_KEPT = 10  # of a service: more cards are never tried in a row


@dataclass(slots=True)
class Recorded:
    """What one tick wrote: services whose callers only get advice, and whether anything was done."""

    advised: dict[str, str] = field(default_factory=dict)  # service → not_managed | awaiting_approval
    done: int = 0


class Recorder:
    """Remembers which refusals and advice are already in the journal, so that a standing wish is one row."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.standing: dict[tuple[str, int | None, str, str], str] = {}
        self.adviser = Adviser()

    def record(self, decisions: Iterable[Decision], world: World, now: float) -> Recorded:
        """Write a plan. Runs inside the transaction whose first statement was the fence."""
        decisions = list(decisions)
        result = Recorded()
        self.adviser.begin(world, now)
        standing: dict[tuple[str, int | None, str, str], str] = {}
        names = Names()
        for decision in decisions:
            why_not = decision.refusal.code.value if decision.refusal else self.adviser.why_not(decision, world, now)
            if not why_not:
                done = _act(decision, world, now, self.token)
                result.done += done
                self.adviser.acted(decision, done, now)
                if done and decision.order is not None:
                    orders.close([decision.order], orders.DONE, now)
                continue
            if decision.refusal is None and (waiting := modes.who_waits(decision, world)) is not None:
                result.advised[waiting] = why_not
            if moves.answered(decision, now):
                continue
            if answered := orders.answered(decision, world):
                orders.close(answered, why_not, now)
                if why_not in orders.UNREMARKABLE:
                    continue
            if _found_no_room(decision):
                _mark_pools(decision, world, now)
            about = decision.service or ",".join(decision.cards)  # an alert is about a card alone
            subject = (about, decision.replica, decision.verb.value, _why(decision))
            standing[subject] = why_not
            if self.standing.get(subject) != why_not:
                _journal(decision, world, now, self.token, refusal=why_not, names=names)
        self.standing = {s: why for s, why in self.standing.items() if _ahead(s[3], now)} | standing
        self.adviser.end(world, now)
        return result


def _why(decision: Decision) -> str:
    """A preload is refused for one hour or minute: the next is another wish."""
    at = decision.numbers.get("expected_at") if decision.reason is Reason.FORECAST else None
    return decision.reason.value if at is None else f"{decision.reason.value} {float(at):.0f}"


def _ahead(why: str, now: float) -> bool:
    """Where much is expected at once, plans look at it in turn: a refusal stands though this plan is silent."""
    reason, _, at = why.partition(" ")
    return bool(at) and now - float(at) < KEPT_AHEAD_S


def _found_no_room(decision: Decision) -> bool:
    """A wish that was refused for good; more copies than are allowed are no want of room."""
    refused = decision.refuses_wish
    return refused is not None and not refused.passing and refused.code not in (Code.MAX_REPLICAS, Code.OUTSIDE_WINDOW)


def _mark_pools(decision: Decision, world: World, now: float) -> None:
    """A wish found no room: for a while idle neighbours in these pools are not kept just because there is space."""
    service = world.services.get(decision.service)
    pools = Pool.objects.filter(name__in=service.pools) if service and service.pools else Pool.objects.all()
    pools.update(refused_at=moment(now))


def _act(decision: Decision, world: World, now: float, fence: int) -> int:
    """Do it if the world is still as planned; 1 when it was done."""
    if not moves.begins(decision, now):
        return 0
    if decision.verb is Verb.START and decision.replica is None:
        replica = _create(decision, world, now)
    else:
        if not _change(decision, world, now):
            return 0
        replica = decision.replica
    if replica is None:
        return 0
    _touch_host(replica)
    moves.began(decision, replica)
    if decision.verb is Verb.STOP and decision.reason is Reason.FAULT:
        _give_up(world.replicas[replica], now)
    if decision.reason in (Reason.IDLE, Reason.ROOM) and decision.verb in (Verb.SLEEP, Verb.STOP):
        Service.objects.filter(name=decision.service).update(last_reclaimed_at=moment(now))
        reclaims.blame_the_rule(decision, world, now)
    if decision.reason is Reason.OPERATOR and decision.verb in (Verb.DRAIN, Verb.STOP):
        Service.objects.filter(name=decision.service).update(let_go_at=moment(now))
    _scaled(decision, world, now)
    _journal(decision, world, now, fence, replica=replica)
    return 1


def _scaled(decision: Decision, world: World, now: float) -> None:
    """What scaling asks about its own past: the last raise, and where a scale-in came from until a raise used it."""
    row, numbers = Scaling.objects.filter(service__name=decision.service), decision.numbers
    if decision.reason in SCALE_OUT and "raised_from" in numbers:
        raised_to = min(int(numbers["desired"]), world.services[decision.service].max_replicas)
        row.update(
            raised_to=raised_to,
            raised_waiting=int(numbers["waiting"]),
            raised_at=moment(now),
            came_from=0,
            came_from_at=None,
        )
    elif decision.reason is Reason.SURPLUS and decision.verb is Verb.DRAIN and "came_from" in numbers:
        row.update(came_from=int(numbers["came_from"]), came_from_at=moment(now))


def _create(decision: Decision, world: World, now: float) -> int | None:
    service = Service.objects.filter(name=decision.service).values_list("pk", flat=True).first()
    host = Host.objects.filter(name=world.cards[decision.cards[0]].host).values_list("pk", flat=True).first()
    if service is None or host is None:
        return None
    row = Replica.objects.create(
        service_id=service,
        host_id=host,
        cards=list(decision.cards),
        kv_granted_mib=decision.kv_granted_mib,
        want=Want.READY,
        want_since=moment(now),
        reason=decision.reason.value,
        phase=Phase.STOPPED,
        phase_since=moment(now),
    )
    return row.pk


def _change(decision: Decision, world: World, now: float) -> bool:
    """Update one replica's want where want and attempt are still those that were planned on."""
    assert decision.replica is not None
    planned_on = world.replicas[decision.replica]
    here = Replica.objects.filter(pk=decision.replica, want=planned_on.want, attempt=planned_on.attempt, ended_at=None)
    return bool(here.update(**_columns(decision, now)))


def _columns(decision: Decision, now: float) -> dict[str, Any]:
    if decision.verb is Verb.DRAIN and decision.not_before is not None:
        return {"drain_at": moment(decision.not_before), "reason": decision.reason.value}
    columns: dict[str, Any] = {
        "want": WANT_AFTER[decision.verb].value,
        "want_since": moment(now),
        "reason": decision.reason.value,
        "force": decision.force,
        "drain_at": None,
    }
    if decision.verb is Verb.START:
        columns |= {"attempt": F("attempt") + 1, "kv_granted_mib": decision.kv_granted_mib, "unrouted_version": None}
    elif decision.verb is Verb.WAKE:
        columns["unrouted_version"] = None
        if (until := decision.numbers.get("left_alone_until")) is not None:
            columns["left_alone_until"] = moment(float(until))
    return columns


def _touch_host(replica: int) -> None:
    """A want of this host changed: everything sent before is older from here on."""
    Host.objects.filter(replicas=replica).update(want_generation=F("want_generation") + 1)


def _give_up(replica: CoreReplica, now: float) -> None:
    """Remember on the service which card was given up and why; a copy that becomes ready forgets it all."""
    if replica.phase is not Phase.FAILED:
        return
    text = Replica.objects.values_list("fault_text", flat=True).get(pk=replica.id)
    failure = {
        "card": replica.cards[0],
        "at": now,
        "code": replica.fault or "failed",
        "message": text[:200],
        "fatal": replica.fatal,
        "beside": list(replica.cards[1:]),
    }
    row = Service.objects.get(name=replica.service)
    row.failures = [*row.failures, failure][-FAILURES_KEPT:]
    row.save(update_fields=["failures"])


class Names:
    """Keys of rows by what a plan calls them; None for what is gone. Each is looked up once."""

    def __init__(self) -> None:
        self.service = cache(self._service)
        self.replica = cache(self._replica)
        self.card = cache(self._card)

    def _service(self, name: str) -> int | None:
        return Service.objects.filter(name=name).values_list("pk", flat=True).first() if name else None

    def _replica(self, replica: int | None) -> int | None:
        return replica if replica is not None and Replica.objects.filter(pk=replica).exists() else None

    def _card(self, uuid: str) -> int | None:
        return Card.objects.filter(uuid=uuid).values_list("pk", flat=True).first()


def _journal(
    decision: Decision,
    world: World,
    now: float,
    fence: int,
    *,
    replica: int | None = None,
    refusal: str = "",
    names: Names | None = None,
) -> None:
    """`names`: of a plan with many refusals, looked up once."""
    names = names or Names()
    subject = replica if replica is not None else decision.replica
    known = world.replicas.get(subject) if subject is not None else None
    cards = decision.cards or (known.cards if known else ())
    numbers = dict(decision.numbers)
    if decision.refusal is not None:
        numbers |= dict(decision.refusal.numbers)
    if decision.not_before is not None:
        numbers["not_before"] = decision.not_before
    if decision.verb is Verb.START:
        numbers["kv_granted_mib"] = decision.kv_granted_mib
    Entry.objects.create(
        at=moment(now),
        verb=decision.verb.value,
        reason=decision.reason.value,
        service_id=names.service(decision.service),
        replica_id=names.replica(subject),
        card_id=names.card(cards[0]) if cards else None,
        numbers=numbers,
        refusal=refusal,
        fence=fence,
    )


def unroute(version: int, routed: Iterable[int]) -> None:
    """Note on every replica that just left the routes which version no longer names it."""
    Replica.objects.filter(~Q(pk__in=list(routed)), ended_at=None, unrouted_version=None).update(
        unrouted_version=version
    )
    Replica.objects.filter(pk__in=list(routed), unrouted_version__isnull=False).update(unrouted_version=None)

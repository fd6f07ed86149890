"""Advice: what a plan wants and a pool's mode does not let. One row as long as the wish stands, whoever leads."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from console import state
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.journal.models import Advice
from console.state import moment
from scheduler import modes
from scheduler.decision import Decision, Reason, Verb
from scheduler.policy import Policy
from scheduler.world import World

#: Pool, subject, verb, reason.
Key = tuple[str, str, str, str]
DONE, GONE = "done", "gone"


@dataclass(slots=True)
class Adviser:
    """A leader's memory of the open rows; a new leader reads them. `seen`: when a plan last wanted the same.

    A pool that comes to observe may open as many rows at once as it has idle copies: they are written together.
    """

    open: dict[Key, Advice] = field(default_factory=dict)
    seen: dict[Key, float] = field(default_factory=dict)
    unread: bool = True  # rows were written, or none was read yet
    rules: Policy = field(default_factory=Policy)
    due: list[Advice] = field(default_factory=list)  # to be refreshed at the end of the round
    new: dict[Key, tuple[Decision, str]] = field(default_factory=dict)  # to be opened then, with what callers hear
    _have: dict[str, int] | None = None
    _starts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def begin(self, world: World, now: float) -> None:
        """Read what stands, or only what was approved since. A farm whose pools all act pays one query, once."""
        self._have, self._starts, self.new = None, defaultdict(int), {}
        if self.unread:
            self.rules = state.policy()
            rows = Advice.objects.filter(closed_at=None).select_related("pool")
            self.open = {(row.pool.name, row.subject, row.verb, row.reason): row for row in rows}
            self.seen = {key: self.seen.get(key, now) for key in self.open}
            self.unread = False
        elif self.open:
            clicked = Advice.objects.filter(closed_at=None, approved_until__gte=moment(now))
            until = dict(clicked.values_list("pk", "approved_until"))
            for row in self.open.values():
                row.approved_until = until.get(row.pk)

    def why_not(self, decision: Decision, world: World, now: float) -> str:
        """Empty when it may act: by the pool's mode, or because somebody approved just this."""
        why = modes.advice(decision, world)
        if not why:
            return ""
        key = self._key(decision, world)
        row = self.open.get(key)
        self.seen[key] = now
        if row is None:
            self.new[key] = decision, why
            return why
        if why == modes.TOLD[modes.SUGGEST] and approved(row, now):
            return ""
        if now >= self._refreshed_at(row) + self.rules.advice_refresh_s or row.told != why:
            row.numbers, row.refreshed_at, row.told = _numbers(decision), moment(now), why
            self.due.append(row)
        return why

    def _refreshed_at(self, row: Advice) -> float:
        """Rows that were opened together are refreshed apart, or each minute had one slow round."""
        apart = row.pk % self.rules.advice_refresh_s if row.refreshed_at == row.opened_at else 0
        return row.refreshed_at.timestamp() + apart

    def acted(self, decision: Decision, done: int, now: float) -> None:
        """Close the row that a click had approved, once its decision is recorded."""
        if not self.open or not done:
            return
        for key, row in self.open.items():
            if approved(row, now) and key[2:] == (decision.verb, decision.reason) and _about(row, decision):
                _close([row.pk], DONE, now)
                self.unread = True
                return

    def end(self, world: World, now: float) -> None:
        """Write what is new and what was refreshed, close what no plan has wanted for a while."""
        if self.due:
            Advice.objects.bulk_update(self.due, ["numbers", "refreshed_at", "told"])
            self.due = []
        if self.new:
            _open(self.new, world, now)
            self.unread = True
        gone = {key for key, at in self.seen.items() if now - at > self._linger_s(key)}
        if gone:
            _close([self.open[key].pk for key in gone if key in self.open], GONE, now)
            self.seen = {key: at for key, at in self.seen.items() if key not in gone}
            self.open = {key: row for key, row in self.open.items() if key not in gone}

    def _linger_s(self, key: Key) -> int:
        """A caller for whom room would be made was sent away with "awaiting approval": the click may come meanwhile."""
        return self.rules.advice_asked_s if key[3] == Reason.ROOM else self.rules.advice_linger_s

    def _key(self, decision: Decision, world: World) -> Key:
        pool = modes.pools_of(decision, world)[0]
        return pool, modes.subject(decision, world, self._ordinal(decision, world)), decision.verb, decision.reason

    def _ordinal(self, decision: Decision, world: World) -> int:
        """Which copy of its service a start would be, those of this plan counted in their order."""
        if decision.verb is not Verb.START or decision.replica is not None:
            return 0
        if self._have is None:
            self._have = modes.in_hand(world)
        self._starts[decision.service] += 1
        return self._have.get(decision.service, 0) + self._starts[decision.service]


def approved(row: Advice, now: float) -> bool:
    return row.approved_until is not None and row.approved_until.timestamp() > now


def _about(row: Advice, decision: Decision) -> bool:
    if decision.replica is not None:
        return row.replica_id == decision.replica
    return row.subject.startswith(f"{decision.service}#")


def _open(new: dict[Key, tuple[Decision, str]], world: World, now: float) -> None:
    """A handful of queries, however many; one that another leader opened meanwhile stays as it is."""
    pools = dict(Pool.objects.values_list("name", "pk"))
    services = dict(Service.objects.filter(name__in={d.service for d, _ in new.values()}).values_list("name", "pk"))
    replicas = set(Replica.objects.filter(ended_at=None).values_list("pk", flat=True))
    cards = dict(Card.objects.values_list("uuid", "pk"))
    Advice.objects.bulk_create(
        (
            Advice(
                pool_id=pools[key[0]],
                subject=key[1],
                verb=key[2],
                reason=key[3],
                told=why,
                service_id=services.get(decision.service),
                replica_id=decision.replica if decision.replica in replicas else None,
                card_id=cards.get(_card(decision, world)),
                numbers=_numbers(decision),
                opened_at=moment(now),
                refreshed_at=moment(now),
            )
            for key, (decision, why) in new.items()
            if key[0] in pools
        ),
        ignore_conflicts=True,
    )


def _card(decision: Decision, world: World) -> str:
    known = world.replicas.get(decision.replica) if decision.replica is not None else None
    cards = decision.cards or (known.cards if known else ())
    return cards[0] if cards else ""


def _close(rows: list[int], outcome: str, now: float) -> None:
    Advice.objects.filter(pk__in=rows, closed_at=None).update(closed_at=moment(now), outcome=outcome)


def _numbers(decision: Decision) -> dict[str, object]:
    numbers: dict[str, object] = dict(decision.numbers)
    if decision.not_before is not None:
        numbers["not_before"] = decision.not_before
    if decision.verb is Verb.START:
        numbers["kv_granted_mib"] = decision.kv_granted_mib
    return numbers

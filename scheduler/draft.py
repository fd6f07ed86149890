"""The working copy of one plan: each decision is charged to it, so that later stages see what earlier ones took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeVar

from scheduler.decision import Decision, Reason, Refusal, Verb
from scheduler.facts import counting, every_card, heard, mixes, not_lost
from scheduler.fragmentation import Mixes, Stranded, stranded
from scheduler.hosts import COMING
from scheduler.ledger import book_on
from scheduler.lifecycle import begun, legal
from scheduler.lifecycle import changed as changed
from scheduler.lifecycle import moving as moving
from scheduler.memory import Book
from scheduler.on_the_move import loading_beside, moving_on
from scheduler.policy import Policy
from scheduler.rows import changed as with_values
from scheduler.table import Table
from scheduler.world import Card, Failure, Order, Phase, Pool, Replica, Service, Swap, Want, World

Answer = TypeVar("Answer")

Told = Mapping[str, int | float | str]
NOTHING: Told = MappingProxyType({})
BY_ID = attrgetter("id")


@dataclass(slots=True, weakref_slot=True)
class Draft:
    """`promised` are copies that will start or wake once there is room: nobody else may take it meanwhile.

    `relied_on` are the leaving replicas whose room is promised; `ahead_s` the loads already queued on a card;
    `touched` the replicas that have their one decision of this plan; `evicted` those that pressure takes with it: their
    replacement is for the next plan, once this one is recorded (a pool may only be advised).
    New copies have negative ids here; the recorder gives real ones.
    """

    world: World
    policy: Policy
    now: float
    decisions: list[Decision] = field(default_factory=list)
    replicas: dict[int, Replica] = field(default_factory=dict)
    promised: dict[str, dict[int, Replica]] = field(default_factory=lambda: defaultdict(dict))
    relied_on: set[int] = field(default_factory=set)
    ahead_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    touched: set[int] = field(default_factory=set)
    evicted: set[int] = field(default_factory=set)
    tightened: set[str] = field(default_factory=set)  # services whose card budget is spent: `budget.tighten`
    rests: dict[int, tuple[Replica, tuple[float, float]]] = field(default_factory=dict)  # see `turns.rest_s`
    _orders: dict[str, list[Order]] = field(default_factory=lambda: defaultdict(list))
    _by_card: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    _there: dict[str, list[Replica]] = field(default_factory=dict)  # by card, once asked for: see `on_card`
    _by_host: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _tables: dict[Any, Table[Any]] = field(default_factory=dict)  # by who answers: see `table`
    _of_books: dict[Any, Table[Any]] = field(default_factory=dict)
    _by_service: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    _swaps: dict[str, list[Swap]] = field(default_factory=lambda: defaultdict(list))
    altered: set[str] = field(default_factory=set)  # cards on which this plan decided or promised anything
    facts: dict[Any, Any] = field(default_factory=dict)  # what no plan changes, once worked out: see `fact`
    changes: list[str] = field(default_factory=list)  # cards about which answers ceased to hold, in turn
    rankings: dict[Any, Any] = field(default_factory=dict)  # by the number they go by: see `ranking`
    _seats: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _next_id: int = -1

    def __post_init__(self) -> None:
        for card in self.world.cards.values():
            self._by_host[card.host].append(card.id)
        self._sit(self.world.replicas.values())
        for order in self.world.orders:
            self._orders[order.service].append(order)
        for swap in self.world.swaps:
            self._swaps[swap.went].append(swap)

    def _sit(self, replicas: Iterable[Replica]) -> None:
        all_of, by_service, by_card, seats = self.replicas, self._by_service, self._by_card, self._seats
        for replica in replicas:
            number, service, cards = replica.id, replica.service, replica.cards
            all_of[number] = replica
            by_service[service].add(number)
            if cards:
                seats[service].update(cards)
            for card in cards:
                by_card[card].add(number)

    def _put(self, replica: Replica) -> None:
        """A change: all that was worked out and may depend on it is forgotten."""
        before = self.replicas.get(replica.id)
        for card in (*(before.cards if before else ()), *replica.cards):
            self._there.pop(card, None)
            self.altered.add(card)
        self._sit((replica,))
        for card in replica.cards:
            self._changed(card)
        for host in {at.host for c in replica.cards if (at := self.world.cards.get(c)) is not None}:
            self._forget(self._by_host[host])
        self._forget(self._seats[replica.service])

    def _changed(self, card: str) -> None:
        self.altered.add(card)
        for table in self._of_books.values():
            table.pop(card, None)
        self._forget((card,))

    def _forget(self, cards: Iterable[str]) -> None:
        """Answers about these cards may not hold any more."""
        self.changes += cards
        for table in self._tables.values():
            for card in cards:
                table.pop(card, None)

    # Questions

    def by_id(self, *phases: Phase) -> list[Replica]:
        """All that are in one of these phases now."""
        return sorted([r for r in self.replicas.values() if r.phase in phases], key=BY_ID)

    def on_card(self, card: str) -> Sequence[Replica]:
        """By id, stopped ones left out."""
        found = self._there.get(card)
        if found is None:
            found = self._there[card] = self._those(self._by_card[card])
        return found

    def of_service(self, service: str) -> list[Replica]:
        """Its copies by id, stopped ones left out."""
        return self._those(self._by_service[service]) if service in self._by_service else []

    def _those(self, ids: set[int]) -> list[Replica]:
        return [r for i in sorted(ids) if (r := self.replicas[i]).phase is not Phase.STOPPED]

    def copies(self, service: str) -> int:
        """How many there are of it at most: stopped ones count."""
        return len(self._by_service.get(service, ()))

    def seats_of(self, service: str) -> set[str]:
        """Cards on which it has any copy, failed ones too, or was promised room for one."""
        return self._seats.get(service, set())

    def orders_of(self, service: str) -> list[Order]:
        """Open orders, oldest first."""
        return self._orders.get(service, [])

    def fact(self, found: Callable[[Draft], Answer]) -> Answer:
        """What no plan changes, worked out once: `found` says it of the draft."""
        if found not in self.facts:
            self.facts[found] = found(self)
        answer: Answer = self.facts[found]
        return answer

    def table(self, answer: Callable[[Draft, str], Answer], *, of_book: bool = False) -> Table[Answer]:
        """What `answer` says of each card, by id, kept for as long as it holds.

        It may depend on what is or is promised on the card and its host, and on all copies of the services there;
        `of_book`: on the card's ledger alone.
        """
        tables = self._of_books if of_book else self._tables
        if answer not in tables:
            tables[answer] = Table(self, answer)
        return tables[answer]

    def swapped_out(self, service: str) -> list[Swap]:
        """The times when this service had to go for another."""
        return self._swaps.get(service, [])

    def book(self, card: str) -> Book:
        """The card's ledger with what was decided and promised so far."""
        return self.books()[card]

    def books(self) -> Table[Book]:
        return self.table(book_on, of_book=True)

    @property
    def services(self) -> Mapping[str, Service]:
        return self.world.services

    def mixes(self) -> Mixes:
        """The claims expected on each kind of card. No plan changes a claim."""
        return self.fact(mixes)

    def stranded(self) -> dict[str, Stranded]:
        """Fragmentation by pool, with what was decided so far."""
        return stranded([self.book(card) for card in self.world.cards], self.mixes())

    def given_up(self, failure: Failure, service: str) -> None:
        """A card was given up for this service in this very plan."""
        if (known := self.world.services.get(service)) is not None:
            changed = replace(known, failures=(*known.failures, failure))
            self.world = replace(self.world, services={**self.world.services, service: changed})

    def rules_of(self, replica: Replica) -> Policy:
        """The policy that holds for a copy: its pool's and its service's values over the group's."""
        card = self.world.cards.get(replica.cards[0]) if replica.cards else None
        return self.policy.of_service(replica.service, card.pool if card else "")

    def known(self, replica: int) -> bool:
        """Does it exist outside this plan?"""
        return replica in self.world.replicas

    def pool(self, card: str) -> Pool:
        name = self.world.cards[card].pool
        return self.world.pools.get(name) or Pool(name)

    def lost(self, replica: Replica) -> bool:
        return not replica.cards or replica.cards[0] not in self.fact(not_lost)

    def silent(self, replica: Replica) -> bool:
        return not replica.cards or replica.cards[0] not in self.fact(heard)

    def in_hand(self, service: str) -> list[Replica]:
        """Copies that are, or will be without further decision, ready: also those tried again after a failure."""
        lasting = self.fact(counting)
        copies = self.of_service(service)
        held = [r for r in copies if r.want is Want.READY and r.phase in COMING and r.cards and r.cards[0] in lasting]
        if not self.evicted:
            return held
        return held + [r for r in copies if r.id in self.evicted and r.want is not Want.READY]

    def staying(self, service: str) -> list[Replica]:
        """Ready copies that nobody has asked to go."""
        return [r for r in self.in_hand(service) if r.phase is Phase.READY and r.drain_at is None]

    def busy(self, card: str, *, but: int | None = None) -> Replica | None:
        """Who is starting, waking, falling asleep or stopping on the card: one at a time."""
        return (
            next((r for r in there if r.id != but), None)
            if (there := self.table(moving_on, of_book=True)[card])
            else None
        )

    def cards_under(self, replica: Replica) -> list[Card] | None:
        """The cards it sits on; None when one of them is not known any more."""
        found = [self.world.cards.get(card) for card in replica.cards]
        known = [card for card in found if card is not None]
        return known if known and len(known) == len(found) else None

    def cards(self) -> list[Card]:
        """All cards by id."""
        return self.fact(every_card)

    def cards_of(self, host: str) -> list[str]:
        return self._by_host[host]

    def loading_on(self, host: str) -> list[Replica]:
        cards = self.cards_of(host)
        return self.table(loading_beside)[cards[0]] if cards else []

    # Changes

    def do(self, decision: Decision) -> bool:
        """Records a decision and charges it; False, and nothing recorded, where it is not legal or a second one."""
        old = None if decision.replica is None else self.replicas.get(decision.replica)
        gone = decision.replica is not None and (old is None or old.id in self.touched or not self.known(old.id))
        if gone or not legal(decision, old):
            return False
        if old is not None:
            self.touched.add(old.id)
        self.decisions.append(decision)
        if old is None:
            self._next_id -= 1
        self._put(begun(self._next_id, decision, self.now) if old is None else changed(old, decision, self.now))
        return True

    def refuse(self, service: str, reason: Reason, why: Refusal, verb: Verb = Verb.START, told: Told = NOTHING) -> None:
        """Records why a wish is not granted: the verb is what would be done, `told` are the wish's own numbers."""
        self.decisions.append(Decision(verb, service, reason, refusal=why, numbers=told))

    def refused(self, service: str) -> bool:
        return any(d.service == service and d.refuses_wish is not None for d in self.decisions)

    def promise(self, replicas: Iterable[Replica]) -> None:
        """Keeps room for copies that shall be awake later."""
        for replica in replicas:
            for card in replica.cards:
                self._seats[replica.service].add(card)
                self.promised[card][replica.id] = with_values(replica, phase=Phase.STARTING, measured_mib=None)
                self._changed(card)

    def queue(self, card: str, seconds: float) -> None:
        """One more load waits for its turn on the card."""
        self.ahead_s[card] += seconds
        self._forget((card,))

    def phantom(self, service: str, cards: tuple[str, ...], kv_granted_mib: int) -> Replica:
        """A copy that does not exist yet, to be promised room."""
        self._next_id -= 1
        return Replica(self._next_id, service, cards, Want.READY, Phase.STARTING, kv_granted_mib=kv_granted_mib)

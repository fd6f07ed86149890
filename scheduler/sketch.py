"""The working copy of a repack search: the world as it will be after the moves chosen so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scheduler.decision import Refusal
from scheduler.draft import Draft
from scheduler.fragmentation import Mix, Stranded, kind_of, usable
from scheduler.memory import Seat, awake_count, held_mib, ours_mib, room_mib
from scheduler.moves import admits
from scheduler.policy import Policy
from scheduler.world import Card, Phase, Profile, Replica, Tier, Want, World

#: What a search goes back to: the world, its steps, who was moved.
Kept = tuple[World, tuple["Step", ...], frozenset[int]]


@dataclass(frozen=True, slots=True)
class Step:
    """One move: the copy of `replica` starts on `target` with so much KV, then the old one leaves `source`."""

    replica: int
    service: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    kv_granted_mib: int
    after: Stranded  # of the pool, once it is done


@dataclass(frozen=True, slots=True)
class Proposal:
    """Numbered moves of one pool, with fragmentation and empty cards before and after."""

    pool: str
    steps: tuple[Step, ...]
    before: Stranded
    after: Stranded
    empty_before: int
    empty_after: int


@dataclass(frozen=True, slots=True)
class Spot:
    """A card as the search sees it: room and awake copies, and what of the room the mix cannot use."""

    card: Card
    room_mib: int
    awake: int
    mix: Mix
    most_awake: int

    def unusable_mib(self, more_room: int = 0, more_awake: int = 0) -> float:
        """With so much more (or less) room and so many more (or fewer) copies."""
        room = max(0, self.room_mib + more_room)
        return float(room) if self.awake + more_awake >= self.most_awake else room * self.mix.unfit_share(room)

    def taking(self, mib: int) -> Spot:
        return replace(self, room_mib=self.room_mib - mib, awake=self.awake + 1)

    def loss_mib(self, mib: int) -> float:
        """What it can use less once a copy of this size has come; below 0 where that fills a useless hole."""
        return self.unusable_mib(-mib, 1) - self.unusable_mib()


@dataclass(frozen=True, slots=True)
class Option:
    """A set of copies and where each would go. `gain_mib` becomes usable."""

    moves: tuple[tuple[int, tuple[str, ...]], ...]
    gain_mib: float


@dataclass(slots=True)
class Search:
    """The world as it is after the moves chosen so far."""

    world: World
    policy: Policy
    now: float
    pool: str
    rules: Policy = field(init=False)  # of the pool
    draft: Draft = field(init=False)
    spots: dict[str, Spot] = field(init=False)
    steps: list[Step] = field(default_factory=list)
    moved: set[int] = field(default_factory=set)  # none twice: the second would undo the first
    vain: set[tuple[tuple[int, tuple[str, ...]], ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.rules = self.policy.of_pool(self.pool)
        self._look()

    def _look(self) -> None:
        self.draft = Draft(self.world, self.policy, self.now)
        self.spots = {card.id: self._spot(card) for card in self._cards()}

    def _cards(self) -> list[Card]:
        return [card for _, card in sorted(self.world.cards.items()) if card.pool == self.pool and usable(card)]

    def _spot(self, card: Card) -> Spot:
        book, most = self.draft.book(card.id), self.policy.max_replicas_per_card
        return Spot(card, room_mib(book) or 0, awake_count(book), self.draft.mixes()[kind_of(card)], most)

    @property
    def left(self) -> int:
        """How many moves the proposal may still have."""
        return self.rules.repack_max_moves - len(self.steps)

    @property
    def stranded(self) -> Stranded:
        return self.draft.stranded().get(self.pool, Stranded())

    @property
    def empty(self) -> int:
        return sum(not self.draft.on_card(card) for card in self.spots)

    def movable(self, card: str) -> list[Replica]:
        """Those of the card that may be moved and have one card; a team is moved by `teams` alone."""
        found = [r for r in self.draft.on_card(card) if r.id not in self.moved and settled(r)]
        return [r for r in found if len(r.cards) == 1 and r.service in self.draft.services]

    def held_mib(self, replica: Replica) -> int:
        """What comes back on each of its cards when it goes."""
        return held_mib(replica, self.draft.services[replica.service], self.policy)

    def takes_mib(self, replica: Replica, spot: Spot) -> int | None:
        """What its copy would hold there, with all the KV it may have; None where it would get less than it has.

        Nor does a busy online one come to sit beside another, or beside batch, if it does not sit so now: usable memory
        is no reason to slow callers.
        """
        claim = self.draft.services[replica.service].claim
        grant = min(claim.kv_cap_mib, spot.room_mib - claim.fixed_mib)
        if grant < replica.kv_granted_mib or spot.awake >= spot.most_awake:
            return None
        if self._disturbed(replica, spot.card.id) and not any(self._disturbed(replica, card) for card in replica.cards):
            return None
        return claim.fixed_mib + grant

    def _disturbed(self, replica: Replica, card: str) -> bool:
        """Does an online service that is called often share the card with another, or with batch?"""
        known = self.draft.services
        there = [r.service for r in self.draft.on_card(card) if r.id != replica.id] + [replica.service]
        busy = [s.profile for n in there if (s := known.get(n)) is not None and s.tier is not Tier.COLD]
        online, batch = busy.count(Profile.ONLINE), busy.count(Profile.BATCH)
        return bool(online) and online + batch > 1

    def gain_mib(self, replicas: Sequence[Replica], card: str) -> float:
        """What the card can use more once these are gone from it."""
        back, spot = sum(self.held_mib(r) for r in replicas), self.spots[card]
        return spot.unusable_mib() - spot.unusable_mib(back, -len(replicas))

    def begin_again(self, kept: Kept) -> None:
        """Go back, and forget what proved vain since: elsewhere it may not be."""
        self.vain.clear()
        self.back_to(kept)

    def back_to(self, kept: Kept) -> None:
        """Undo all since `kept`."""
        self.world, self.steps, self.moved = kept[0], list(kept[1]), set(kept[2])
        self._look()

    @property
    def kept(self) -> Kept:
        return self.world, tuple(self.steps), frozenset(self.moved)

    def take(self, option: Option) -> bool:
        """Do these moves one after the other, all of them or none."""
        kept = self.kept
        for replica, target in option.moves:
            grant = admits(self.draft, replica, target)
            if isinstance(grant, Refusal):
                self.vain.add(option.moves)
                self.back_to(kept)
                return False
            self._move(replica, target, grant)
        return True

    def _move(self, replica: int, target: tuple[str, ...], grant: int) -> None:
        old = self.draft.replicas[replica]
        self.world = moved(self.world, self.policy, old, target, grant)
        self.moved.add(replica)
        self._look()
        self.steps.append(Step(replica, old.service, old.cards, target, grant, self.stranded))


def calm(world: World) -> World:
    """The world of the night in which the moves are made: nobody waits, and what is on its way has arrived."""
    return replace(world, moves=(), orders=(), frozen=False)


def moved(world: World, policy: Policy, old: Replica, target: tuple[str, ...], grant: int) -> World:
    """The world once the copy serves on `target` and what the old one held is back."""
    service = world.services[old.service]
    new = replace(old, cards=target, kv_granted_mib=grant, measured_mib=None)
    cards = dict(world.cards)
    for ids, replica, sign in ((old.cards, old, -1), (target, new, 1)):
        taken = sign * ours_mib([Seat(replica, service)], policy)
        for card in ids:
            there = cards[card]
            if there.unavailable_mib is not None:
                cards[card] = replace(there, unavailable_mib=max(0, there.unavailable_mib + taken))
    return replace(world, cards=cards, replicas={**world.replicas, old.id: new})


def settled(replica: Replica) -> bool:
    return replica.phase is Phase.READY and replica.want is Want.READY and replica.drain_at is None

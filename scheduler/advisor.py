"""Resident, warm or on demand: what each way costs in waiting and in memory held, side by side.

Boundary cases (the rules that always keep a service) come first; where none holds, the sums decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp

from scheduler.memory import buffer_mib, ceil_div
from scheduler.policy import Policy
from scheduler.world import Card, Claim


class Mode(StrEnum):
    RESIDENT = "resident"
    WARM = "warm"
    ON_DEMAND = "demand"


class Waiter(StrEnum):
    """Who waits when it is not ready."""

    PERSON = "person"
    BACKGROUND = "background"
    TIMER = "timer"


@dataclass(frozen=True, slots=True)
class Habit:
    """How a service is used, and where it lives.

    `switches_h`: times an hour that callers would find it gone; `share` and `residue_share` of the card's allocatable
    memory that it holds awake and asleep; `contended`: share of the time in which somebody in the pool wanted memory
    and did not have it. `kept`: name of the rule that always keeps it (`kept.QUESTIONS`), or empty.
    """

    switches_h: float
    load_s: float
    wake_s: float
    price_fen_h: float
    share: float
    residue_share: float
    contended: float
    waiter: Waiter = Waiter.PERSON
    preload_hit: float = 0.0
    can_sleep: bool = True
    kept: str = ""


@dataclass(frozen=True, slots=True)
class Prices:
    """One way's two prices an hour: seconds somebody waits (weighted), and fen of memory that others wanted."""

    mode: Mode
    waiting_s: float
    waiting_fen: float
    holding_fen: float

    @property
    def fen(self) -> float:
        return self.waiting_fen + self.holding_fen


@dataclass(frozen=True, slots=True)
class Advised:
    """The advice; `why` names the boundary case that decided, and is empty where the sums did."""

    mode: Mode
    why: str
    prices: tuple[Prices, ...]


def weight(waiter: Waiter, policy: Policy) -> float:
    """What a second of this waiter counts against a person's."""
    weights: Mapping[Waiter, float] = {
        Waiter.PERSON: 1.0,
        Waiter.BACKGROUND: policy.wait_weight_background,
        Waiter.TIMER: policy.wait_weight_timer,
    }
    return weights[waiter]


def waiting_s(mode: Mode, habit: Habit, policy: Policy) -> float:
    """Weighted seconds of waiting an hour: switches x delay x (1 - preload hits) x weight of the waiter."""
    delay_s = {Mode.RESIDENT: 0.0, Mode.WARM: habit.wake_s, Mode.ON_DEMAND: habit.load_s}[mode]
    return habit.switches_h * delay_s * (1.0 - habit.preload_hit) * weight(habit.waiter, policy)


def holding_fen(mode: Mode, habit: Habit) -> float:
    """Fen an hour of memory kept from others: price x share held x share of the time in which somebody wanted it."""
    share = {Mode.RESIDENT: habit.share, Mode.WARM: habit.residue_share, Mode.ON_DEMAND: 0.0}[mode]
    return habit.price_fen_h * share * habit.contended


def prices(habit: Habit, policy: Policy) -> tuple[Prices, ...]:
    """Each way that is open to the service; warm only to an engine that can sleep."""
    ways = [Mode.RESIDENT, Mode.WARM, Mode.ON_DEMAND] if habit.can_sleep else [Mode.RESIDENT, Mode.ON_DEMAND]
    found = []
    for mode in ways:
        waits = waiting_s(mode, habit, policy)
        found.append(Prices(mode, waits, waits * policy.wait_fen_per_s, holding_fen(mode, habit)))
    return tuple(found)


def advise(habit: Habit, policy: Policy) -> Advised:
    """The cheapest way; of equals the one that waits least. What a rule always keeps is resident."""
    ways = prices(habit, policy)
    if habit.kept:
        return Advised(Mode.RESIDENT, habit.kept, ways)
    best = min(ways, key=lambda p: (p.fen, p.waiting_s))
    return Advised(best.mode, "", ways)


def switches_h(calls_h: Sequence[float], idle_s: float) -> float:
    """How often an hour a service with so many calls in each of these hours would be found unloaded.

    Calls of an hour are taken to come by chance (a Poisson stream of rate r): one finds the service gone if none came
    in the `idle_s` before it, which has the probability exp(-r x idle_s).
    """
    if not calls_h:
        return 0.0
    return sum(n * exp(-n / 3600.0 * idle_s) for n in calls_h) / len(calls_h)


@dataclass(frozen=True, slots=True)
class Fit:
    """How many models of one claim can be resident on a card at once, and the sums behind it, MiB.

    `plain`: as people count, weights into the card's size. `limit`: replicas a card may have awake.
    """

    fits: int
    plain: int
    total_mib: int
    each_mib: int
    allocatable_mib: int
    reserved_mib: int
    buffer_mib: int
    left_mib: int
    short_mib: int  # that one more would lack; 0: it is the limit of replicas that stops it


def residents(card: Card, claim: Claim, policy: Policy) -> Fit:
    """S10: of models of this claim, how many stay loaded on one empty card (fixed + KV + buffer + reserve).

    KV counts whole: residents that shall not wait for each other are granted their cap.
    """
    buffer = buffer_mib(card, policy)
    allocatable = max(0, card.total_mib - card.driver_reserved_mib - buffer)
    each = claim.fixed_mib + claim.kv_cap_mib
    by_memory = allocatable // each if each else policy.max_replicas_per_card
    fits = min(by_memory, policy.max_replicas_per_card)
    plain = card.total_mib // claim.weights_mib if claim.weights_mib else 0
    left = allocatable - fits * each
    short, reserved = max(0, each - left), card.driver_reserved_mib
    return Fit(fits, plain, card.total_mib, each, allocatable, reserved, buffer, left, short)


def lost_concurrency(free_kv_mib: int, held_mib: int, call_mib: int) -> int:
    """Calls at once that the others on a card could carry more if `held_mib` were theirs for KV."""
    if call_mib <= 0:
        return 0
    return (free_kv_mib + held_mib) // call_mib - free_kv_mib // call_mib


def share_of(held_mib: int, allocatable_mib: int) -> float:
    """Share of a card's allocatable memory; all of it where nothing is known of the card."""
    return min(1.0, held_mib / allocatable_mib) if allocatable_mib > 0 else 1.0


def call_mib(kv_bytes_per_token: int, tokens: int) -> int:
    """KV of one typical call, MiB, at least 1."""
    return max(1, ceil_div(kv_bytes_per_token * tokens, 2**20))

"""What a request would do, as JSON with numbers: worked out when its page is opened, frozen when it is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from console import state
from console.requests.colder import Colder
from console.wire import read_gateways
from scheduler.decision import Decision
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import World

#: How many services are named; the others are counted.
NAMED = 12


@dataclass(frozen=True, slots=True)
class Effect:
    """The next plan does this and would not otherwise (`more`), or the other way round."""

    verb: str
    reason: str
    services: tuple[str, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Weighed:
    """`cards`: UUIDs it touches; `held_mib` kept from others; `fen_month` of money more a month (less: negative).

    `facts`: what the kind has to say besides, (code of `words.FACTS`, its numbers).
    """

    cards: tuple[str, ...] = ()
    held_mib: int | None = None
    colder: Sequence[Colder] = ()
    fen_month: int | None = None
    effects: Sequence[Effect] = ()
    facts: Sequence[tuple[str, dict[str, Any]]] = field(default_factory=tuple)

    def frozen(self, now: float) -> dict[str, Any]:
        """JSON: `at` in seconds since the epoch, `wait_s` the worst of all, not only of those named."""
        return {
            "at": round(now),
            "cards": list(self.cards),
            "held_mib": self.held_mib,
            "colder": [[one.service, one.why, round(one.wait_s, 1), one.rough] for one in self.colder[:NAMED]],
            "colder_n": len(self.colder),
            "wait_s": round(max((one.wait_s for one in self.colder), default=0.0), 1),
            "fen_month": self.fen_month,
            "effects": [[one.verb, one.reason, list(one.services[:NAMED]), one.more] for one in self.effects],
            "facts": [[code, numbers] for code, numbers in self.facts],
        }


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the farm."""

    world: World
    rules: Policy
    now: float


def look(now: float) -> Look:
    rules = state.policy()
    return Look(state.world(now, read_gateways(), rules=rules, week_of=()), rules, now)


def difference(seen: Look, world: World, rules: Policy) -> list[Effect]:
    """What the next plan would do otherwise in this World, or by these rules."""
    old, new = _done(plan(seen.world, seen.rules, seen.now)), _done(plan(world, rules, seen.now))
    return [*_effects(new - old, more=True), *_effects(old - new, more=False)]


def _done(decisions: Iterable[Decision]) -> set[tuple[str, str, str, int | None]]:
    return {(d.verb.value, d.reason.value, d.service, d.replica) for d in decisions if d.refusal is None}


def _effects(keys: set[tuple[str, str, str, int | None]], *, more: bool) -> list[Effect]:
    by_act: dict[tuple[str, str], set[str]] = {}
    for verb, reason, service, _ in keys:
        by_act.setdefault((verb, reason), set()).add(service)
    return [Effect(*act, tuple(sorted(services)), more) for act, services in sorted(by_act.items())]

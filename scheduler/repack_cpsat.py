"""The one door to OR-Tools: an exact search that betters the heuristic's repack, where it is installed.

The model knows rooms, places and copies of one service; which rule a move would break in its turn is judged as ever by
`moves.admits`, so what the search finds is a suggestion like the heuristic's. It looks at the cards that strand most.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from scheduler.decision import Refusal
from scheduler.moves import admits
from scheduler.policy import Policy
from scheduler.sieve import Sieve
from scheduler.sketch import Option, Proposal, Spot, calm
from scheduler.sketch import Search as Sketch
from scheduler.world import Replica, World

#: How often the solver is looked at, s: between two looks the job can be cancelled.
LOOK_S = 0.5
#: A result is reproducible with one worker only; two cores would serve callers worse for a little less waiting.
WORKERS = 1


def available() -> bool:
    """Is the solver installed? It is an extra: without it the heuristic's answer stands. Asking loads nothing."""
    return find_spec("ortools") is not None


def _solver() -> Any:
    """Loaded by the job that needs it alone: it brings pandas along."""
    from ortools.sat.python import cp_model

    return cp_model


@dataclass(slots=True)
class Model:
    """Variables of one search. `at`: may the replica be on the card; its own card is always one of them."""

    cp: Any
    at: dict[tuple[int, str], Any] = field(default_factory=dict)
    home: dict[int, str] = field(default_factory=dict)


class Search:
    """One search for one proposal; `run` yields the share of its time, `stop` ends it early, `better` is the result."""

    def __init__(self, world: World, policy: Policy, now: float, warm: Proposal) -> None:
        self.cp = _solver()
        self.sketch = Sketch(calm(world), policy, now, warm.pool)
        self.policy, self.warm = self.sketch.rules, warm
        self.cards = self._cards()
        self._costs: list[Any] = []
        self.model = self._model()
        self.solver = self.cp.CpSolver()
        self.solver.parameters.max_time_in_seconds = float(self.policy.repack_search_s)
        self.solver.parameters.num_workers = WORKERS
        self.found: list[tuple[int, str]] = []

    # What is searched

    def _cards(self) -> list[str]:
        """Those that strand most, and all that the first answer touches."""
        touched = {card for step in self.warm.steps for card in (*step.source, *step.target)}
        spots = sorted(self.sketch.spots.values(), key=lambda s: (-s.unusable_mib(), -s.room_mib, s.card.id))
        most = [spot.card.id for spot in spots[: self.policy.repack_exact_cards]]
        return sorted(set(most) | (touched & self.sketch.spots.keys()))

    def _model(self) -> Model:
        model = Model(self.cp.CpModel())
        copies = [r for card in self.cards for r in self.sketch.movable(card)]
        for copy in copies:
            self._places(model, copy)
        for card in self.cards:
            self._card(model, self.sketch.spots[card], copies)
        self._one_of_a_service(model, copies)
        moves = sum(1 - model.at[pk, card] for pk, card in model.home.items())
        model.cp.add(moves <= self.policy.repack_max_moves)
        self._costs.append(moves * self.policy.repack_gain_mib * self._whole)
        model.cp.minimize(sum(self._costs))
        for step in self.warm.steps:
            if (step.replica, step.target[0]) in model.at:
                model.cp.add_hint(model.at[step.replica, step.target[0]], 1)
        return model

    def _places(self, model: Model, copy: Replica) -> None:
        """Where the copy may be: at home, or on any card whose lasting rules take it."""
        home, draft = copy.cards[0], self.sketch.draft
        sieve = Sieve(draft, draft.services[copy.service])
        for card in self.cards:
            there = draft.world.cards[card]
            host = draft.world.hosts.get(there.host)
            if card == home or (host is not None and sieve.refusal(there, host) is None):
                model.at[copy.id, card] = model.cp.new_bool_var(f"{copy.id}@{card}")
        model.home[copy.id] = home
        model.cp.add_exactly_one(model.at[copy.id, card] for card in self.cards if (copy.id, card) in model.at)

    def _card(self, model: Model, spot: Spot, copies: list[Replica]) -> None:
        """Its room and places; what of the room each size of the mix cannot use, weighed, is the cost."""
        card, cp = spot.card.id, model.cp
        mine = [(r, model.at[r.id, card]) for r in copies if (r.id, card) in model.at]
        base = spot.room_mib + sum(self.sketch.held_mib(r) for r, _ in mine if r.cards == (card,))
        room = base - sum(self._size(r, card) * var for r, var in mine)
        awake = spot.awake - sum(r.cards == (card,) for r, _ in mine) + sum(var for _, var in mine)
        cp.add(room >= min(0, spot.room_mib))
        cp.add(awake <= max(spot.most_awake, spot.awake))
        full = cp.new_bool_var(f"full {card}")
        cp.add(awake <= spot.most_awake - 1).only_enforce_if(full.negated())
        for size, weight in sizes(spot, self.policy.repack_exact_sizes):
            fits, left = cp.new_bool_var(""), cp.new_int_var(0, max(0, base), "")
            cp.add(room >= size).only_enforce_if(fits)
            cp.add_implication(full, fits.negated())
            cp.add(left >= room).only_enforce_if(fits.negated())
            self._costs.append(left * weight)

    def _size(self, copy: Replica, card: str) -> int:
        """At home what it holds; elsewhere with all the KV it may have."""
        if copy.cards == (card,):
            return self.sketch.held_mib(copy)
        claim = self.sketch.draft.services[copy.service].claim
        return claim.fixed_mib + max(claim.kv_cap_mib, copy.kv_granted_mib)

    def _one_of_a_service(self, model: Model, copies: list[Replica]) -> None:
        by_service: dict[str, list[int]] = defaultdict(list)
        for copy in copies:
            by_service[copy.service].append(copy.id)
        for ids in (ids for ids in by_service.values() if len(ids) > 1):
            for card in self.cards:
                model.cp.add_at_most_one(model.at[pk, card] for pk in ids if (pk, card) in model.at)

    @property
    def _whole(self) -> int:
        """The weight of all expected claims: what one MiB that nobody can use costs."""
        return max((spot.mix.fit[-1] for spot in self.sketch.spots.values() if spot.mix.fit), default=1)

    # The search

    def run(self) -> Iterator[float]:
        """Yields the share of its time that is over, until the solver has ended."""
        thread = threading.Thread(target=self._solve, name="repack search", daemon=True)
        thread.start()
        looks = 0
        while thread.is_alive():
            thread.join(LOOK_S)
            looks += 1
            yield min(1.0, looks * LOOK_S / self.policy.repack_search_s)

    def _solve(self) -> None:
        status = self.solver.solve(self.model.cp)
        if status in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            self.found = sorted(
                (pk, card)
                for (pk, card), var in self.model.at.items()
                if self.model.home[pk] != card and self.solver.boolean_value(var)
            )

    def stop(self) -> None:
        """Ends the solver soon; what it has found so far stands."""
        self.solver.stop_search()

    def better(self) -> Proposal | None:
        """The found moves in an order in which each is admitted; None where that is no better than the first answer."""
        left, sketch = list(self.found), self.sketch
        before, empty = sketch.stranded, sketch.empty
        while left and sketch.left > 0:
            able = next((m for m in left if not isinstance(admits(sketch.draft, m[0], (m[1],)), Refusal)), None)
            if able is None:
                break
            left.remove(able)
            sketch.take(Option(((able[0], (able[1],)),), 0.0))
        after = sketch.stranded
        if self.warm.after.stranded_mib - after.stranded_mib < self.policy.repack_gain_mib:
            return None
        return Proposal(self.warm.pool, tuple(sketch.steps), before, after, empty, sketch.empty)


def sizes(spot: Spot, most: int) -> list[tuple[int, int]]:
    """(size, weight) of the mix of a card, at most so many: neighbours are one, the larger of them."""
    weights = [total - before for total, before in zip(spot.mix.fit, (0, *spot.mix.fit), strict=False)]
    pairs = list(zip(spot.mix.sizes_mib, weights, strict=True))
    step = -(-len(pairs) // most) if pairs else 1
    groups = [pairs[i : i + step] for i in range(0, len(pairs), step)]
    return [(group[-1][0], sum(weight for _, weight in group)) for group in groups]

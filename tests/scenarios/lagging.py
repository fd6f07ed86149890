"""A farm whose cards give memory back late, or never in full, and whose calls in flight count as use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from scheduler.memory import Seat, held_mib, ours_mib
from scheduler.pressed import samples_after
from scheduler.release import Release, Sample, release_begun, release_step
from scheduler.world import Card
from tests.plays.farm import Farm


@dataclass
class Lagging(Farm):
    """`lag_s` from the end of a process to its memory's return; `kept_mib` of each process never returns."""

    lag_s: float = 0.0
    kept_mib: int = 0
    leaving: dict[str, list[tuple[float, int]]] = field(default_factory=dict)  # card: (returns at, MiB)
    ends_at: float = float("inf")  # of an answer, for a test to look at
    states: dict[str, Release] = field(default_factory=dict)

    def unexplained_mib(self, card: str) -> int:
        """What no process of ours holds any more and the driver still reports as taken."""
        return sum(mib for at, mib in self.leaving.get(card, ()) if at > self.now)

    def _drop(self, replica: int) -> None:
        gone = self.world.replicas[replica]
        held = held_mib(gone, self.world.services.get(gone.service), self.policy)
        for card in gone.cards if held else ():
            before = self.unexplained_mib(card) + self.foreign.get(card, 0)
            self.states[card] = release_begun(self.states.get(card, Release()), held, before, self.now)
            returns = [(self.now + self.lag_s, held - self.kept_mib), (float("inf"), self.kept_mib)]
            self.leaving.setdefault(card, []).extend(returns)
        super()._drop(replica)

    def _measured(self, card: Card) -> Card:
        seats = [
            Seat(r, self.world.services.get(r.service)) for r in self.world.replicas.values() if card.id in r.cards
        ]
        unexplained = self.unexplained_mib(card.id) + self.foreign.get(card.id, 0)
        taken = card.driver_reserved_mib + ours_mib(seats, self.policy) + unexplained
        sample = Sample(unexplained, pids_gone=True)
        state = release_step(self.policy, self.states.get(card.id, Release()), sample, card.total_mib, self.now)
        self.states[card.id] = state
        seen = replace(card, unavailable_mib=taken, releasing_mib=state.releasing_mib)
        return replace(seen, pressed_samples=samples_after(seen, card.pressed_samples, self.policy))

    def _refresh(self) -> None:
        super()._refresh()
        for replica, calls in self.calls.items():
            if calls and replica in self.world.replicas:
                self.change(replica, last_call_at=self.now)

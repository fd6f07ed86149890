"""Thresholds of the tiers fitted to the farm: hot is who fills the share of the cards, warm who fits in host memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scheduler.draft import Draft
from scheduler.memory import HUNDRED, allocatable_mib
from scheduler.policy import Policy
from scheduler.world import Host, Service, Tier


@dataclass(frozen=True, slots=True)
class Used:
    """A service with its calls of the week and the MiB of all its copies awake, and of one copy's weights asleep."""

    name: str
    calls_7d: int
    awake_mib: int
    weights_mib: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """More calls than `hot_calls_7d` in seven days: hot; more than `warm_calls_7d`: warm. With who that would be."""

    hot_calls_7d: int
    warm_calls_7d: int
    hot: tuple[str, ...]
    warm: tuple[str, ...]

    def tier_of(self, calls_7d: int) -> Tier:
        if calls_7d > self.hot_calls_7d:
            return Tier.HOT
        return Tier.WARM if calls_7d > self.warm_calls_7d else Tier.COLD

    def into(self, policy: Policy) -> Policy:
        """The policy with these thresholds."""
        return replace(policy, hot_calls_7d=self.hot_calls_7d, warm_calls_7d=self.warm_calls_7d)


def used(service: Service) -> Used:
    copies = max(1, service.min_replicas)
    awake = (service.claim.fixed_mib + service.claim.kv_cap_mib) * copies * service.cards_per_replica
    return Used(service.name, service.demand.calls_7d, awake, service.weights_mib)


def fit(services: Iterable[Used], pool_mib: int, host_mib: int, policy: Policy) -> Fitted:
    """`pool_mib`: what claims may use of all cards; `host_mib`: host memory for sleepers. Most called first, ties by
    name; who has no calls is never more than cold. A threshold never parts services with the same number of calls.
    """
    called = sorted((s for s in services if s.calls_7d > 0), key=lambda s: (-s.calls_7d, s.name))
    hot, rest = _fill(called, [s.awake_mib for s in called], pool_mib * policy.hot_memory_pct // HUNDRED)
    warm, cold = _fill(rest, [s.weights_mib for s in rest], host_mib)
    return Fitted(_threshold(rest), _threshold(cold), tuple(s.name for s in hot), tuple(s.name for s in warm))


def fitted_to_farm(draft: Draft, weeks: Iterable[Used]) -> Fitted:
    """To the cards and hosts as they are now; an unmeasured card counts as nothing."""
    pool_mib = sum(allocatable_mib(draft.book(card)) or 0 for card in draft.world.cards)
    return fit(weeks, pool_mib, sleeping_room_mib(draft.world.hosts.values(), draft.policy), draft.policy)


def _fill(ranked: Sequence[Used], sizes: Sequence[int], room_mib: int) -> tuple[list[Used], list[Used]]:
    """Those that fit from the top, and the rest; equals of the first that does not fit go with it."""
    count, taken = 0, 0
    while count < len(ranked) and taken + sizes[count] <= room_mib:
        taken += sizes[count]
        count += 1
    while 0 < count < len(ranked) and ranked[count - 1].calls_7d == ranked[count].calls_7d:
        count -= 1
    return list(ranked[:count]), list(ranked[count:])


def _threshold(below: Sequence[Used]) -> int:
    return max((s.calls_7d for s in below), default=0)


def sleeping_room_mib(hosts: Iterable[Host], policy: Policy) -> int:
    """Host memory that sleepers may take on all hosts together."""
    rooms = (h.memory_mib - max(policy.host_floor_mib, h.memory_mib * policy.host_floor_pct // HUNDRED) for h in hosts)
    return sum(max(0, room) for room in rooms)

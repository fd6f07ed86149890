"""How far the chips could be used at most on this traffic, by a planner that knows every call beforehand.

In each ten minutes a service must be loaded if it is hot (kept awake by the product's rule), is called in them, or was
not long before: nobody unloads between two calls that are minutes apart. Their claims, oversold as far as any card may
be, need at least so many of the largest cards. All else is generous: claims are cut to fill cards, loads take no time,
nobody is slowed, copies for peaks are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from benchmarks.stories_farm import BEGAN, DAY_S
from scheduler.memory import HUNDRED, ceil_div, least_start_mib
from scheduler.policy import DEFAULT
from scheduler.simulation import Call
from scheduler.world import Card, Tier, World

LOOK_S = 600.0


def least_cards(farm: World, calls: Iterable[Call], days: int, keeps_s: Sequence[float]) -> list[float]:
    """Cards that are in use at least, in the mean over all looks; for each time that nobody goes after its call."""
    takes = {name: least_start_mib(s, DEFAULT.oversell_mixed_pct) for name, s in farm.services.items()}
    room = list(accumulate(sorted((_allocatable_mib(card) for card in farm.cards.values()), reverse=True)))
    looks = int(days * DAY_S / LOOK_S)
    called: list[set[str]] = [set() for _ in range(looks)]
    for call in calls:
        called[min(looks - 1, int((call.at - BEGAN) / LOOK_S))].add(call.service)
    hot = {name for name, service in farm.services.items() if service.tier is Tier.HOT}
    found = []
    for keep_s in keeps_s:
        stays = int(keep_s / LOOK_S)
        loaded = (hot.union(*called[max(0, look - stays) : look + 1]) for look in range(looks))
        found.append(sum(_cards(names, takes, room) for names in loaded) / looks)
    return found


def _allocatable_mib(card: Card) -> int:
    return card.total_mib - card.driver_reserved_mib - ceil_div(card.total_mib * DEFAULT.buffer_pct, HUNDRED)


def _cards(names: set[str], takes: dict[str, int], room: list[int]) -> int:
    """By memory, and by how many copies a card may have awake."""
    if not names:
        return 0
    needed = sum(takes[name] for name in names)
    by_memory = next((i for i, mib in enumerate(room, 1) if mib >= needed), len(room))
    return max(by_memory, ceil_div(len(names), DEFAULT.max_replicas_per_card))

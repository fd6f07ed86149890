"""A company at its quota whose next caller waits: its own copies make way, as they would on a full card."""

from __future__ import annotations

from scheduler.decision import Code, Refusal
from scheduler.draft import Draft
from scheduler.memory import held_mib
from scheduler.potential import falls_asleep
from scheduler.quota import cards_of, leaving, no_start
from scheduler.room import send
from scheduler.victims import Kind, Victim, victims
from scheduler.wishes import Wish


def make_own_room(draft: Draft, wish: Wish, refused: Refusal) -> Refusal:
    """`refused` by the quota of a pool: that it waits for its own copies now, or the same, where too few may go."""
    service, pool = wish.service, str(refused.numbers["pool"])
    if refused.code is Code.QUOTA_EXCEEDED:
        for card, victim in _enough(draft, wish, pool, int(refused.numbers["needed_mib"])):
            draft.do(send(draft, service, card, victim))
    waits = no_start(draft, service, pool)
    if waits is None or waits.code is Code.QUOTA_EXCEEDED:
        return refused
    draft.relied_on |= {replica.id for replica in leaving(draft, service.tenant, pool)}
    return waits


def _enough(draft: Draft, wish: Wish, pool: str, needed_mib: int) -> list[tuple[str, Victim]]:
    """(card, who goes from it) of as few as it takes, in their order; none where all together would not do."""
    chosen: list[tuple[str, Victim]] = []
    freed = 0
    for card, victim in sorted(_own(draft, wish, pool), key=lambda one: one[1].order):
        if freed < needed_mib:
            chosen.append((card, victim))
            freed += _frees_mib(draft, victim)
    for one in reversed(chosen[:-1]):  # without the last it was not enough
        if freed - _frees_mib(draft, one[1]) >= needed_mib:
            chosen.remove(one)
            freed -= _frees_mib(draft, one[1])
    return chosen if freed >= needed_mib else []


def _own(draft: Draft, wish: Wish, pool: str) -> list[tuple[str, Victim]]:
    """Copies of the wish's company there that may go for it now, each once."""
    found: dict[int, tuple[str, Victim]] = {}
    for card in cards_of(draft, pool):
        for victim in victims(draft, card, wish.service):
            mine = draft.services[victim.replica.service].tenant == wish.service.tenant
            now = victim.rest_s <= 0 and not (wish.scales and victim.kind is Kind.IN_USE)
            if mine and now:
                found.setdefault(victim.replica.id, (card, victim))
    return list(found.values())


def _frees_mib(draft: Draft, victim: Victim) -> int:
    """Who sleeps keeps a residue."""
    replica, service = victim.replica, draft.services[victim.replica.service]
    residue = draft.policy.default_residue_mib if replica.residue_mib is None else replica.residue_mib
    stays = residue if falls_asleep(draft, replica) else 0
    return max(0, held_mib(replica, service, draft.policy) - stays) * len(replica.cards)

"""Who sees what of the board. One function takes names and numbers away; page and socket both draw what it returns."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from console.board.picture import CardNumbers, Group
from scheduler.world import Phase


def seen_by(cards: Iterable[CardNumbers], tenant: int | None) -> list[CardNumbers]:
    """The cards a tenant has replicas on, foreign ones reduced to profile and size; None: staff, everything."""
    if tenant is None:
        return list(cards)
    return [
        replace(card, groups=[group if group.tenant == tenant else _anonymous(group) for group in card.groups])
        for card in cards
        if any(group.tenant == tenant for group in card.groups)
    ]


def _anonymous(group: Group) -> Group:
    return Group(segments=[("anon", group.mib)], profile=group.profile)


def state(card: CardNumbers) -> str:
    """The one word a tile shows at its top, the most urgent first; empty: nothing to say.

    One `if` after the other: a page asks a thousand times.
    """
    if not card.total_mib or card.sampled_at is None:
        return "unknown"
    if card.stale:
        return "stale"
    if not card.healthy:
        return "sick"
    if card.pressed:
        return "pressure"
    if card.foreign_until is not None:
        return "foreign"
    if card.cordoned:
        return "cordoned"
    return _moving(card)


def _moving(card: CardNumbers) -> str:
    """Of a card that is as it should be: what comes or goes on it."""
    phases = [group.phase for group in card.groups]
    if Phase.DRAINING in phases:
        return "draining"
    if Phase.STARTING in phases:
        return "loading"
    if any([group.until is not None for group in card.groups]):
        return "notice"
    return "releasing" if any([kind == "rel" and size > 0 for kind, size in card.rest]) else ""


def shape(card: CardNumbers, word: str | None = None) -> str:
    """Changes when the tile must be drawn anew; while it stays, only widths and figures move. `word`: its `state`."""
    parts = [f"{group.replica}{group.phase}{group.profile}{group.until or ''}" for group in card.groups]
    facts = (card.eaten, card.total_mib, card.used_mib is None, card.foreign_until)
    text = "|".join([*parts, state(card) if word is None else word, *map(str, facts)])
    return f"{zlib.crc32(text.encode()):08x}"


def layout(cards: Iterable[CardNumbers]) -> str:
    """Changes when cards come, go or move: the page then fetches all of them."""
    return f"{zlib.crc32(','.join(str(card.id) for card in cards).encode()):08x}"


@dataclass(frozen=True, slots=True)
class Key:
    """One key figure: its id in the page, value, unit and a line below; `bad` turns it red."""

    name: str
    value: str
    unit: str
    detail: str
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """Calls held at the gateways for one tenant's services, and since when the first of them."""

    count: int = 0
    since: float | None = None


def held_by(held: Mapping[int, Held] | None, tenant: int | None) -> Held | None:
    """Held calls as the scope may know them; None: the gateways are not heard."""
    if held is None:
        return None
    mine = [one for owner, one in held.items() if tenant in (None, owner)]
    return Held(sum(one.count for one in mine), min((one.since for one in mine if one.since is not None), default=None))

"""What somebody chose to see of the board; it stands in the address, so that a link shows the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from console.board.names import Names, number_of
from console.board.picture import CardNumbers
from console.board.scopes import state
from scheduler.world import Phase

#: From this many cards on tiles are drawn small unless the address says otherwise.
DENSE_FROM = 64
CHANGING = frozenset({"loading", "draining", "notice", "releasing"})


#: A card and the word its tile shows (`scopes.state`): is it one of these?
Holds = Callable[[CardNumbers, str], bool]


def _asleep(card: CardNumbers, word: str) -> bool:
    return any(group.phase == Phase.ASLEEP for group in card.groups)


#: Name in the address → (word, which cards). In the order shown.
STATES: dict[str, tuple[object, Holds]] = {
    "": (_("全部"), lambda card, word: True),
    "pressure": (_("压力"), lambda card, word: card.pressed),
    "change": (_("变动中"), lambda card, word: word in CHANGING),
    "asleep": (_("有休眠"), _asleep),
    "stale": (_("数据陈旧"), lambda card, word: word in ("stale", "unknown")),
    "off": (_("停用"), lambda card, word: card.cordoned or not card.healthy),
}


@dataclass(frozen=True, slots=True)
class Choice:
    pool: str = ""
    tenant: str = ""  # slug
    state: str = ""
    q: str = ""
    dense: bool | None = None
    wall: bool = False

    @classmethod
    def read(cls, asked: QueryDict) -> Choice:
        """Never refuses: what makes no sense shows everything."""
        state_name = asked.get("state", "")
        dense = {"1": True, "0": False}.get(asked.get("dense", ""))
        return cls(
            asked.get("pool", "")[:50],
            asked.get("tenant", "")[:50],
            state_name if state_name in STATES else "",
            asked.get("q", "").strip()[:60],
            dense,
            asked.get("wall") == "1",
        )

    @property
    def narrows(self) -> bool:
        return bool(self.pool or self.tenant or self.state or self.q)

    def query(self, **change: object) -> str:
        """The address's query with something else chosen; empty when nothing is."""
        other = replace(self, **change)  # type: ignore[arg-type]
        values = {"pool": other.pool, "tenant": other.tenant, "state": other.state, "q": other.q}
        chosen = {name: value for name, value in values.items() if value}
        if other.dense is not None:
            chosen["dense"] = str(int(other.dense))
        if other.wall:
            chosen["wall"] = "1"
        return f"?{urlencode(chosen)}" if chosen else "?"

    def but_state(self, cards: Sequence[CardNumbers], names: Names) -> list[CardNumbers]:
        """Cards by everything but their state. `cards` went through `seen_by`: nothing foreign can be searched for."""
        if not (self.pool or self.tenant or self.q):
            return list(cards)
        owners = {row.pk: row.slug for row in names.tenants.values()}
        return [card for card in cards if self._place(card, names) and self._who(card, owners, names)]

    def with_state(self, cards: Sequence[CardNumbers]) -> list[CardNumbers]:
        holds = STATES[self.state][1]
        return [card for card in cards if holds(card, state(card))] if self.state else list(cards)

    def is_dense(self, cards: int) -> bool:
        return cards >= DENSE_FROM if self.dense is None else self.dense

    def _place(self, card: CardNumbers, names: Names) -> bool:
        return not self.pool or names.cards[card.id].pool.name == self.pool

    def _who(self, card: CardNumbers, owners: dict[int, str], names: Names) -> bool:
        if self.tenant and all(group.tenant is None or owners[group.tenant] != self.tenant for group in card.groups):
            return False
        row = names.cards[card.id]
        said = [number_of(row), row.host.name]
        said += [names.services[group.service] for group in card.groups if group.service is not None]
        return not self.q or self.q == row.uuid or any(self.q.lower() in word.lower() for word in said)


def counts(cards: Sequence[CardNumbers]) -> dict[str, int]:
    """How many cards each state would show."""
    words = [(card, state(card)) for card in cards]
    return {name: sum(holds(card, word) for card, word in words) for name, (_label, holds) in STATES.items()}

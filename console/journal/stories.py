"""Decisions and what came of them, grouped by cause: a call that waited and the room made for it are one story.

Pure: rows in, stories out. A story ends with an outcome (ready, asleep, stopped, taken back) or with a long silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from console.journal.models import Decision, Event
from scheduler.decision import Reason, Verb
from scheduler.world import Phase

Row = Decision | Event

#: A pause this long ends a story, and no story is longer than the span: both only decide what is drawn together.
PAUSE, SPAN = timedelta(minutes=15), timedelta(hours=1)
OUTCOMES = frozenset({Phase.READY, Phase.ASLEEP, Phase.STOPPED})


class Kind(StrEnum):
    """What a story is about."""

    LOAD = "load"
    RECLAIM = "reclaim"
    FAULT = "fault"
    OPERATOR = "operator"
    MOVE = "move"


KINDS: dict[str, Kind] = {
    Reason.HOLD: Kind.LOAD,
    Reason.MINIMUM: Kind.LOAD,
    Reason.FORECAST: Kind.LOAD,
    Reason.THROTTLE: Kind.LOAD,
    Reason.QUEUE: Kind.LOAD,
    Reason.P99: Kind.LOAD,
    Reason.ROOM: Kind.LOAD,
    Reason.UNNEEDED: Kind.LOAD,
    Reason.IDLE: Kind.RECLAIM,
    Reason.CALL: Kind.RECLAIM,
    Reason.SURPLUS: Kind.RECLAIM,
    Reason.BUDGET: Kind.RECLAIM,
    Reason.FAULT: Kind.FAULT,
    Reason.REBUILD: Kind.FAULT,
    Reason.OPERATOR: Kind.OPERATOR,
}


@dataclass(slots=True)
class Story:
    """Rows of one cause in the order they happened. `service` is the id it is about; None: deleted since."""

    kind: Kind
    service: int | None
    rows: list[Row] = field(default_factory=list)
    done: bool = False

    @property
    def start(self) -> datetime:
        return self.rows[0].at

    @property
    def end(self) -> datetime:
        return self.rows[-1].at

    @property
    def decisions(self) -> list[Decision]:
        return [row for row in self.rows if isinstance(row, Decision)]

    @property
    def events(self) -> list[Event]:
        return [row for row in self.rows if isinstance(row, Event)]

    @property
    def mine(self) -> list[Decision]:
        """What was decided for the service itself, without those who made room for it."""
        return [row for row in self.decisions if row.service_id == self.service]

    def takes(self, row: Row) -> bool:
        return row.at - self.end <= PAUSE and row.at - self.start <= SPAN

    def add(self, row: Row) -> None:
        self.rows.append(row)
        if isinstance(row, Event):
            self.done = self.done or (row.service_id == self.service and row.phase in OUTCOMES)
        elif (row.verb, row.reason) == (Verb.WAKE, Reason.CALL):
            self.done = True


class _Open:
    """Stories that may still go on: by service and kind, and by the replica they last moved."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self.ids = ids
        self.by_kind: dict[tuple[int | None, Kind], Story] = {}
        self.by_replica: dict[int, Story] = {}
        self.by_service: dict[int | None, list[Story]] = {}
        self.all: list[Story] = []

    def put(self, row: Row) -> None:
        story = self._going_on(row)
        if story is None:
            story = self._new(row)
        story.add(row)
        if row.replica_id is not None:
            self.by_replica[row.replica_id] = story

    def _going_on(self, row: Row) -> Story | None:
        """The story of its replica while it has no outcome; else that of its service and kind."""
        by_replica = self.by_replica.get(row.replica_id or 0)
        alive = by_replica is not None and by_replica.takes(row) and not by_replica.done
        if alive and (isinstance(row, Event) or kind_of(row) in (by_replica.kind, Kind.FAULT)):  # type: ignore[union-attr]
            return by_replica
        if isinstance(row, Event):
            alive_here = [one for one in self.by_service.get(row.service_id, ()) if one.takes(row) and not one.done]
            return alive_here[-1] if alive_here else None
        story = self.by_kind.get((cause(row, self.ids), kind_of(row)))
        return story if story is not None and story.takes(row) and not story.done else None

    def _new(self, row: Row) -> Story:
        if isinstance(row, Event):
            kind, service = Kind.FAULT if row.phase == Phase.FAILED else Kind.MOVE, row.service_id
        else:
            kind, service = kind_of(row), cause(row, self.ids)
        story = Story(kind, service)
        self.by_kind[service, kind] = story
        self.by_service.setdefault(service, []).append(story)
        self.all.append(story)
        return story


def kind_of(row: Decision) -> Kind:
    return KINDS.get(row.reason, Kind.MOVE)


def cause(row: Decision, ids: Mapping[str, int]) -> int | None:
    """The service it was done for: who goes for a waiting one belongs to that one's story, if the reader may see it."""
    waiting = row.numbers.get("room_for") if row.reason == Reason.ROOM else None
    return ids.get(str(waiting), row.service_id) if waiting else row.service_id


def group(rows: Iterable[Row], ids: Mapping[str, int]) -> list[Story]:
    """Stories, the one that began last first. `ids`: id by name of the services the reader may see."""
    # at one moment the decision comes before what came of it
    ordered = sorted(rows, key=lambda row: (row.at, isinstance(row, Event), row.pk))
    opened = _Open(ids)
    for row in ordered:
        opened.put(row)
    stories = [story for story in opened.all if story.decisions or story.kind is Kind.FAULT]
    return sorted(stories, key=lambda story: (story.start, story.rows[0].pk), reverse=True)

"""What the planner must remember of the last minutes, from the journal: swaps, throttled preloads, evictions."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.db.models import Q

from console.journal.models import Decision, Event
from scheduler.decision import Reason, Verb
from scheduler.world import Eviction, Phase, Swap, Throttled

#: Only the pressure stage's own decisions have it: the stop that ends a victim's drain is no second eviction.
EVICTS = "frees_mib"


def made_way(swapped_since: datetime, throttled_since: datetime) -> tuple[tuple[Swap, ...], tuple[Throttled, ...]]:
    """Who went for whom, and which preloads were called off for a neighbour, since then. One query: two memories."""
    rows = Decision.objects.filter(
        at__gte=min(swapped_since, throttled_since),
        verb__in=(Verb.DRAIN, Verb.STOP),
        reason__in=(Reason.ROOM, Reason.THROTTLE),
        refusal="",
        service__isnull=False,
    ).order_by("at", "id")  # by id alone SQLite reads the whole journal, newest first, for a minute of it
    swaps, throttled = [], []
    for at, reason, service, numbers in rows.values_list("at", "reason", "service__name", "numbers"):
        if reason == Reason.ROOM and at >= swapped_since and "room_for" in numbers:
            swaps.append(Swap(str(numbers["room_for"]), service, at.timestamp()))
        elif reason == Reason.THROTTLE and at >= throttled_since and "card" in numbers:
            throttled.append(Throttled(service, str(numbers["card"]), at.timestamp()))
    return tuple(swaps), tuple(throttled)


def evictions(since: datetime) -> tuple[Eviction, ...]:
    """Copies that pressure took since then, oldest first.

    One is closed by a copy that became ready after it (each closes one), and by whoever let the service go since. A
    load or a sleeper that was stopped is none to rebuild: who waits for it wishes anew.
    """
    rows = list(
        Decision.objects.filter(
            at__gte=since, verb__in=("drain", "stop"), reason=Reason.PRESSURE, refusal="", service__isnull=False
        )
        .order_by("at", "id")
        .values_list("at", "verb", "service__name", "numbers")
    )
    rows = [row for row in rows if EVICTS in row[3]]
    names = {row[2] for row in rows}
    ready, let_go = (_became_ready(names, since), _let_go(names, since)) if rows else ({}, {})
    found = []
    for at, verb, service, numbers in rows:
        is_open = verb == Verb.DRAIN and not (service in let_go and let_go[service] >= at)
        if is_open and (later := [when for when in ready.get(service, []) if when >= at]):
            ready[service].remove(later[0])
            is_open = False
        found.append(Eviction(service, str(numbers["card"]), at.timestamp(), is_open))
    return tuple(found)


def _became_ready(services: set[str], since: datetime) -> dict[str, list[datetime]]:
    """Service → when copies of it became ready, oldest first."""
    times: dict[str, list[datetime]] = defaultdict(list)
    rows = Event.objects.filter(at__gte=since, phase=Phase.READY, service__name__in=services).order_by("at", "id")
    for name, at in rows.values_list("service__name", "at"):
        times[name].append(at)
    return times


def _let_go(services: set[str], since: datetime) -> dict[str, datetime]:
    """Service → when a copy was last let go knowingly."""
    rows = Decision.objects.filter(
        ~Q(reason__in=(Reason.PRESSURE, Reason.FAULT)),
        at__gte=since,
        verb__in=(Verb.DRAIN, Verb.SLEEP, Verb.STOP),
        refusal="",
        service__name__in=services,
    )
    return dict(rows.order_by("at", "id").values_list("service__name", "at"))

"""What giving memory back cost, day by day and service by service: counted anew from the journal, so never twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from console import state
from console.catalog.models import Service
from console.journal.models import Decision as Entry
from console.journal.models import Event, ReclaimDay
from console.state import moment
from scheduler.decision import Decision, Reason, Verb
from scheduler.forecast import keeps
from scheduler.policy import Policy
from scheduler.regret import harmful, regrets
from scheduler.wishes import resident
from scheduler.world import Phase, World

#: Steps with which memory is really given back; a notice that was called off cost nothing.
GIVEN = (Verb.SLEEP, Verb.STOP)
FOR = (Reason.IDLE, Reason.ROOM)
#: What a call is refused with because its service is not there: past its hold cap, no room, loading failed.
FOR_WANT_OF_IT = frozenset({"model_loading", "no_capacity", "load_failed", "awaiting_approval"})


def run(now: datetime | None = None) -> None:
    """Today's rows, and yesterday's as long as a regret may still come."""
    now = timezone.localtime(now)
    rules = state.policy()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    count_day(midnight, rules)
    if (now - midnight).total_seconds() < 2 * rules.regret_within_s:
        count_day(midnight - timedelta(days=1), rules)


def count_day(begin: datetime, rules: Policy) -> None:
    """Reclaims and regrets of the day of site time that begins then; harmful ones are counted as calls come in."""
    end = begin + timedelta(days=1)
    given = Entry.objects.filter(
        at__gte=begin, at__lt=end, verb__in=GIVEN, reason__in=FOR, refusal="", service__isnull=False
    )
    reclaims = _times(given.order_by().values_list("service_id", "at"))
    if not reclaims:
        return
    ready = Event.objects.filter(
        at__gte=begin,
        at__lt=end + timedelta(seconds=rules.regret_within_s),
        phase=Phase.READY,
        how__in=("start", "wake"),
        service_id__in=reclaims,
    )
    starts = _times(ready.order_by().values_list("service_id", "at"))
    for service, times in reclaims.items():
        values = {"reclaims": len(times), "regrets": len(regrets(times, starts.get(service, []), rules))}
        ReclaimDay.objects.update_or_create(day=begin.date(), service_id=service, defaults=values)


def _times(rows: Iterable[tuple[int, datetime]]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = defaultdict(list)
    for service, at in rows:
        found[service].append(at.timestamp())
    return found


def blame(service: str, call_at: float) -> bool:
    """A call failed or was refused because its service was not loaded: counted when a reclaim is to blame."""
    row = Service.objects.filter(name=service).values_list("pk", "last_reclaimed_at").first()
    if row is None or not harmful(call_at, state.at(row[1]), state.policy()):
        return False
    _harm(row[0], call_at)
    return True


def blame_the_rule(decision: Decision, world: World, now: float) -> None:
    """Somebody was reclaimed who may not be: whitelisted, in its resident hours, or expected within the hour."""
    service = world.services.get(decision.service)
    replica = world.replicas.get(decision.replica) if decision.replica is not None else None
    if service is None or replica is None:
        return
    whitelisted = service.whitelisted_until is not None and service.whitelisted_until > now
    as_it_was = replace(replica, phase=Phase.READY)
    for_room = decision.reason is Reason.ROOM
    if whitelisted or resident(service, now) or keeps(world, state.policy(), now, as_it_was, for_room=for_room):
        pk = Service.objects.filter(name=service.name).values_list("pk", flat=True).first()
        if pk is not None:
            _harm(pk, now)


def _harm(service: int, at: float) -> None:
    day = timezone.localtime(moment(at)).date()
    ReclaimDay.objects.get_or_create(day=day, service_id=service)
    ReclaimDay.objects.filter(day=day, service_id=service).update(harmful=F("harmful") + 1)

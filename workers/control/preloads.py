"""Were preloads of use? Each is judged once: as soon as a call came, or when its horizon is over without one.

A service of whose last preloads too few were of use loses them; its owner finds that in the journal and on its page,
with the switch that turns them on again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db import transaction

from console.catalog.models import Forecast
from console.journal.models import Decision
from console.state import moment
from console.usage.models import Session
from scheduler.decision import Reason, Verb
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from workers.control.sessions import count, day_of

#: How long ago a preload may have begun that is not judged yet, beside its horizon: leads and loads are shorter.
LONGEST_LEAD = timedelta(hours=2)
#: Verb and reason of the journal's row about a service that lost its preloads: no act on a replica.
VERB, REASON = "preload", "unused"


def judge(now: datetime, rules: Policy) -> int:
    """How many preloads were judged."""
    judged = 0
    for forecast, wanted in _begun(now, rules).items():
        row = Forecast.objects.select_related("service").get(pk=forecast)
        known = {expected_at for expected_at, _ in row.judged}
        verdicts = []
        for expected_at, began in sorted(wanted.items()):
            until = expected_at + rules.preload_horizon_s
            if expected_at in known:
                continue
            used = _called(row.service.name, began, moment(until))
            if used or now.timestamp() >= until:
                verdicts.append([expected_at, int(used)])
        if verdicts:
            judged += _record(row, verdicts, now, rules)
    return judged


def _begun(now: datetime, rules: Policy) -> Mapping[int, dict[float, datetime]]:
    """Forecast row → what was expected → when the first load for it began; starts that were repeated are one."""
    since = now - LONGEST_LEAD - timedelta(seconds=rules.preload_horizon_s)
    rows = Decision.objects.filter(
        at__gte=since,
        reason=Reason.FORECAST,
        verb__in=(Verb.START, Verb.WAKE),
        refusal="",
        service__forecast__isnull=False,
    ).order_by("at")
    found: dict[int, dict[float, datetime]] = defaultdict(dict)
    for forecast, at, numbers in rows.values_list("service__forecast", "at", "numbers"):
        if "expected_at" in numbers and numbers.get("rule") != "resident":
            found[forecast].setdefault(float(numbers["expected_at"]), at)
    return found


def _called(service: str, since: datetime, until: datetime) -> bool:
    return Session.objects.filter(service=service, start__lte=until, last__gte=since).exists()


def _record(row: Forecast, verdicts: list[list[float]], now: datetime, rules: Policy) -> int:
    """Holds only where nobody judged meanwhile: the next run sees what did not."""
    last = [*row.judged, *verdicts][-rules.preload_judged :]
    used = sum(int(of_use) for _, of_use in last)
    loses = row.automatic and len(last) >= rules.preload_judged and used * HUNDRED < rules.preload_used_pct * len(last)
    with transaction.atomic():
        here = Forecast.objects.filter(pk=row.pk, changed_at=row.changed_at)
        if not here.update(judged=last, automatic=row.automatic and not loses, changed_at=now):
            return 0
        for expected_at, of_use in verdicts:
            count(day_of(moment(expected_at)), row.service.name, preloads=1, used=int(of_use))
        if loses:
            numbers = {"used": used, "preloads": len(last)}
            Decision.objects.create(at=now, verb=VERB, reason=REASON, service=row.service, numbers=numbers)
    return len(verdicts)

"""Tiers from use: everybody once a week, services younger than a week every night. What a person fixed stays.

The claim of the date and all it changes are one transaction: a control that dies in between leaves it to the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import TruncDate
from django.utils import timezone

from console import state
from console.catalog.models import Service
from console.jobs.models import Daily
from console.journal.models import Decision, Notice
from console.usage.models import HourlyCalls
from scheduler.draft import Draft
from scheduler.fitted import fitted_to_farm, used
from scheduler.policy import Policy
from scheduler.tiers import RANK, WEEK, hours_since_due, of_young, recomputed, tier_of, young
from scheduler.world import Tier
from workers.control import noticed
from workers.control.noticed import Said

WEEKLY, NIGHTLY = "tiers_weekly", "tiers_nightly"
#: Verb and reason of a change of tier in the journal: no act on a replica, so none of the planner's.
VERB, REASON = "tier", "calls"


def run(now: datetime | None = None) -> int:
    """Recompute what is due at `now` (default: this moment); the number of services whose tier changed."""
    now = timezone.localtime(now)
    rules = state.policy()
    with transaction.atomic():
        weekly = _claim(WEEKLY, _last_due(now, rules, weekly=True), now)
        nightly = _claim(NIGHTLY, _last_due(now, rules, weekly=False), now)
        return _recompute(now, rules, weekly=weekly) if weekly or nightly else 0


def _last_due(now: datetime, rules: Policy, *, weekly: bool) -> datetime:
    """The last moment at which a recomputation was due; `now` is site time."""
    ago = hours_since_due(now.weekday(), now.hour, rules, weekly=weekly)
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=ago)


def _claim(name: str, due: datetime, now: datetime) -> bool:
    """True for the one who moves the date past `due`. A new site begins with the next one."""
    _, new = Daily.objects.get_or_create(name=name, defaults={"done_at": now})
    return not new and bool(Daily.objects.filter(name=name, done_at__lt=due).update(done_at=now))


def _recompute(now: datetime, rules: Policy, *, weekly: bool) -> int:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    dates = [midnight.date() - timedelta(days=back) for back in range(WEEK, 0, -1)]
    counts = calls_by_day(midnight - timedelta(days=WEEK), midnight)
    changed = 0
    if weekly:
        rules = fit(now, rules, {name: sum(days.values()) for name, days in counts.items()})
    for service in Service.objects.filter(tier_fixed=False).order_by("name"):
        days = [counts[service.name].get(day, 0) for day in dates]
        age_s = (midnight - service.created_at).total_seconds()
        if young(age_s):
            tier = of_young(Tier(service.tier), sum(days), age_s, rules)
        elif weekly:
            tier = recomputed(Tier(service.tier), days, rules)
        else:
            continue
        changed += tier != service.tier and _move(service, tier, days, now)
    return changed


def fit(now: datetime, rules: Policy, calls: Mapping[str, int]) -> Policy:
    """Propose thresholds fitted to the farm, with what they would change; where the policy says so they hold."""
    world = state.world(now.timestamp(), rules=rules)
    weeks = [replace(used(s), calls_7d=calls.get(s.name, 0)) for s in world.services.values()]
    fitted = fitted_to_farm(Draft(world, rules, now.timestamp()), weeks)
    steps = [RANK[fitted.tier_of(one.calls_7d)] - RANK[tier_of(one.calls_7d, rules)] for one in weeks]
    moves = Counter("up" if step > 0 else "down" for step in steps if step)
    numbers = {
        "hot_calls_7d": fitted.hot_calls_7d,
        "warm_calls_7d": fitted.warm_calls_7d,
        "hot": len(fitted.hot),
        "warm": len(fitted.warm),
        "up": moves["up"],
        "down": moves["down"],
    }
    said = [Said(Notice.Kind.TIERS, "site", numbers=numbers)] if moves and not rules.tiers_fitted else []
    noticed.sync([Notice.Kind.TIERS], said, now.timestamp())
    return fitted.into(rules) if rules.tiers_fitted else rules


def calls_by_day(since: datetime, until: datetime) -> Mapping[str, Mapping[date, int]]:
    """Service name → day of site time → calls; days without calls are absent."""
    counted: dict[str, dict[date, int]] = defaultdict(dict)
    rows = HourlyCalls.objects.filter(hour__gte=since, hour__lt=until).annotate(
        day=TruncDate("hour", tzinfo=since.tzinfo)
    )
    for service, day, calls in rows.values_list("service", "day").annotate(total=Sum("calls")):
        counted[service][day] = calls
    return counted


def _move(service: Service, tier: Tier, days: list[int], now: datetime) -> bool:
    """Holds only where nobody changed or fixed it meanwhile."""
    here = Service.objects.filter(pk=service.pk, tier=service.tier, tier_fixed=False)
    if not here.update(tier=tier.value):
        return False
    numbers = {"from": service.tier, "to": tier.value, "calls_7d": sum(days), "busiest_day": max(days)}
    Decision.objects.create(at=now, verb=VERB, reason=REASON, service=service, numbers=numbers)
    return True

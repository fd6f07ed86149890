"""What the farm learns of its callers, by the rules of the product: tiers at their hour, forecasts once a day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from functools import partial

from scheduler.estimate import load_estimate
from scheduler.habits import Day, DayKind, Past, day_ahead
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.simulation.recording import settled
from scheduler.simulation.state import DAY_S, Farm, midnight, site_day
from scheduler.simulation.trace import Habit
from scheduler.tiers import WEEK, of_young, recomputed
from scheduler.world import Forecast

HOUR_S, MINUTE_S = 3600, 60
EPOCH = date(1970, 1, 1)
SATURDAY = 5
DAYS_AHEAD = 2
NOBODYS: Mapping[str, Habit] = {}


def start(farm: Farm, habits: Mapping[str, Habit] = NOBODYS, *, tiers_stand: bool = False) -> None:
    """Forecasts are made at each midnight, tiers looked at in the small hours; the first now."""
    for name, habit in habits.items():
        desk = farm.desks[name]
        desk.hours_by_day.update(habit.hours_by_day)
        desk.starts.extend(habit.starts)
    look_ahead(farm)
    if tiers_stand:
        return
    hour = midnight(farm, site_day(farm)) + farm.policy.tiers_hour * HOUR_S
    farm.at(hour if hour > farm.now else hour + DAY_S, partial(tiers, farm))


def look_ahead(farm: Farm) -> None:
    """What is expected of today and tomorrow."""
    today = site_day(farm)
    days = [EPOCH + timedelta(days=today + i) for i in range(DAYS_AHEAD)]
    kinds = _kinds(farm, today)
    for name, desk in sorted(farm.desks.items()):
        called = {EPOCH + timedelta(days=d): bits for d, bits in desk.hours_by_day.items()}
        if not called:
            continue
        first = min(called)
        called |= {d: 0 for d in _between(first, days[0]) if d not in called}
        past = Past(called, [(EPOCH + timedelta(days=d), minute) for d, minute in desk.starts])
        ahead = [day_ahead(past, kinds, day, days[0], farm.policy) for day in days]
        farm.forecasts[name] = _forecast(farm, name, today, ahead, called)
    farm.likely = [name for name, forecast in farm.forecasts.items() if _likely(forecast, farm.policy)]
    farm.at(midnight(farm, today + 1), partial(look_ahead, farm))


def _likely(forecast: Forecast, policy: Policy) -> bool:
    """Is anything in it that a load could be worth?"""
    best = max([*forecast.hours, *(probability for _, probability in forecast.moments)], default=0.0)
    return best >= policy.preload_at_pct / HUNDRED


def _between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=i) for i in range((last - first).days)]


def _kinds(farm: Farm, today: int) -> dict[date, DayKind]:
    """Of every day that a rule may look at: as told, else by the weekday."""
    found = {}
    for day in range(today - 400, today + DAYS_AHEAD + 1):
        one = EPOCH + timedelta(days=day)
        usual = DayKind.DAY_OFF if one.weekday() >= SATURDAY else DayKind.WORKDAY
        found[one] = farm.machine.kinds.get(one, usual)
    return found


def _forecast(farm: Farm, name: str, today: int, ahead: list[Day], called: dict[date, int]) -> Forecast:
    begins = midnight(farm, today)
    host = next(iter(sorted(farm.world.hosts)))
    load_s = load_estimate(farm.picture(), farm.policy, farm.services[name], host).seconds
    bits = called.get(EPOCH + timedelta(days=today - 1), 0)
    moments = [
        (begins + i * DAY_S + moment.minute * MINUTE_S, moment.probability)
        for i, day in enumerate(ahead)
        for moment in day.moments
    ]
    return Forecast(
        begins,
        tuple(share for day in ahead for share in day.hours),
        tuple(bool(bits >> hour & 1) for hour in range(24)),
        tuple(sorted(moments)),
        load_s,
    )


def tiers(farm: Farm) -> None:
    """Each day for who is younger than a week, once a week for all."""
    today = site_day(farm)
    weekly = (EPOCH + timedelta(days=today)).weekday() == farm.policy.tiers_weekday
    age_s = farm.now - farm.began
    for name, desk in sorted(farm.desks.items()):
        week = [desk.calls_by_day.get(day, 0) for day in range(today - WEEK, today)]
        if age_s < WEEK * DAY_S:
            settled(farm, name, of_young(farm.services[name].tier, sum(week), age_s, farm.policy))
        elif weekly:
            settled(farm, name, recomputed(farm.services[name].tier, week, farm.policy))
    farm.at(farm.now + DAY_S, partial(tiers, farm))
    farm.ask(farm.now)

"""What is expected of a service: how likely it is called within a while, and what is worth loading ahead.

`Forecast` holds probabilities by the whole hour and of periodic jobs; what is asked of it here is asked each second.
How they are worked out from the past is `scheduler.habits`.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.estimate import load_estimate, wake_estimate
from scheduler.hosts import host_of
from scheduler.memory import HUNDRED
from scheduler.policy import Policy
from scheduler.world import Forecast, Phase, Replica, Service, World

HOUR_S = 3600.0
#: Words of `Expected.rule`.
HOURLY, PERIODIC, RESIDENT, RECALLED, LISTED = "hour", "periodic", "resident", "recalled", "listed"


@dataclass(frozen=True, slots=True)
class Expected:
    """A call that is expected from `at` on (seconds since the epoch) with `probability`, and by which rule."""

    at: float
    probability: float
    rule: str


def within(forecast: Forecast, policy: Policy, now: float, seconds: float, last_call_at: float | None = None) -> float:
    """Probability of at least one call in (now, now + seconds], 0..1. Hours not reckoned count as quiet.

    Calls of an hour are taken as Poisson: part of an hour has that part of its rate. A periodic job counts until it
    began, and not longer than its tolerance past its minute.
    """
    none = 1.0
    ends = now + seconds
    first = max(0, int((now - forecast.hours_from) // HOUR_S))
    for i in range(first, len(forecast.hours)):
        begins = forecast.hours_from + i * HOUR_S
        if begins >= ends:
            break
        share = (min(ends, begins + HOUR_S) - max(now, begins)) / HOUR_S
        none *= (1.0 - forecast.hours[i]) ** max(0.0, share)
    for at, probability in forecast.moments:
        if at <= ends and _to_come(policy, at, now, last_call_at):
            none *= 1.0 - probability
    return 1.0 - none


def _to_come(policy: Policy, at: float, now: float, last_call_at: float | None) -> bool:
    """Has the job of this moment not begun yet, and is it not long past?"""
    if now > at + policy.forecast_tolerance_s:
        return False
    return last_call_at is None or last_call_at < at - policy.forecast_tolerance_s


def due(
    forecast: Forecast, policy: Policy, now: float, lead_s: float, last_call_at: float | None = None
) -> Expected | None:
    """The expectation for which a load that takes `lead_s` must begin by now; None: there is none yet, or none likely.

    A periodic job comes before the hour it lies in. An hour that has begun is still worth a load while enough of it is
    left.
    """
    enough = policy.preload_at_pct / HUNDRED
    for at, probability in forecast.moments:
        if probability >= enough and now >= at - lead_s and _to_come(policy, at, now, last_call_at):
            return Expected(at, probability, PERIODIC)
    i = int((now - forecast.hours_from) // HOUR_S)
    this, following = _hour(forecast, i), _hour(forecast, i + 1)
    if this < enough and following < enough:
        return None
    begins = forecast.hours_from + i * HOUR_S
    if this >= enough and within(forecast, policy, now, policy.preload_horizon_s, last_call_at) >= enough:
        return Expected(begins, this, HOURLY)
    if following >= enough and now >= begins + HOUR_S - lead_s:
        return Expected(begins + HOUR_S, following, HOURLY)
    return None


def _hour(forecast: Forecast, i: int) -> float:
    return forecast.hours[i] if 0 <= i < len(forecast.hours) else 0.0


def recalled(forecast: Forecast, now: float) -> bool:
    """Was the service called yesterday in the hour that it is now?"""
    i = int((now - forecast.hours_from) // HOUR_S)
    return 0 <= i < len(forecast.recalls) and forecast.recalls[i]


def resident_due(service: Service, policy: Policy, now: float, load_s: float) -> Expected | None:
    """Its resident hours are about to begin."""
    lead_s = load_s + policy.preload_lead_s
    for begins, _ in service.resident:
        if begins - lead_s <= now < begins:
            return Expected(begins, 1.0, RESIDENT)
    return None


def let_go(service: Service, expected: Expected, lead_s: float) -> bool:
    """Did it have to go, or was it sent away, since this expectation is known? What went then went knowingly."""
    since = expected.at - lead_s
    went = [at for at in (service.last_reclaimed_at, service.let_go_at) if at is not None]
    return max(went, default=since - 1.0) >= since


def lead_s(world: World, policy: Policy, service: Service, sleeper: Replica | None, load_s: float) -> float:
    """Seconds before its time at which a load, or a wake of `sleeper`, begins."""
    host = host_of(world, sleeper) if sleeper is not None else None
    takes_s = load_s if host is None else wake_estimate(world, policy, service, host.name).seconds
    return takes_s + policy.preload_lead_s


def keeps(world: World, policy: Policy, now: float, replica: Replica, *, for_room: bool) -> bool:
    """Is its next call so likely so soon that it would be unloaded only to be loaded again?

    From idleness: within the horizon. For room: before it could be ready again, with the lead of a preload. What was
    loaded for resident hours that are about to begin stays for them.
    """
    forecast, service = world.forecasts.get(replica.service), world.services.get(replica.service)
    if service is None or (forecast is None and not service.resident):
        return False
    if replica.phase not in (Phase.READY, Phase.STARTING):
        return False
    policy, called = policy.of_service(service.name), service.demand.last_call_at
    if service.resident and resident_due(service, policy, now, forecast.load_s if forecast else 0.0):
        return True
    if forecast is None:
        return False
    if not for_room:
        likely = within(forecast, policy, now, policy.preload_horizon_s, called)
        return likely * HUNDRED >= policy.forecast_idle_pct
    host = host_of(world, replica)
    again_s = load_estimate(world, policy, service, host.name if host else "").seconds + policy.preload_lead_s
    return within(forecast, policy, now, again_s, called) * HUNDRED >= policy.forecast_room_pct

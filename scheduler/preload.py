"""Loading ahead: what a forecast or its resident hours expect soon starts in time, into room that nobody needs.

A preload asks nobody to go. It is a wish that no caller waits for: a caller may take its place while it loads.
"""

from __future__ import annotations

from collections.abc import Iterator

from scheduler import forecast
from scheduler.decision import Reason
from scheduler.draft import Draft
from scheduler.forecast import Expected
from scheduler.growth import serve
from scheduler.policy import Policy
from scheduler.wishes import Wish
from scheduler.world import Forecast, Phase, Service, Want

UNKNOWN = Forecast(0.0)


def preload(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: serves what is due, the earliest first; where much is due at once, in turn by the second."""
    found = sorted(expectations(draft), key=_order)
    first = in_turn(now, -(-len(found) // policy.preload_tries)) * policy.preload_tries
    for service, expected in found[first : first + policy.preload_tries]:
        serve(draft, Wish(service, Reason.FORECAST, 1, waiting=False, numbers=numbers(expected)))


def in_turn(now: float, count: int) -> int:
    """Whose turn it is among so many: each second the next one's, and all have theirs where plans are seconds apart."""
    second = int(now)
    return (second + second // count) % count if count else 0


def _order(found: tuple[Service, Expected]) -> tuple[float, int, str]:
    service, expected = found
    return expected.at, -service.priority, service.name


def numbers(expected: Expected) -> dict[str, int | float | str]:
    """What a decision tells of it."""
    return {
        "expected_at": expected.at,
        "probability_pct": round(expected.probability * 100),
        "rule": expected.rule,
    }


def expectations(draft: Draft) -> Iterator[tuple[Service, Expected]]:
    """Services that have no copy in hand and are expected soon."""
    forecasts = draft.world.forecasts
    for name, service in draft.services.items():
        known = forecasts.get(name, UNKNOWN)
        if known is UNKNOWN and not service.resident:
            continue
        if draft.copies(name) and draft.in_hand(name):
            continue
        expected = _due(draft, service, known)
        if expected is not None and not draft.refused(name):
            yield service, expected


def _due(draft: Draft, service: Service, known: Forecast) -> Expected | None:
    """Resident hours are a person's word; a forecast is heeded while it is of use and somebody pays for it."""
    expected = None
    if service.resident:
        expected = forecast.resident_due(service, draft.policy.of_service(service.name), draft.now, known.load_s)
    if expected is None and known.automatic and service.name not in draft.tightened and (known.hours or known.moments):
        expected = _forecast(draft, service, known)
    return expected


def _forecast(draft: Draft, service: Service, known: Forecast) -> Expected | None:
    """First as if it had to be loaded whole, which takes longest; what sleeps is woken later.

    What a person sends away right now is not called back for a guess.
    """
    policy, now, called = draft.policy.of_service(service.name), draft.now, service.demand.last_call_at
    lead_s = known.load_s + policy.preload_lead_s
    if forecast.due(known, policy, now, lead_s, called) is None:
        return None
    copies = draft.of_service(service.name)
    if any(r.want is not Want.READY and r.phase is not Phase.ASLEEP and r.reason == Reason.OPERATOR for r in copies):
        return None
    asleep = (r for r in copies if r.phase is Phase.ASLEEP and r.want is Want.ASLEEP)
    lead_s = forecast.lead_s(draft.world, policy, service, next(asleep, None), known.load_s)
    expected = forecast.due(known, policy, now, lead_s, called)
    return None if expected is None or forecast.let_go(service, expected, lead_s) else expected

"""Is a card under pressure: measured use close to what the driver has, where the next allocation kills an engine."""

from __future__ import annotations

from scheduler.decision import Code, Refusal
from scheduler.memory import HUNDRED, buffer_mib
from scheduler.policy import Policy
from scheduler.world import Card


def samples_after(card: Card, before: int, policy: Policy) -> int:
    """The new count of samples over the line, once `card` shows the newest one; `before` is the count until then.

    From `pressure_samples` on it is pressure, and stays so until use is below `relief_pct`: between the two lines
    nothing begins and nothing ends. A sample that cannot be read says nothing.
    """
    policy = policy.of_pool(card.pool)
    most = policy.pressure_samples
    if card.unavailable_mib is None:
        return before
    if nearly_full(card, policy):
        return most
    if used_at_least(card, policy.pressure_pct):
        return min(before + 1, most)
    return before if before >= most and used_at_least(card, policy.relief_pct) else 0


def used_at_least(card: Card, pct: int) -> bool:
    """Is at least this share of the card taken, by whomever? False when unknown."""
    return card.unavailable_mib is not None and card.unavailable_mib * HUNDRED >= card.total_mib * pct


def nearly_full(card: Card, policy: Policy) -> bool:
    """So little of the buffer is left that no second sample is waited for. False when unknown."""
    if card.unavailable_mib is None:
        return False
    free = card.total_mib - card.unavailable_mib
    return free * HUNDRED < buffer_mib(card, policy) * policy.of_pool(card.pool).pressure_buffer_pct


def under_pressure(card: Card, policy: Policy) -> bool:
    """Must somebody go? False while the card cannot be measured."""
    if card.unavailable_mib is None:
        return False
    return card.pressed_samples >= policy.of_pool(card.pool).pressure_samples or nearly_full(card, policy)


def short_mib(card: Card, policy: Policy, used_mib: int) -> int:
    """How much of `used_mib` must go until use is below the relief line; 0 or less: nothing."""
    most_mib = -(-card.total_mib * policy.of_pool(card.pool).relief_pct // HUNDRED) - 1
    return used_mib - most_mib


def used_pct(card: Card) -> float:
    """Measured use in percent, one decimal. The card must be measured."""
    return round((card.unavailable_mib or 0) * HUNDRED / card.total_mib, 1)


def no_newcomers(card: Card, policy: Policy) -> Refusal | None:
    """Nothing starts or wakes on a card under pressure."""
    if not under_pressure(card, policy):
        return None
    return Refusal(
        Code.UNDER_PRESSURE,
        {"card": card.id, "used_pct": used_pct(card), "relief_pct": policy.of_pool(card.pool).relief_pct},
    )

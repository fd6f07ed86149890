"""A World of memory and promises only: what the pages of quotas add up."""

from __future__ import annotations

from dataclasses import replace

from console import seats
from console.fleet.foreign import Taken
from console.fleet.quotas import quotas
from console.wire import UNKNOWN
from scheduler.policy import Policy
from scheduler.world import World


def ledger(rules: Policy) -> World:
    """Only services that have copies. Six queries, whatever the size of the farm."""
    seated = seats.seated(UNKNOWN, rules, Taken(), columns=seats.PLANNED)
    return replace(seated.world, quotas=quotas())

"""A World of memory and promises only: what the pages of quotas add up."""

from __future__ import annotations

from dataclasses import replace

from console import seats
from console.fleet.quotas import quotas
from scheduler.policy import Policy
from scheduler.world import World


def ledger(rules: Policy) -> World:
    """Only services that have copies. Four queries, whatever the size of the farm."""
    return replace(seats.memory(rules), quotas=quotas())

"""Memory on its way back, card by card: which replicas just ended there, and what the new sample says of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import prefetch_related_objects

from console import state
from console.catalog.models import Replica
from scheduler.memory import Seat, held_mib, ours_mib
from scheduler.policy import Policy
from scheduler.release import Release, Sample, release_begun, release_step
from scheduler.world import Phase
from workers.messages import CardSample, HostReport

GONE = frozenset({Phase.STOPPED, Phase.FAILED})
#: All of a replica's own, in the order in which it takes them.
COLUMNS = tuple("pk" if field.primary_key else field.attname for field in Replica._meta.concrete_fields)


def after(
    report: HostReport, cards: Sequence[Any], rows: Sequence[Any], now: float, policy: Policy
) -> dict[str, dict[str, Any]]:
    """The new `Card.release` by UUID. `cards` and `rows` are as they were before this report.

    `rows` are replicas as tuples of `COLUMNS`: models are made of them only where memory is on its way.
    """
    gone = _ended(report, rows)
    if not gone and not any(card.release for card in cards):
        return {card.uuid: {} for card in cards}
    before = [Replica.from_db(DEFAULT_DB_ALIAS, COLUMNS, row) for row in rows]
    prefetch_related_objects(before, "service")
    ended = [row for row in before if row.pk in gone]
    samples = {sample.uuid: sample for sample in report.cards}
    live = {seen.id for seen in report.replicas if seen.phase not in GONE}
    fresh = list(Replica.objects.filter(pk__in=[row.pk for row in before]).select_related("service"))
    old_seats, new_seats = _seats(before, policy), _seats(fresh, policy)
    result = {}
    for card in cards:
        release = Release(**card.release)
        was = _unexplained(
            card.total_mib, card.free_mib, _reserved(card, card.reserved_mib), old_seats[card.uuid], policy
        )
        for row in ended:
            if card.uuid in row.cards:
                held = held_mib(state.seen(row), _core_service(row, policy), policy)
                release = release_begun(release, held, was, now)  # `held` is of each of its cards
        sample = samples[card.uuid]
        reserved = _reserved(card, sample.reserved_mib)
        unexplained = _unexplained(sample.total_mib, sample.free_mib, reserved, new_seats[card.uuid], policy)
        seen = Sample(unexplained, pids_gone=not _strays(sample, live))
        release = release_step(policy, release, seen, sample.total_mib, now)
        result[card.uuid] = {} if release == Release() else asdict(release)
    return result


def _reserved(card: Any, reserved_mib: int) -> int:
    """The driver's own, or what the empty card shows where processes cannot be measured."""
    return max(reserved_mib, card.baseline_mib or 0)


def _ended(report: HostReport, before: Iterable[Any]) -> set[int]:
    """Replicas that held memory by the last report and hold none by this one."""
    now_gone = {(seen.id, seen.attempt) for seen in report.replicas if seen.phase in GONE}
    return {row.pk for row in before if row.phase not in GONE and (row.pk, row.phase_attempt) in now_gone}


def _strays(sample: CardSample, live: set[int]) -> list[int]:
    """Processes of ours that belong to no live replica."""
    return [process.pid for process in sample.processes if process.replica is not None and process.replica not in live]


def _seats(rows: Iterable[Replica], policy: Policy) -> dict[str, list[Seat]]:
    seats: dict[str, list[Seat]] = defaultdict(list)
    for row in rows:
        for card in row.cards:
            seats[card].append(Seat(state.seen(row), _core_service(row, policy)))
    return seats


def _core_service(row: Replica, policy: Policy) -> Any:
    return state.claim_only(row.service, policy)


def _unexplained(
    total_mib: int, free_mib: int | None, reserved_mib: int, seats: Sequence[Seat], policy: Policy
) -> int | None:
    if free_mib is None or not total_mib:
        return None
    return total_mib - free_mib - reserved_mib - ours_mib(seats, policy)

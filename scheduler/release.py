"""When memory that a stopped replica held counts as back: two samples in a row say so, or time is up.

The state is one row per card, kept by whoever ingests samples; nothing here remembers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler.memory import HUNDRED
from scheduler.policy import Policy

#: One sample may have been taken before the driver had cleaned up; two in a row were not.
SAMPLES_NEEDED = 2


@dataclass(frozen=True, slots=True)
class Release:
    """`before_mib` is the card's unexplained use while the replica still ran; `since` None: nothing is in release."""

    releasing_mib: int = 0
    before_mib: int = 0
    since: float | None = None
    good_samples: int = 0
    unexplained_mib: int = 0  # did not come back in time: external now, with an alert


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at the card; `unexplained_mib` = unavailable - driver_reserved - ours, None: could not be measured."""

    unexplained_mib: int | None
    pids_gone: bool


def release_begun(state: Release, held_mib: int, unexplained_mib: int | None, now: float) -> Release:
    """A replica that held this much was seen stopped; `unexplained_mib` is that of the last sample before."""
    before = state.before_mib if state.since is not None else max(0, unexplained_mib or 0)
    return Release(state.releasing_mib + held_mib, before, now, 0, state.unexplained_mib)


def release_step(policy: Policy, state: Release, sample: Sample, total_mib: int, now: float) -> Release:
    """The state after one more sample. An unmeasured card proves nothing, but time goes on."""
    if state.since is None:
        return _explained(policy, state, sample, total_mib)
    over = None if sample.unexplained_mib is None else sample.unexplained_mib - state.before_mib
    back = sample.pids_gone and over is not None and over <= _noise_mib(policy, total_mib)
    good = state.good_samples + 1 if back else 0
    if good >= SAMPLES_NEEDED:
        return Release()
    if now - state.since >= policy.release_timeout_s:
        rest = state.releasing_mib if over is None else max(0, over)
        return Release(before_mib=state.before_mib, unexplained_mib=rest)
    return replace(state, good_samples=good)


def _noise_mib(policy: Policy, total_mib: int) -> int:
    return total_mib * policy.release_tolerance_pct // HUNDRED


def _explained(policy: Policy, state: Release, sample: Sample, total_mib: int) -> Release:
    """What came back late ends the alert."""
    if not state.unexplained_mib or sample.unexplained_mib is None:
        return state
    late = sample.unexplained_mib - state.before_mib
    return Release() if late <= _noise_mib(policy, total_mib) else replace(state, unexplained_mib=late)

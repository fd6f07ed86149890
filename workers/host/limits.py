"""Every number of the host side, with its unit and why it is what it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    report_s: float = 1.0  # between two reports when nothing changes
    report_gap_s: float = 0.05  # at least this long between two reports: a storm of changes costs 20 a second
    report_keep: int = 60  # entries of the report stream; control trims it as well
    lock_s: float = 15.0  # a new agent waits so long for the old one of its host to end
    tick_s: float = 1.0  # between two looks at a replica that is settled
    quick_tick_s: float = 0.2  # and at one that is on its way
    scan_age_s: float = 0.3  # process table this old is good enough for a look; a stop reads it fresh
    scrape_s: float = 2.0  # between two readings of an engine's metrics: 50 KB of text each
    probe_s: float = 2.0  # a health probe waits so long: engines on a busy machine answer late, not never
    hung_probes: int = 5  # unanswered probes in a row until an engine counts as hung: killing a slow one is worse
    sick_probes: int = 3  # "not healthy" answers in a row until an engine that was ready counts as dead
    start_s: float = 1800.0  # a start not ready by then has failed; the engine's own limit is 600 s for its core
    wake_s: float = 300.0  # longest wake call: host memory to card takes seconds
    sleep_s: float = 300.0  # longest sleep call
    retry_sleep_s: float = 5.0  # a sleep that the engine refused is tried again after this
    term_repeat_s: float = 3.0  # the first SIGTERM may be lost while an engine loads
    teardown_s: float = 10.0  # an engine that has drained needs this long to take itself apart
    force_teardown_s: float = 2.0  # and so long when force is used: the memory is needed now
    cancel_s: float = 6.0  # from the first SIGTERM to SIGKILL where no call can be in flight (loading, asleep)
    door_poll_s: float = 0.5  # between two looks at the door
    door_quick_s: float = 0.1  # and while somebody waits for its counts
    door_hung_s: float = 10.0  # a door silent so long is replaced although that cuts its streams
    door_start_s: float = 1.0  # between two starts of the door
    sample_s: float = 1.0  # between two card samples
    sample_hung_s: float = 4.0  # no sample for so long: the vendor's library hangs, nothing it said counts
    sampler_rest_s: float = 30.0  # before another sampler is tried beside one that cannot even be killed
    log_max_bytes: int = 32 * 1024 * 1024  # an engine's log is cut back beyond this
    log_keep_bytes: int = 1024 * 1024  # what stays of it
    tail_bytes: int = 64 * 1024  # read of a log when a fault is looked for
    fault_chars: int = 400  # of an engine's own words that travel in a report
    bandwidth_mib_s: int = 1000  # of the weights storage until it is known


DEFAULT = Limits()

"""Memory is back when two samples in a row say so, or is somebody else's when time is up."""

from __future__ import annotations

from scheduler.release import Release, Sample, release_begun, release_step
from tests.scheduler.build import NOW, POLICY
from tests.scheduler.cases import cases

TOTAL = 81920
NOISE = TOTAL * 2 // 100
GONE = True


def begun(held=13000, before=0, now=NOW):
    return release_begun(Release(), held, before, now)


def stepped(state, *samples, start=NOW, every=1.0):
    """The state after samples: unexplained MiB, None for one that could not be taken, or a ready Sample."""
    for i, sample in enumerate(samples, 1):
        if not isinstance(sample, Sample):
            sample = Sample(sample, GONE)
        state = release_step(POLICY, state, sample, TOTAL, start + i * every)
    return state


def test_what_a_stopped_replica_held_is_in_release():
    assert begun().releasing_mib == 13000


@cases(
    ("samples", "releasing"),
    [
        ([], 13000),
        ([0], 13000),
        ([0, 0], 0),
        ([NOISE, NOISE], 0),
        ([NOISE + 1, NOISE + 1], 13000),
        ([0, 5000, 0], 13000),
        ([0, 5000, 0, 0], 0),
        ([0, None, 0], 13000),
        ([0, None, 0, 0], 0),
        ([None, None, None], 13000),
        ([13000, 9000, 4000, 1000, 0], 0),
    ],
)
def test_two_samples_in_a_row_show_it_back(samples, releasing):
    assert stepped(begun(), *samples).releasing_mib == releasing


def test_what_others_used_before_is_not_waited_for():
    assert stepped(begun(before=20000), 20000, 20000).releasing_mib == 0
    assert stepped(begun(before=0), 20000, 20000).releasing_mib == 13000


def test_a_living_process_holds_it_whatever_the_driver_says():
    alive = Sample(0, pids_gone=False)
    assert stepped(begun(), alive, alive, alive).releasing_mib == 13000


def test_after_the_time_out_the_rest_is_unexplained():
    state = stepped(begun(), 6000, every=POLICY.release_timeout_s)
    assert (state.releasing_mib, state.unexplained_mib, state.since) == (0, 6000, None)


def test_after_the_time_out_without_a_measurement_all_of_it_is_unexplained():
    state = stepped(begun(), None, every=POLICY.release_timeout_s)
    assert (state.releasing_mib, state.unexplained_mib) == (0, 13000)


def test_what_comes_back_late_ends_the_alert():
    state = stepped(begun(), 6000, every=POLICY.release_timeout_s)
    assert stepped(state, 3000).unexplained_mib == 3000
    assert stepped(state, None).unexplained_mib == 6000
    assert stepped(state, 0) == Release()


def test_a_second_stop_in_release_adds_and_starts_anew():
    state = stepped(begun(13000, before=500), 0)
    both = release_begun(state, 7000, 9999, NOW + 10)
    assert (both.releasing_mib, both.before_mib, both.since, both.good_samples) == (20000, 500, NOW + 10, 0)
    assert stepped(both, 500, 500).releasing_mib == 0


def test_unknown_use_before_counts_as_none():
    assert begun(before=None).before_mib == 0


def test_nothing_in_release_stays_nothing():
    assert stepped(Release(), 0, 5000, None) == Release()

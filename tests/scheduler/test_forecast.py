"""How likely a call is within a while, and for what a load must begin now."""

from __future__ import annotations

import pytest

from scheduler.forecast import HOUR_S, HOURLY, PERIODIC, RESIDENT, due, keeps, let_go, recalled, resident_due, within
from scheduler.world import Demand, Forecast, Phase
from tests.scheduler.build import NOW, POLICY, a_card, a_host, a_replica, a_service, a_world
from tests.scheduler.cases import cases

LEAD = 150.0
NINE = NOW + 3 * HOUR_S


def hours(*probabilities: float, **more) -> Forecast:
    return Forecast(NOW, probabilities, **more)


@cases(("seconds", "expected"), [(3600, 0.75), (1800, 0.5), (0, 0.0), (900, 1 - 0.25**0.25)])
def test_part_of_an_hour_has_part_of_its_rate(seconds, expected):
    assert within(hours(0.75), POLICY, NOW, seconds) == pytest.approx(expected)


def test_hours_add_up_as_independent():
    both = hours(0.5, 0.8)
    assert within(both, POLICY, NOW, 7200) == pytest.approx(1 - 0.5 * 0.2)
    assert within(both, POLICY, NOW + 1800, 3600) == pytest.approx(1 - 0.5**0.5 * 0.2**0.5)


def test_what_is_not_reckoned_is_quiet():
    assert within(hours(0.9), POLICY, NOW + 2 * HOUR_S, 3600) == 0.0
    assert within(hours(0.9), POLICY, NOW - HOUR_S, 3600) == 0.0
    assert within(Forecast(NOW), POLICY, NOW, 1e6) == 0.0


def test_a_longer_while_is_never_less_likely():
    forecast = hours(0.1, 0.7, 0.0, 0.3, moments=((NOW + 5000, 0.8),))
    found = [within(forecast, POLICY, NOW, s) for s in range(0, 20000, 500)]
    assert found == sorted(found)
    assert all(0.0 <= p <= 1.0 for p in found)


def test_a_periodic_job_counts_from_far_until_it_began():
    job = Forecast(NOW, (), moments=((NOW + 600, 0.8),))
    assert within(job, POLICY, NOW, 599) == 0.0
    assert within(job, POLICY, NOW, 600) == pytest.approx(0.8)
    assert within(job, POLICY, NOW + 700, 60) == pytest.approx(0.8)  # late, within its tolerance
    assert within(job, POLICY, NOW + 721, 3600) == 0.0
    assert within(job, POLICY, NOW + 610, 60, last_call_at=NOW + 590) == 0.0
    assert within(job, POLICY, NOW + 610, 60, last_call_at=NOW - 590) == pytest.approx(0.8)


# What is due


def test_a_load_begins_so_early_that_it_is_ready_before_the_hour():
    forecast = hours(0.0, 0.0, 0.0, 0.9)
    assert due(forecast, POLICY, NINE - LEAD - 1, LEAD) is None
    found = due(forecast, POLICY, NINE - LEAD, LEAD)
    assert (found.at, found.rule) == (NINE, HOURLY)
    assert found.probability == pytest.approx(0.9)


def test_the_hour_itself_is_worth_a_load_while_enough_of_it_is_left():
    forecast = hours(0.0, 0.0, 0.0, 0.9)
    assert due(forecast, POLICY, NINE + 600, LEAD).at == NINE
    assert due(forecast, POLICY, NINE + 3500, LEAD) is None


@cases(("probability", "is_due"), [(0.49, False), (0.5, True), (1.0, True)])
def test_only_what_is_likely_enough_is_due(probability, is_due):
    assert (due(hours(0.0, probability), POLICY, NOW + HOUR_S - 60, LEAD) is not None) is is_due
    job = Forecast(NOW, moments=((NOW + 100, probability),))
    assert (due(job, POLICY, NOW, LEAD) is not None) is is_due


def test_a_periodic_job_is_due_to_the_minute():
    job = Forecast(NOW, (0.2, 0.2), moments=((NOW + 600, 1.0),))
    assert due(job, POLICY, NOW + 449, LEAD) is None
    found = due(job, POLICY, NOW + 450, LEAD)
    assert (found.at, found.rule) == (NOW + 600, PERIODIC)
    assert due(job, POLICY, NOW + 700, LEAD).at == NOW + 600
    assert due(job, POLICY, NOW + 730, LEAD) is None
    assert due(job, POLICY, NOW + 650, LEAD, last_call_at=NOW + 600) is None


def test_before_and_after_its_hours_nothing_is_due():
    assert due(hours(0.9), POLICY, NOW - 7200, LEAD) is None
    assert due(hours(0.9), POLICY, NOW + 7200, LEAD) is None
    assert due(hours(0.9), POLICY, NOW - 60, LEAD).at == NOW


def test_it_is_remembered_which_hours_were_called_yesterday():
    forecast = Forecast(NOW, recalls=(False, True))
    assert [recalled(forecast, NOW + h * HOUR_S) for h in (-1, 0, 1, 2)] == [False, False, True, False]


# Resident hours


def test_resident_hours_are_prepared_for():
    service = a_service(resident=((NINE, NINE + 9 * HOUR_S),))
    assert resident_due(service, POLICY, NINE - 151, 30) is None
    found = resident_due(service, POLICY, NINE - 150, 30)
    assert (found.at, found.rule, found.probability) == (NINE, RESIDENT, 1.0)
    assert resident_due(service, POLICY, NINE, 30) is None  # they have begun: a minimum now, no forecast


# What went knowingly


@cases(("ago", "gone"), [(10, True), (149, True), (151, False), (5000, False)])
def test_what_was_sent_away_since_is_not_loaded_again_for_the_same_hour(ago, gone):
    found = due(hours(0.0, 0.9), POLICY, NOW + HOUR_S, LEAD)
    for fields in ({"let_go_at": NOW + HOUR_S - ago}, {"last_reclaimed_at": NOW + HOUR_S - ago}):
        assert let_go(a_service(**fields), found, LEAD) is gone
    assert let_go(a_service(), found, LEAD) is False


# What stays


def seen(forecast: Forecast, phase=Phase.READY, bandwidth=1000, **service):
    replica = a_replica(1, phase=phase)
    world = a_world(
        a_host(bandwidth_mib_s=bandwidth), a_card(), a_service(**service), replica, forecasts={"s": forecast}
    )
    return world, replica


@cases(("probability", "stays"), [(0.29, False), (0.31, True)])
def test_an_idle_copy_stays_when_a_call_within_the_hour_is_likely(probability, stays):
    world, replica = seen(hours(probability))
    assert keeps(world, POLICY, NOW, replica, for_room=False) is stays


@cases(("in_s", "stays"), [(100, True), (135, True), (300, False)])
def test_for_room_a_copy_stays_that_could_not_be_back_in_time(in_s, stays):
    """8,000 MiB at 1,000 MiB/s, 8 s more to start, 120 s of lead: 136 s."""
    world, replica = seen(Forecast(NOW, moments=((NOW + in_s, 1.0),)))
    assert keeps(world, POLICY, NOW, replica, for_room=True) is stays
    assert keeps(world, POLICY, NOW, replica, for_room=False) is True


def test_slow_storage_keeps_it_longer():
    world, replica = seen(Forecast(NOW, moments=((NOW + 150, 1.0),)), bandwidth=200)
    assert keeps(world, POLICY, NOW, replica, for_room=True)


@cases("phase", [Phase.ASLEEP, Phase.DRAINING, Phase.FAILED])
def test_only_what_is_or_comes_up_is_kept(phase):
    world, replica = seen(Forecast(NOW, moments=((NOW + 30, 1.0),)), phase)
    assert not keeps(world, POLICY, NOW, replica, for_room=True)


def test_once_the_job_has_begun_its_forecast_keeps_nothing():
    called = Demand(last_call_at=NOW + 25)
    world, replica = seen(Forecast(NOW, moments=((NOW + 30, 1.0),)), demand=called)
    assert not keeps(world, POLICY, NOW + 60, replica, for_room=True)


def test_of_an_unknown_service_nothing_is_kept():
    world, replica = seen(hours(1.0))
    assert not keeps(world, POLICY, NOW, a_replica(2, "other"), for_room=False)
    assert not keeps(a_world(a_service(), replica), POLICY, NOW, replica, for_room=False)

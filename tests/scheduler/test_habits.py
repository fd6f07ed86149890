"""What the past of a service says of a day: hours by kind of day, periodic jobs to the minute."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from scheduler.habits import RULES, DayKind, Past, day_ahead, hourly, last_workday, moments
from scheduler.policy import Policy
from tests.scheduler.build import POLICY
from tests.scheduler.cases import cases

W, OFF = DayKind.WORKDAY, DayKind.DAY_OFF
TODAY = date(2026, 3, 30)  # a Monday
DAY = timedelta(days=1)


def kinds(*, off: set[date] = frozenset(), on: set[date] = frozenset()) -> dict[date, DayKind]:
    """A year and a bit around TODAY: weekends off, but for these."""
    days = [TODAY + timedelta(days=n) for n in range(-420, 40)]
    return {d: OFF if d in off or (d.weekday() >= 5 and d not in on) else W for d in days}


KINDS = kinds()


def back(days: int) -> list[date]:
    """Yesterday first."""
    return [TODAY - timedelta(days=n) for n in range(1, days + 1)]


def called(days: list[date], *hours: int, only=lambda day: True) -> dict[date, int]:
    return {day: sum(1 << h for h in hours) if only(day) else 0 for day in days}


def workdays(day: date) -> bool:
    return KINDS[day] is W


# Hours


def test_five_weeks_of_workday_mornings_make_the_next_one_likely_and_the_day_off_unlikely():
    past = called(back(35), 9, only=workdays)
    on, off = hourly(past, KINDS, W, TODAY, POLICY), hourly(past, KINDS, OFF, TODAY, POLICY)
    assert on[9] > 0.9
    assert off[9] < POLICY.forecast_idle_pct / 100
    assert on[10] == off[10] == 0.0


@cases(("a_week", "likely"), [(5, True), (4, True), (3, True), (2, False), (1, False)])
def test_an_hour_called_most_workdays_is_worth_a_preload(a_week, likely):
    past = called(back(35), 14, only=lambda d: workdays(d) and d.weekday() < a_week)
    assert (hourly(past, KINDS, W, TODAY, POLICY)[14] >= 0.5) is likely


@cases(("days", "likely"), [(1, False), (2, True), (4, True)])
def test_one_hit_is_no_habit(days, likely):
    tuesday = TODAY + 4 * DAY
    past = called([tuesday - n * DAY for n in range(1, days + 1)], 9)
    assert (hourly(past, KINDS, W, tuesday, POLICY)[9] >= 0.5) is likely


def test_of_an_unseen_service_nothing_is_expected():
    assert hourly({}, KINDS, W, TODAY, POLICY) == (0.0,) * 24


def test_the_last_weeks_count_more():
    old = called(back(35), 9, only=lambda d: (TODAY - d).days > 21)
    young = called(back(35), 9, only=lambda d: (TODAY - d).days <= 14)
    assert hourly(young, KINDS, W, TODAY, POLICY)[9] > hourly(old, KINDS, W, TODAY, POLICY)[9]
    even = Policy(forecast_decay_pct=100)
    assert hourly(young, KINDS, W, TODAY, even)[9] == pytest.approx(hourly(old, KINDS, W, TODAY, even)[9], abs=0.05)


def test_what_is_older_than_the_weeks_or_not_over_yet_does_not_count():
    past = called([TODAY, *back(60)], 9, only=lambda d: d == TODAY or (TODAY - d).days > 35)
    assert hourly(past, KINDS, W, TODAY, POLICY)[9] == 0.0


def test_few_samples_of_a_kind_lean_on_all_days():
    """A first Saturday: no day off was seen yet, the workdays say something."""
    saturday = date(2026, 3, 28)
    past = called([saturday - n * DAY for n in range(1, 6)], 9)
    first = hourly(past, KINDS, OFF, saturday, POLICY)[9]
    later = hourly(called(back(35), 9, only=workdays), KINDS, OFF, TODAY, POLICY)[9]
    assert 0.5 < first < 1.0
    assert later < first


def test_an_adjusted_workday_is_a_workday_and_a_holiday_is_none():
    sunday, monday = date(2026, 2, 1), date(2026, 2, 2)
    moved = kinds(on={sunday}, off={monday})
    past = called([sunday - n * DAY for n in range(1, 30)], 9, only=lambda d: d.weekday() < 5)
    assert day_ahead(Past(past), moved, sunday, sunday, POLICY).hours[9] > 0.8
    assert day_ahead(Past(past), moved, monday, sunday, POLICY).hours[9] < 0.3
    assert day_ahead(Past(past), KINDS, sunday, sunday, POLICY).hours[9] < 0.3


def test_probabilities_are_below_one_and_rise_with_evidence():
    found = [hourly(called(back(n), 9), KINDS, W, TODAY, POLICY)[9] for n in (1, 3, 7, 14, 35)]
    assert found == sorted(found)
    assert found[-1] < 1.0


# Periodic jobs


def found(starts, day=TODAY, today=TODAY, known=KINDS, policy=POLICY):
    return [(m.minute, m.rule, round(m.probability, 2)) for m in moments(starts, known, day, today, policy)]


def test_the_monday_report():
    mondays = [(TODAY - timedelta(weeks=n), 10) for n in range(1, 6)]
    assert found(mondays) == [(10, "weekly", 1.0)]
    assert found(mondays, day=TODAY + DAY) == []
    assert found(mondays, day=TODAY + timedelta(weeks=1)) == [(10, "weekly", 1.0)]


@cases(("times", "is_one"), [(1, False), (2, False), (3, True), (4, True)])
def test_three_repetitions_make_it_periodic(times, is_one):
    mondays = [(TODAY - timedelta(weeks=n), 600) for n in range(1, times + 1)]
    assert bool(found(mondays)) is is_one


@cases(("spread", "is_one"), [((0, 0, 0), True), ((0, 2, -2), True), ((0, 3, -3), False)])
def test_within_two_minutes(spread, is_one):
    mondays = [(TODAY - timedelta(weeks=n), 600 + off) for n, off in enumerate(spread, 1)]
    assert bool(found(mondays)) is is_one


def test_a_job_that_ended_is_forgotten():
    for missed, is_one in [(0, True), (1, True), (2, True), (3, False)]:
        starts = [(TODAY - timedelta(weeks=n), 600) for n in range(1 + missed, 12)]
        assert bool(found(starts)) is is_one


def test_probability_is_the_share_of_the_last_occasions():
    starts = [(TODAY - timedelta(weeks=n), 600) for n in (1, 3, 4, 5)]
    assert found(starts) == [(600, "weekly", 0.8)]


def test_occasions_before_it_was_known_are_no_misses():
    starts = [(day, 510) for day in back(10) if KINDS[day] is W][:3]
    assert found(starts)[0] == (510, "daily", 1.0)


def test_a_workday_job_is_not_expected_on_sunday():
    starts = [(day, 510) for day in back(35) if KINDS[day] is W]
    sunday = TODAY - DAY
    assert found(starts, day=sunday, today=sunday) == []
    assert found(starts) == [(510, "daily", 1.0)]


def test_every_day_is_every_day():
    starts = [(day, 1) for day in back(35)]
    for day in (TODAY, TODAY + 5 * DAY):
        assert found(starts, day=day)[0][:2] == (1, "daily")


@cases(("number", "months"), [(1, 4), (15, 3), (28, 5)])
def test_monthly(number, months):
    day = date(2026, 4, number)
    starts = [(date(2026 - (3 - n < 1), (3 - n - 1) % 12 + 1, number), 30) for n in range(months)]
    assert (30, "monthly", 1.0) in found(starts, day=day, today=day)
    assert found(starts, day=day + 2 * DAY, today=day) == []


def test_the_thirty_first_skips_months_that_have_none():
    starts = [(date(2025, month, 31), 60) for month in (7, 8, 10, 12)]
    assert (60, "monthly", 1.0) in found(starts, day=date(2026, 1, 31), today=date(2026, 1, 31))


def test_the_last_workday_of_the_month():
    holiday = date(2026, 4, 30)
    known = kinds(off={holiday})
    lasts = [last_workday(2025, 11, known), last_workday(2025, 12, known), last_workday(2026, 1, known)]
    lasts += [last_workday(2026, 2, known), last_workday(2026, 3, known)]
    starts = [(day, 1080) for day in lasts]
    assert lasts[-2:] == [date(2026, 2, 27), date(2026, 3, 31)]
    eve = date(2026, 4, 29)
    assert found(starts, day=eve, today=eve, known=known) == [(1080, "last_workday", 1.0)]
    assert found(starts, day=holiday, today=eve, known=known) == []


def test_a_month_whose_end_is_not_known_has_no_last_workday():
    assert last_workday(2030, 1, KINDS) is None
    assert last_workday(2026, 3, {date(2026, 3, 31): OFF, date(2026, 3, 30): W}) == date(2026, 3, 30)


def test_several_jobs_of_a_day_are_all_found():
    starts = [(day, minute) for day in back(35) if KINDS[day] is W for minute in (480, 720, 1200)]
    assert [m for m, _, _ in found(starts)] == [480, 720, 1200]


def test_one_job_that_two_rules_find_is_there_once():
    starts = [(day, 480 + day.day % 2) for day in back(35)]
    assert len(found(starts)) == 1


def test_midnight_parts_no_job_from_itself():
    """It begins at midnight, now and then a minute early: that is the evening of the day before."""
    mondays = [TODAY - timedelta(weeks=n) for n in range(1, 6)]
    starts = [(m - DAY, 1439) if n % 2 else (m, 0) for n, m in enumerate(mondays)]
    assert [m for m, rule, _ in found(starts) if rule == "weekly"] == [0]


def test_calls_without_a_rhythm_are_none():
    """Ten a day at minutes that never come back."""
    starts = [(day, (137 * n + 331 * i * i) % 1440) for i, day in enumerate(back(35)) for n in range(6)]
    assert len(found(starts)) <= 1


def test_no_starts_no_moments():
    assert moments([], KINDS, TODAY, TODAY, POLICY) == ()


def test_occasions_come_newest_first_and_before_the_day():
    for name, rule in RULES.items():
        days = [d for d, _ in zip(rule(date(2026, 3, 31), KINDS), range(6), strict=False)]
        assert days == sorted(days, reverse=True), name
        assert days, name
        assert days[0] < date(2026, 3, 31)


def test_today_is_not_over_and_counts_for_nothing():
    starts = [(TODAY, 600)] + [(TODAY - timedelta(weeks=n), 600) for n in (1, 2)]
    assert found(starts, day=TODAY + timedelta(weeks=1)) == []


# What a job explains is not expected by the hour as well


def past_of_job(*others: tuple[date, int], lasts: int = 1, minute: int = 550) -> Past:
    """A job of every workday from 09:10 on, with other calls besides."""
    days = [day for day in back(35) if KINDS[day] is W]
    bits = {day: sum(1 << 9 + n for n in range(lasts)) for day in days}
    for day, at in others:
        bits[day] |= 1 << at // 60
    return Past({day: bits.get(day, 0) for day in back(35)}, [(day, minute) for day in days] + list(others))


@cases("lasts", [1, 3])
def test_the_hours_of_a_job_are_its_own(lasts):
    ahead = day_ahead(past_of_job(lasts=lasts), KINDS, TODAY, TODAY, POLICY)
    assert [m.minute for m in ahead.moments] == [550]
    assert set(ahead.hours) == {0.0}


def test_other_calls_of_the_hour_stay():
    """At minutes that do not come back: no job."""
    days = [day for day in back(35) if KINDS[day] is W]
    ahead = day_ahead(past_of_job(*((d, 564 + 6 * (n % 6)) for n, d in enumerate(days))), KINDS, TODAY, TODAY, POLICY)
    assert ahead.hours[9] > 0.9
    later = day_ahead(
        past_of_job(*((d, 620 + 6 * (n % 6)) for n, d in enumerate(days)), lasts=2), KINDS, TODAY, TODAY, POLICY
    )
    assert later.hours[9] == 0.0
    assert later.hours[10] > 0.9


def test_on_a_day_without_the_job_its_hours_count_as_ever():
    past = past_of_job()
    sunday = TODAY - DAY
    assert day_ahead(past, KINDS, sunday, sunday, POLICY).hours == hourly(past.called, KINDS, OFF, sunday, POLICY)

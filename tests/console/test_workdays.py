"""Which days are worked on, and hours of the week as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone, translation

from console import workdays
from scheduler.habits import DayKind

ZONE = ZoneInfo("Asia/Shanghai")
DAY = [{"days": "workday", "from": "08:00", "to": "18:00"}]


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZONE).timestamp()


@pytest.mark.parametrize(
    ("day", "works"),
    [
        (date(2026, 10, 1), False),  # National Day, a Thursday
        (date(2026, 10, 10), True),  # the Saturday that makes up for it
        (date(2026, 10, 12), True),
        (date(2026, 10, 17), False),
    ],
)
def test_holidays_and_adjusted_workdays(day, works):
    assert (workdays.kind(day) is DayKind.WORKDAY) is works


def test_of_an_unknown_year_monday_to_friday_are_workdays_and_that_is_said_once(caplog):
    workdays.year_known.cache_clear()
    week = [date(2099, 6, 1) + timedelta(days=n) for n in range(7)]
    assert [workdays.kind(day) is DayKind.WORKDAY for day in week] == [day.weekday() < 5 for day in week]
    assert len([r for r in caplog.records if "2099" in r.getMessage()]) == 1


def test_every_date_of_a_span_has_a_kind():
    found = workdays.kinds(date(2025, 12, 30), date(2027, 1, 3))
    assert len(found) == 370
    assert set(found.values()) == set(DayKind)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("", []),
        ("工作日 08:00-18:00", DAY),
        ("workday 08:00–18:00 ;", DAY),
        ("星期六 09:00-12:00；每天 22:00-06:00", [("sat", "09:00", "12:00"), ("daily", "22:00", "06:00")]),
        ("mon 09:00-12:00\nfri 00:00-23:59", [("mon", "09:00", "12:00"), ("fri", "00:00", "23:59")]),
    ],
)
def test_what_a_person_typed_is_read(text, hours):
    found = workdays.read(text)
    assert [tuple(one.values()) for one in found] == [
        one if isinstance(one, tuple) else tuple(one.values()) for one in hours
    ]


@pytest.mark.parametrize("language", ["zh-hans", "en"])
def test_what_is_said_is_read_again(language):
    hours = [{"days": days, "from": "07:30", "to": "19:00"} for days in (*workdays.DAYS, *workdays.NAMES)]
    with translation.override(language):
        assert workdays.read(workdays.said(hours, "; ")) == hours


@pytest.mark.parametrize(
    "text",
    [
        "08:00-18:00",
        "工作日",
        "工作日 8-18",
        "工作日 08:00",
        "someday 08:00-18:00",
        "工作日 25:00-26:00",
        "工作日 08:00-",
    ],
)
def test_what_cannot_be_read_is_said(text):
    with pytest.raises(ValidationError):
        workdays.read(text)


@pytest.mark.parametrize("value", [None, "x", {}, [1], [{"days": "mon"}], [{**DAY[0], "days": "never"}]])
def test_other_data_is_refused(value):
    with pytest.raises(ValidationError):
        workdays.valid_hours(value)


# Intervals


def test_workdays_from_morning_to_evening():
    with timezone.override(ZONE):
        spans = workdays.intervals(DAY, at("2026-10-12T12:00"))
    assert spans == tuple((at(f"2026-10-{d}T08:00"), at(f"2026-10-{d}T18:00")) for d in (12, 13))


def test_the_adjusted_saturday_counts_and_the_holiday_does_not():
    assert workdays.intervals(DAY, at("2026-10-10T12:00"))[0][0] == at("2026-10-09T08:00")
    assert len(workdays.intervals(DAY, at("2026-10-10T12:00"))) == 2
    assert workdays.intervals(DAY, at("2026-10-03T12:00")) == ()


def test_a_span_past_midnight_ends_the_next_day():
    night = [{"days": "daily", "from": "22:00", "to": "06:00"}]
    spans = workdays.intervals(night, at("2026-10-12T03:00"))
    assert spans[0] == (at("2026-10-11T22:00"), at("2026-10-12T06:00"))
    assert any(a <= at("2026-10-12T03:00") < b for a, b in spans)
    assert len(spans) == 3


def test_a_named_day_is_every_week():
    spans = workdays.intervals([{"days": "mon", "from": "00:00", "to": "12:00"}], at("2026-10-11T23:59"))
    assert spans == ((at("2026-10-12T00:00"), at("2026-10-12T12:00")),)


def test_no_hours_no_spans():
    assert workdays.intervals([], at("2026-10-12T12:00")) == ()

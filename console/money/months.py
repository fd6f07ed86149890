"""Months of site time: what is shown and what is enforced ask the same two functions."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from django.utils import timezone


def local(moment: datetime) -> datetime:
    """In site time, whatever zone a reader has chosen."""
    return timezone.localtime(moment, timezone.get_default_timezone())


def month_of(moment: datetime) -> datetime:
    """Midnight of the first day of its month, in site time."""
    return local(moment).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def next_month(moment: datetime) -> datetime:
    """When its month is over, in site time."""
    return month_of(month_of(moment) + timedelta(days=32))


def days_of(month: date) -> tuple[date, date]:
    """First day of the month, and first of the next."""
    first = month.replace(day=1)
    return first, (first + timedelta(days=32)).replace(day=1)

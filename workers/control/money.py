"""Periodic tasks about money."""

from __future__ import annotations

from celery import shared_task

from workers.control import booking, budgets, check_up

BEAT = {
    "calls": {"task": "control.count_call_budgets", "schedule": 5.0, "options": {"expires": 5, "queue": "control"}},
    "hours": {"task": "control.book_hours", "schedule": 60.0, "options": {"expires": 60, "queue": "control"}},
    "check-up": {"task": "control.check_up", "schedule": 300.0, "options": {"expires": 300, "queue": "control"}},
}


@shared_task(name="control.count_call_budgets")  # type: ignore[untyped-decorator]
def count_call_budgets() -> None:
    budgets.count_calls()


@shared_task(name="control.book_hours")  # type: ignore[untyped-decorator]
def book_hours() -> None:
    booking.run()


@shared_task(name="control.check_up")  # type: ignore[untyped-decorator]
def look_for_symptoms() -> None:
    check_up.run()

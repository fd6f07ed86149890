"""What a month cost, on a page and as a table for a spreadsheet."""

from __future__ import annotations

from datetime import date
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from console.accounts.access import Act, allowed, may, own
from console.accounts.models import Application, User
from console.costs import bill, by_application
from console.costs.standing import lines
from console.exports import as_csv
from console.money.months import local


def person(request: HttpRequest) -> User:
    """Who is signed in: `allowed` has seen to it."""
    return cast(User, request.user)


def asked(request: HttpRequest) -> tuple[date, str]:
    """(first day of the month, by what) as the address says, else this month by tenant."""
    by = request.GET.get("by", "")
    try:
        first = date.fromisoformat(request.GET.get("month", "") + "-01")
    except ValueError:
        first = local(timezone.now()).date().replace(day=1)
    return first, by if by in bill.WAYS else "tenant"


@allowed(Act.SEE_COSTS)
def costs(request: HttpRequest) -> HttpResponse:
    first, by = asked(request)
    user = person(request)
    known = bill.months(user)
    by_calls = by == bill.APPLICATION
    context = {
        "first": first,
        "by": by,
        "bill": None if by_calls else bill.month(user, first, by),
        "apps": _applications(request, first) if by_calls else None,
        "choices": own(Application.objects.select_related("tenant"), user) if by_calls else (),
        "months": known if first in known else sorted([first, *known], reverse=True),
        "ways": bill.WAYS.items(),
        "way": bill.WAYS[by],
        "alarms": [one for one in lines(user) if one.tone != "ok"],
        "may_see_prices": may(user, Act.SEE_PRICES),
    }
    return render(request, "costs/costs.html", context)


@allowed(Act.SEE_COSTS)
def costs_csv(request: HttpRequest) -> HttpResponse:
    """The same figures as on the page."""
    first, by = asked(request)
    if by == bill.APPLICATION:
        rows = by_application.table(_applications(request, first))
    else:
        rows = bill.table(bill.month(person(request), first, by))
    return as_csv(rows, f"cost-{first:%Y-%m}-{by}")


def _applications(request: HttpRequest, first: date) -> by_application.ByApplication:
    return by_application.month(person(request), first, request.GET.get("application", ""))

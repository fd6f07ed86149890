"""What a month cost, on a page and as a table for a spreadsheet."""

from __future__ import annotations

from datetime import date
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from console.accounts.access import Act, allowed, may
from console.accounts.models import User
from console.costs import bill
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
    return first, by if by in bill.BY else "tenant"


@allowed(Act.SEE_COSTS)
def costs(request: HttpRequest) -> HttpResponse:
    first, by = asked(request)
    user = person(request)
    known = bill.months(user)
    context = {
        "bill": bill.month(user, first, by),
        "months": known if first in known else sorted([first, *known], reverse=True),
        "ways": bill.BY.items(),
        "way": bill.BY[by],
        "alarms": [one for one in lines(user) if one.tone != "ok"],
        "may_see_prices": may(user, Act.SEE_PRICES),
    }
    return render(request, "costs/costs.html", context)


@allowed(Act.SEE_COSTS)
def costs_csv(request: HttpRequest) -> HttpResponse:
    """The same figures as on the page."""
    first, by = asked(request)
    return as_csv(bill.table(bill.month(person(request), first, by)), f"cost-{first:%Y-%m}-{by}")

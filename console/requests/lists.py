"""The pages with many requests: mine, to review, all; what may be asked for; and the number beside the menu's word."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from console.accounts.access import Act, allowed, may
from console.accounts.models import User
from console.requests.models import Request
from console.requests.rights import decides, seen, waiting
from console.requests.tables import table


def person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _list(request: HttpRequest, which: str) -> HttpResponse:
    user, now = person(request), timezone.now()
    review = waiting(user, now)
    rows = {"mine": seen(user).filter(asked_by=user), "review": review, "all": seen(user)}[which]
    context = {
        "which": which,
        "table": table(which, user).of(request, rows),
        "waits": review.count() if which != "review" else None,
        "may_file": may(user, Act.FILE_REQUESTS),
        "may_decide": decides(user, now),
        "may_name_deputy": may(user, Act.DECIDE_REQUESTS),
    }
    return render(request, "requests/requests.html", context)


@allowed(Act.SEE_REQUESTS)
def mine(request: HttpRequest) -> HttpResponse:
    return _list(request, "mine")


@allowed(Act.SEE_REQUESTS)
def review(request: HttpRequest) -> HttpResponse:
    return _list(request, "review")


@allowed(Act.SEE_REQUESTS)
def everything(request: HttpRequest) -> HttpResponse:
    return _list(request, "all")


@allowed(Act.SEE_REQUESTS)
def badge(request: HttpRequest) -> HttpResponse:
    """How many wait for this person: for a word of theirs, or sent back to them."""
    user = person(request)
    sent_back = Request.objects.filter(asked_by=user, state="returned").count()
    return render(request, "journal/_badge.html", {"count": waiting(user, timezone.now()).count() + sent_back})

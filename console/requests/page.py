"""The page of one request: what is asked, what it would do, what was said, and the decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act, allowed, may, own
from console.accounts.models import User
from console.catalog.models import Service
from console.requests import acts, files
from console.requests.deciding import Given, Word, decide, seal, unseal
from console.requests.kinds import KINDS
from console.requests.kinds.key import may_collect
from console.requests.lists import person
from console.requests.models import Request, State
from console.requests.rights import deciders_of, seen, why_not
from console.requests.steps import No
from console.requests.words import no, told, until_said
from console.services import tell

PEOPLE = ("first_by", "second_by", "refused_by", "ended_by")


def find(request: HttpRequest, pk: int) -> Request:
    """Raises Http404."""
    return get_object_or_404(seen(person(request)).select_related(*PEOPLE), pk=pk)


def names_for(user: User) -> tell.Names:
    return tell.visible(own(Service.objects.all(), user))


@allowed(Act.SEE_REQUESTS)
def page(request: HttpRequest, pk: int) -> HttpResponse:
    row, user = find(request, pk), person(request)
    context = facts(row, user) | {
        "frozen": told(row.consequences, names_for(user)) if row.consequences and not _open(row) else None,
        "weigh": _open(row),
        "crumbs": [(_("申请"), reverse("requests"))],
    }
    return render(request, "requests/request.html", context)


def _open(row: Request) -> bool:
    return row.state in (State.OPEN, State.RETURNED)


def facts(row: Request, user: User) -> dict[str, Any]:
    """What every view of it shows."""
    now, kind = timezone.now(), KINDS[row.kind]
    why = why_not(row, user, now)
    waits = row.state == State.OPEN or row.unreviewed
    attached = list(row.attachments.select_related("by"))
    return {
        "files": attached,
        "may_attach": files.may_attach(row, user) and len(attached) < files.MOST_FILES,
        "may_detach": [one.pk for one in attached if files.may_detach(one, user)],
        "accept": files.ACCEPT,
        "row": row,
        "kind": kind,
        "says": kind.says(row),
        "tried": kind.tried(row) if may(user, Act.SEE_POLICIES) else None,
        "entries": [(one, until_said(one.numbers)) for one in row.entries.select_related("by")],
        "may_decide": waits and not why,
        "why_not": no(why) if waits and why in ("own", "twice") else "",
        "may_withdraw": row.state in (State.OPEN, State.RETURNED, State.APPROVED) and acts.may_withdraw(row, user),
        "may_change": row.state == State.RETURNED and row.asked_by_id == user.pk,
        "may_remind": row.state == State.OPEN and acts.may_withdraw(row, user),
        "may_collect": may_collect(row, user),
        "service": own(Service.objects.filter(pk=row.service_id or 0), user).first(),
        "may_key": kind.key == "service" and row.state == State.IN_FORCE and may(user, Act.EDIT_KEYS),
        "may_end": kind.takes_back and acts.may_take_back(row, user),
        "hand_to": list(deciders_of(row).exclude(pk=user.pk)) if waits and not why else [],
    }


@allowed(Act.SEE_REQUESTS)
def weighed(request: HttpRequest, pk: int) -> HttpResponse:
    """The consequences as they are now, and with them the form of the decision: one is not had without the other."""
    row, user = find(request, pk), person(request)
    found = KINDS[row.kind].consequences(row, time.time())
    context = facts(row, user) | {"found": told(found, names_for(user)), "seal": seal(row, found)}
    return render(request, "requests/_weighed.html", context)


@allowed(Act.SEE_REQUESTS)
def on_paper(request: HttpRequest, pk: int) -> HttpResponse:
    """The form to print and sign: what is asked, what it does, what was said, and room for names."""
    row, user = find(request, pk), person(request)
    weighed = row.consequences or KINDS[row.kind].consequences(row, time.time())
    context = facts(row, user) | {"found": told(weighed, names_for(user)), "now": timezone.now()}
    return render(request, "requests/print.html", context)


@allowed(Act.SEE_REQUESTS)
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """Whether this person may is asked by the rule itself: deputies are known by their dates, not by their role."""
    row, posted = find(request, pk), request.POST
    if request.method != "POST":
        return redirect("request", row.pk)
    _done(request, lambda: _decided(row, person(request), posted, request.META.get("REMOTE_ADDR", "")))
    return redirect("request", row.pk)


def _decided(row: Request, by: User, posted: Mapping[str, str], origin: str) -> None:
    rules = state.policy()
    given = Given(
        word=_word(posted.get("word", "")),
        weighed=unseal(row, posted.get("seal", ""), rules),
        text=posted.get("text", "").strip()[:400],
        until=_moment(posted.get("until", "")),
        origin={"from": origin},
    )
    decide(row, by, given, rules, timezone.now())


def _word(text: str) -> Word:
    try:
        return Word(text)
    except ValueError:
        raise No("unseen") from None


def _moment(text: str) -> datetime | None:
    """Of a date-time field, which speaks site time. Raises No("past") where it is none."""
    try:
        found = parse_datetime(text) if text else None
    except ValueError:
        found = None
    if text and found is None:
        raise No("past")
    return timezone.make_aware(found) if found is not None and timezone.is_naive(found) else found


@allowed(Act.SEE_REQUESTS)
def act(request: HttpRequest, pk: int) -> HttpResponse:
    """Say, withdraw, remind, hand over: each knows itself who may."""
    row, user, now = find(request, pk), person(request), timezone.now()
    if request.method != "POST":
        return redirect("request", row.pk)
    _done(request, lambda: _do(_as_seen(row, request), user, now, request))
    return redirect("request", row.pk)


@allowed(Act.SEE_REQUESTS)
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """The question, and on a click the end of what is in force."""
    row, user = find(request, pk), person(request)
    may_end = KINDS[row.kind].takes_back and acts.may_take_back(row, user)
    if request.method == "POST" or not may_end:
        _done(request, lambda: acts.take_back(_as_seen(row, request), user, timezone.now()))
        return redirect("request", row.pk)
    says = [f"{label}{_('：')}{value}" for label, value in KINDS[row.kind].says(row)]
    context = {
        "title": _("现在就结束申请 %(n)d") % {"n": row.pk},
        "says": [*says, _("从现在起不再生效，改回它生效之前的样子。")],
        "done": _("现在就结束"),
        "danger": True,
        "to": row.version,
        "back": reverse("request", args=[row.pk]),
        "crumbs": [(_("申请"), reverse("requests"))],
    }
    return render(request, "confirm.html", context)


def _as_seen(row: Request, request: HttpRequest) -> Request:
    """With the version of the page that was looked at: whatever happened since is found out by the update."""
    version = request.POST.get("version") or request.POST.get("to", "")
    row.version = int(version) if version.isdecimal() else 0
    return row


def _done(request: HttpRequest, what: Callable[[], None]) -> None:
    """Does it and says so, or says why not."""
    try:
        what()
    except No as refused:
        messages.error(request, no(refused.code))
    else:
        messages.success(request, _("已记下。"))


def _do(row: Request, user: User, now: datetime, request: HttpRequest) -> None:
    match request.POST.get("act"):
        case "say":
            acts.say(row, user, request.POST.get("text", ""), now)
        case "withdraw":
            acts.withdraw(row, user, now)
        case "remind":
            acts.remind(row, user, now)
        case "hand":
            to = request.POST.get("to", "")
            acts.hand_over(row, user, get_object_or_404(User, pk=int(to) if to.isdecimal() else 0), now)
        case _:
            raise No("nothing_said")

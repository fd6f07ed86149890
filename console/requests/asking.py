"""The pages where somebody asks: which kind, its form, and the form again of what was sent back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act, allowed, is_one
from console.accounts.models import User
from console.requests import drafts, files
from console.requests.filing import change, file, may_hurry
from console.requests.kind import AskForm, Kind
from console.requests.kinds import KINDS
from console.requests.lists import person
from console.requests.models import Request, State
from console.requests.rights import seen
from console.requests.steps import No
from console.requests.words import no
from console.services.views import find


def _kind(key: str, user: User) -> Kind:
    """Raises Http404 for none, PermissionDenied for one that is not this person's to ask."""
    kind = KINDS.get(key)
    if kind is None:
        raise Http404
    if not is_one(user, kind.askers):
        raise PermissionDenied
    return kind


@allowed(Act.FILE_REQUESTS)
def choose(request: HttpRequest) -> HttpResponse:
    kinds = [kind for kind in KINDS.values() if is_one(person(request), kind.askers)]
    return render(request, "requests/choose.html", {"kinds": kinds, "crumbs": _crumbs()})


@allowed(Act.FILE_REQUESTS)
def new(request: HttpRequest, kind: str) -> HttpResponse:
    """GET takes what it is about from the address: links on other pages fill it in."""
    return _new(request, _kind(kind, person(request)), request.GET.dict())


@allowed(Act.FILE_REQUESTS)
def whitelist(request: HttpRequest, name: str) -> HttpResponse:
    """From the page of a service, or from a notice that its copy is about to go."""
    service = find(request, name)
    return _new(request, _kind("whitelist", person(request)), {"service": service.name})


def _new(request: HttpRequest, kind: Kind, initial: Mapping[str, Any]) -> HttpResponse:
    """An address that names something begins with that; the person's draft is then offered, else taken up."""
    user, posted = person(request), request.POST if request.method == "POST" else None
    kept = drafts.of(user, kind.key) if posted is None else None
    taken_up = kept is not None and (request.GET.get("draft") == "1" or not initial)
    if kept is not None and taken_up:
        form = kind.form(user, drafts.data(kept), {}).unjudged()
    else:
        form = kind.form(user, posted, initial)
    if posted is not None and form.is_valid():
        try:
            known = files.checked(request.FILES.getlist("files"))
            row = _filed(kind, form, user, known, urgent=bool(posted.get("urgent")))
        except No as refused:
            form.add_error(None, no(refused.code))
        else:
            said = _("已紧急生效，等复核。") if row.urgent else _("已提出，编号 %(n)d。")
            messages.success(request, said % {"n": row.pk} if not row.urgent else said)
            return redirect("request", row.pk)
    return _page(request, kind, form, may_hurry(kind, user), kept=kept, taken_up=taken_up)


def _filed(kind: Kind, form: AskForm, user: User, known: list[files.Known], *, urgent: bool) -> Request:
    """The request with its files, and no draft of it any more. Raises No."""
    with transaction.atomic():
        row = file(kind, form, user, state.policy(), timezone.now(), urgent=urgent)
        if known:
            files.attach(row, known, user, timezone.now())
        drafts.close(user, kind.key, timezone.now())
    return row


@allowed(Act.FILE_REQUESTS)
def draft(request: HttpRequest, kind: str) -> HttpResponse:
    """Keeps what is typed, as it is typed; or throws it away."""
    user, of = person(request), _kind(kind, person(request))
    if request.method != "POST":
        return redirect("request-new", kind)
    if request.POST.get("discard"):
        drafts.close(user, of.key, timezone.now())
        messages.success(request, _("草稿已丢掉。"))
        response = HttpResponse(status=204)
        response.headers["HX-Redirect"] = (
            reverse("service-new") if of.key == "service" else reverse("request-new", args=[of.key])
        )
        return response
    kept = drafts.keep(user, of.key, set(of.form(user, None, {}).fields), request.POST, timezone.now())
    return render(request, "requests/_draft.html", {"kept": kept, "kind": of, "just_now": True})


@allowed(Act.FILE_REQUESTS)
def again(request: HttpRequest, pk: int) -> HttpResponse:
    """What was sent back: changed, and asked once more."""
    user = person(request)
    row = get_object_or_404(seen(user), pk=pk)
    if row.asked_by_id != user.pk or row.state != State.RETURNED:
        messages.warning(request, no("overtaken"))
        return redirect("request", row.pk)
    kind, posted = _kind(row.kind, user), request.POST if request.method == "POST" else None
    before = {**row.wanted, "starts_at": row.starts_at, "until": row.until, "why": row.why}
    form = kind.form(user, posted, before)
    if posted is not None and form.is_valid():
        row.version = int(posted["version"]) if posted.get("version", "").isdecimal() else 0
        try:
            change(row, kind, form, user, state.policy(), timezone.now())
            messages.success(request, _("已改后再提。"))
            return redirect("request", row.pk)
        except No as refused:
            form.add_error(None, no(refused.code))
    return _page(request, kind, form, False, row)


def _page(
    request: HttpRequest, kind: Kind, form: AskForm, hurry: bool, row: Request | None = None, **more: Any
) -> HttpResponse:
    context = {"kind": kind, "form": form, "may_hurry": hurry, "row": row, "crumbs": _crumbs()}
    context |= {"accept": files.ACCEPT, "opened": time.time(), "lost": bool(request.FILES), **more}
    return render(request, "requests/ask.html", context, status=422 if request.method == "POST" else 200)


def _crumbs() -> list[tuple[str, str]]:
    return [(_("申请"), reverse("requests"))]

"""The list of services and the page of one."""

from __future__ import annotations

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act, allowed, is_one, may, own
from console.accounts.models import User
from console.board.names import hue
from console.catalog.models import Service
from console.quotas.refused import over_quota
from console.requests.kept import kept
from console.requests.kinds import KINDS
from console.services import page as facts
from console.services import snippets
from console.services.ahead import hits, list_in, switch
from console.services.changes import changes
from console.services.table import lines, table
from console.wire import read_gateways


def person(request: HttpRequest) -> User:
    """Who is signed in: `allowed` has seen to it."""
    return cast(User, request.user)


def find(request: HttpRequest, name: str) -> Service:
    """The service, if the person may see it. Raises Http404."""
    rows = own(Service.objects.select_related("tenant", "model"), person(request))
    return get_object_or_404(rows, name=name)


@allowed(Act.SEE_SERVICES)
def services(request: HttpRequest) -> HttpResponse:
    found = lines(own(Service.objects.all(), person(request)), read_gateways(), state.policy())
    context = {
        "hits": hits(own(Service.objects.all(), person(request))),
        "table": table(found).of(request, found),
        "may_draft": may(request.user, Act.DRAFT_SERVICE),
        "may_see_models": may(request.user, Act.SEE_MODELS),
        "may_register": may(request.user, Act.REGISTER_SERVICE),
    }
    return render(request, "catalog/services.html", context)


@allowed(Act.SEE_SERVICES)
def service(request: HttpRequest, name: str) -> HttpResponse:
    one, user = find(request, name), person(request)
    labels = dict(own(Service.objects.all(), user).values_list("name", "label"))
    context = facts.page(one, user, labels, read_gateways(), state.policy())
    context |= _who(one, user) | {
        "changes": changes(one),
        "over_quota": over_quota(one, context["decisions"]),
        "may_ask_quota": is_one(user, KINDS["quota"].askers),
        "curl": snippets.curl(one, context["gateway"]),
        "python": snippets.python(one, context["gateway"]),
    }
    return render(request, "catalog/service.html", context)


@allowed(Act.SEE_SERVICES)
def now(request: HttpRequest, name: str) -> HttpResponse:
    """What changes by the second, asked for every few seconds by the page."""
    one, user = find(request, name), person(request)
    context = facts.now_part(one, read_gateways(), state.policy()) | _who(one, user) | {"hue": hue(one.tenant)}
    return render(request, "catalog/_refresh.html", context)


def _who(one: Service, user: User) -> dict[str, Any]:
    """What the person may do with it, and until when somebody keeps it."""
    return {
        "may_order": may(user, Act.ORDER),
        "may_edit": may(user, Act.EDIT_SERVICE),
        "may_keep": may(user, Act.FILE_REQUESTS),
        "kept": kept(one),
    }


@allowed(Act.EDIT_SERVICE)
def preloads(request: HttpRequest, name: str) -> HttpResponse:
    """The switch of automatic preloads."""
    one = find(request, name)
    if request.method == "POST":
        on = request.POST.get("on") == "1"
        if switch(one, on, timezone.now()):
            messages.success(request, _("自动预热已打开，从头再看。") if on else _("自动预热已关闭。"))
    return redirect("service", one.name)


@allowed(Act.ORDER)
def prefetch(request: HttpRequest, name: str) -> HttpResponse:
    """Onto the list of a pool's idle moments, or off it."""
    one, pool = find(request, name), request.POST.get("pool", "")
    if request.method == "POST" and pool.isdigit():
        on = request.POST.get("on") == "1"
        if list_in(one, int(pool), on):
            messages.success(request, _("空闲时会预取它。") if on else _("不再在空闲时预取它。"))
    return redirect("service", one.name)

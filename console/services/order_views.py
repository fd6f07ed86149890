"""The pages behind the buttons: GET says what would happen, POST files the order."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from console.accounts.access import Act as May
from console.accounts.access import allowed, own
from console.catalog.models import Replica, Service
from console.services import buttons, tell
from console.services.page import ACTS
from console.services.views import find, person
from scheduler.world import Act


def _order(request: HttpRequest, service: Service, act: Act, row: Replica | None) -> HttpResponse:
    """Without a consequence that can be, nothing is filed; force only where it was offered and ticked."""
    seen = buttons.look(tell.visible(own(Service.objects.all(), person(request))), service.name)
    outcome = buttons.consequence(seen, service, act, None if row is None else row.pk)
    force = bool(request.POST.get("force")) and bool(outcome.force_lines)
    if request.method == "POST" and outcome.can and (force or not outcome.force_needed):
        buttons.give(seen, service, act, row, person(request), force)
        messages.success(request, _("已下达：%(act)s。下一轮调度就办，结果写在这一页。") % {"act": ACTS[act]})
        return redirect("service", service.name)
    context = {
        "outcome": outcome,
        "service": service,
        "back": reverse("service", args=[service.name]),
        "crumbs": _crumbs(service),
        "missing_force": request.method == "POST" and outcome.force_needed and not force,
    }
    return render(request, "catalog/order.html", context, status=200 if request.method == "GET" else 409)


def _crumbs(service: Service) -> list[tuple[str, str]]:
    return [(_("业务"), reverse("services")), (service.label, reverse("service", args=[service.name]))]


@allowed(May.ORDER)
def preload(request: HttpRequest, name: str) -> HttpResponse:
    return _order(request, find(request, name), Act.PRELOAD, None)


@allowed(May.ORDER)
def stop(request: HttpRequest, name: str) -> HttpResponse:
    """All replicas of the service."""
    return _order(request, find(request, name), Act.STOP, None)


@allowed(May.ORDER)
def replica(request: HttpRequest, name: str, pk: int, act: str) -> HttpResponse:
    """One replica: drain, stop, wake, or take its notice back."""
    if act not in (Act.DRAIN, Act.STOP, Act.WAKE, Act.KEEP):
        raise Http404
    service = find(request, name)
    row = get_object_or_404(Replica, pk=pk, service=service, ended_at=None)
    return _order(request, service, Act(act), row)

"""The button of a service that is kept: takes that back, whoever's word it was."""

from __future__ import annotations

from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act, allowed
from console.accounts.models import User
from console.catalog.models import Replica, Service
from console.journal.models import Change
from console.requests import acts
from console.requests.kept import kept
from console.requests.steps import No
from console.services.views import find, person
from scheduler.memory import held_mib


def end_word(service: Service, by: User, now: datetime) -> None:
    """Takes the exemption back, that of a request or one that nobody asked for. Raises No."""
    standing = kept(service).standing
    if standing is not None:
        acts.take_back(standing, by, now)
        return
    seen = Service.objects.filter(pk=service.pk, whitelisted_until=service.whitelisted_until)
    if service.whitelisted_until is None or seen.update(whitelisted_until=None) != 1:
        raise No("overtaken")
    before = {"whitelisted_until": f"{timezone.localtime(service.whitelisted_until):%Y-%m-%d %H:%M}"}
    Change.objects.create(
        at=now, by=by, by_name=by.full_name or by.username, subject=service.name, service=service,
        before=before, after={"whitelisted_until": None},
    )  # fmt: skip


@allowed(Act.FILE_REQUESTS)
def end(request: HttpRequest, name: str) -> HttpResponse:
    """Its company or the centre."""
    service = find(request, name)
    if request.method == "POST":
        try:
            end_word(service, person(request), timezone.now())
            messages.success(request, _("已取消保留。"))
        except No:
            messages.warning(request, _("现在没有保留，什么也没有改。"))
        return redirect("service", service.name)
    back = reverse("service", args=[service.name])
    crumbs = [(_("业务"), reverse("services")), (service.label, back)]
    copies, mib = _held(service)
    context = {"service": service, "kept": kept(service), "back": back, "crumbs": crumbs}
    context["held"] = {"copies": copies, "mib": mib}
    return render(request, "catalog/keep_end.html", context)


def _held(service: Service) -> tuple[int, int]:
    """What is kept from others: copies, and MiB they hold now."""
    rules = state.policy()
    core = state.claim_only(service, rules)
    rows = Replica.objects.filter(service=service, ended_at=None).select_related("service")
    sizes = [held_mib(state.seen(row), core, rules) for row in rows]
    return sum(size > 0 for size in sizes), sum(sizes)

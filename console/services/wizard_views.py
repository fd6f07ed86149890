"""Registration: the draft is asked of the planner as it is typed; only an operator's click makes it a service."""

from __future__ import annotations

import time

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act as May
from console.accounts.access import allowed, may, own
from console.catalog.models import Service
from console.catalog.weights.problem import Unreadable
from console.model_pages import numbers
from console.model_pages.words import UNKNOWN, parts, problem
from console.requests import drafts
from console.requests.files import ACCEPT
from console.requests.kinds import KINDS
from console.requests.models import Draft
from console.services import buttons, fit, tell
from console.services.draft import DraftForm, save
from console.services.shapes import OTHER, sealed
from console.services.views import person
from console.wire import read_gateways
from scheduler.world import Act


def _form(request: HttpRequest, *, filled: bool = True) -> DraftForm:
    data = request.POST if request.method == "POST" and filled else None
    return DraftForm(person(request), data)


def _page(request: HttpRequest, form: DraftForm, status: int = 200, kept: Draft | None = None) -> HttpResponse:
    context = {
        "form": form,
        "may_register": may(request.user, May.REGISTER_SERVICE),
        "may_file": may(request.user, May.FILE_REQUESTS),
        "kept": kept,
        "taken_up": kept is not None,
        "why": kept.fields.get("why", [""])[0] if kept is not None else "",
        "kind": KINDS["service"],
        "accept": ACCEPT,
        "opened": time.time(),
        "crumbs": [(_("业务"), reverse("services"))],
    }
    return render(request, "catalog/wizard.html", context, status=status)


@allowed(May.DRAFT_SERVICE)
def draft(request: HttpRequest) -> HttpResponse:
    """The wizard, empty, or as the person left it."""
    kept = drafts.of(person(request), "service")
    if kept is None:
        return _page(request, _form(request, filled=False))
    return _page(request, DraftForm(person(request), drafts.data(kept)).unjudged(), kept=kept)


@allowed(May.DRAFT_SERVICE)
def claim(request: HttpRequest) -> HttpResponse:
    """The claim's fields, filled in from the model and how it is used; all else keeps what was typed."""
    form = _form(request)
    response = render(request, "catalog/_draft_claim.html", {"form": form.suggested()})
    response.headers["HX-Trigger-After-Swap"] = "claim-filled"
    return response


@allowed(May.REGISTER_SERVICE)
def read(request: HttpRequest) -> HttpResponse:
    """What the files at the typed path say: the KV of a token, and, signed, all else. Then the claim is filled in."""
    form, path = _form(request), request.POST.get("weights_path", "").strip()
    context: dict[str, object] = {"form": form, "may_register": True}
    try:
        found = numbers.of_files(path)
    except Unreadable as why:
        return render(request, "catalog/_read.html", context | {"why": problem(why)})
    data = request.POST.copy()
    data["model"], data["read"] = OTHER, sealed(path, found)
    if "kv_bytes_per_token" in found.numbers:
        data["kv_bytes"] = str(found.numbers["kv_bytes_per_token"])
    context |= {"form": DraftForm(person(request), data).unjudged(), "found": found, "parts": parts(found.shape)}
    context["unknown"] = UNKNOWN[found.unknown] if found.unknown is not None else ""
    response = render(request, "catalog/_read.html", context)
    response.headers["HX-Trigger-After-Swap"] = "weights-read"
    return response


@allowed(May.DRAFT_SERVICE)
def answer(request: HttpRequest) -> HttpResponse:
    """Fits where, or why not: the planner's own placement on the farm as it stands."""
    form = _form(request)
    if not form.answerable():
        return render(request, "catalog/_answer.html", {"form": form, "missing": form.missing()})
    now, rules = time.time(), state.policy()
    world = state.world(now, read_gateways(), rules=rules, week_of=())
    service = form.core(rules)
    found = fit.answer(world, rules, service, now)
    names = tell.visible(own(Service.objects.all(), person(request)))
    context = {
        "form": form,
        "missing": form.missing(),
        "service": service,
        "fits": [tell.fits(one, names) for one in found.fits],
        "refused": tell.refused(found.refusal, names) if found.refusal is not None else "",
        "waits": found.refusal is not None and found.refusal.passing,
        "codes": tell.each_card(found),
        "smaller_kv_mib": found.smaller_kv_mib,
        "leaving": [tell.leaving(one, world, names) for one in found.leaving],
        "whole_mib": service.claim.fixed_mib + service.claim.kv_cap_mib,
    }
    return render(request, "catalog/_answer.html", context)


@allowed(May.REGISTER_SERVICE)
def register(request: HttpRequest) -> HttpResponse:
    """Stores the service, cold; with `preload` asks for it at once. What was typed stays where something is wrong."""
    form = _form(request)
    if request.method != "POST" or not form.is_valid():
        return _page(request, form, 200 if request.method != "POST" else 422)
    with transaction.atomic():
        service = save(form)
        drafts.close(person(request), "service", timezone.now())
    messages.success(
        request, _("已登记%(label)s。应用用 %(name)s 调用它。") % {"label": service.label, "name": service.name}
    )
    if request.POST.get("then") == "preload":
        seen = buttons.look(tell.visible(Service.objects.all()), service.name)
        buttons.give(seen, service, Act.PRELOAD, None, person(request), False)
    return redirect("service", service.name)

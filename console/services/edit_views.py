"""The edit page of a service: what the planner makes of the change is said before anything is saved."""

from __future__ import annotations

import time

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console import state
from console.accounts.access import Act as May
from console.accounts.access import allowed, own
from console.catalog.models import Service
from console.services import fit, tell
from console.services.claim_change import there_already
from console.services.edit import PLANNED, EditForm, Overtaken, save
from console.services.views import find, person
from console.wire import read_gateways


@allowed(May.EDIT_SERVICE)
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Saves only what differs, and only over what the page showed."""
    service = find(request, name)
    form = EditForm(person(request), service, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            done = save(form, person(request))
        except Overtaken:
            form.add_error(None, _("刚才有人也改了这个业务，您的没有存。打开新的一页看现在的值。"))
        else:
            count = len(done.after) if done is not None else 0
            said = ngettext("已改 %(n)d 项。", "已改 %(n)d 项。", count) if count else _("没有什么不同，什么也没有改。")
            messages.success(request, said % {"n": count} if count else said)
            return redirect("service", service.name)
    crumbs = [(_("业务"), reverse("services")), (service.label, reverse("service", args=[service.name]))]
    context = {"form": form, "service": service, "crumbs": crumbs}
    return render(request, "catalog/edit.html", context, status=422 if request.method == "POST" else 200)


@allowed(May.EDIT_SERVICE)
def answer(request: HttpRequest, name: str) -> HttpResponse:
    """What the change as typed would mean: for copies that are there, and for the next one."""
    service = find(request, name)
    form = EditForm(person(request), service, request.POST or None)
    context = {"form": form, "asked": form.answerable() and bool(set(form.changed_data) & PLANNED)}
    if context["asked"]:
        now, rules = time.time(), state.policy()
        world = state.world(now, read_gateways(), rules=rules, week_of=())
        known = world.services.get(service.name)
        if known is None:
            return render(request, "catalog/_edit_answer.html", context | {"asked": False})
        after = form.core(known, rules)
        found, names = fit.answer(world, rules, after, now), tell.visible(own(Service.objects.all(), person(request)))
        context |= {
            "there": there_already(world, rules, after, names),
            "fits": [tell.fits(one, names) for one in found.fits],
            "refused": tell.refused(found.refusal, names) if found.refusal is not None else "",
            "waits": found.refusal is not None and found.refusal.passing,
            "codes": tell.each_card(found),
            "claim": after.claim,
            "whole_mib": after.claim.fixed_mib + after.claim.kv_cap_mib,
        }
    return render(request, "catalog/_edit_answer.html", context)

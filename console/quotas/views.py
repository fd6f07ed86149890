"""Quotas: the page of all, and the centre's forms, which say what a change would do before it is saved."""

from __future__ import annotations

import time
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console import state
from console.accounts.access import Act, allowed, is_one, may, own, tenant_of
from console.accounts.models import Role
from console.catalog.models import Service
from console.costs.views import person
from console.exports import as_csv
from console.filters import gib
from console.fleet.models import Quota as QuotaRow
from console.fleet.quotas import Overpromised, Overtaken, put, quota_of
from console.quotas.effects import sums, weighed
from console.quotas.forms import QuotaForm, as_seen
from console.quotas.ledger import ledger
from console.quotas.standing import standings, table
from console.requests import weigh
from console.requests.words import FACTS, told
from console.services import tell
from scheduler.allotment import Quota
from scheduler.lending import plannable_mib


@allowed(Act.SEE_QUOTAS)
def quotas(request: HttpRequest) -> HttpResponse:
    """Every pool for who sees every company; others see their own lines."""
    user = person(request)
    of = tenant_of(user)
    context = {
        "pools": standings(of),
        "whole": of is None,
        "may_edit": may(user, Act.EDIT_QUOTAS),
        "may_ask": is_one(user, {Role.TENANT_ADMIN}),
        "crumbs": [(pgettext("several", "公司"), reverse("tenants"))],
    }
    return render(request, "quotas/quotas.html", context)


@allowed(Act.SEE_QUOTAS)
def quotas_csv(request: HttpRequest) -> HttpResponse:
    """The page's lines, with its very figures."""
    return as_csv(table(standings(tenant_of(person(request)))), "quotas")


@allowed(Act.EDIT_QUOTAS)
def quota_new(request: HttpRequest) -> HttpResponse:
    """GET takes company and pool from the address: lines without a quota link here."""
    form = QuotaForm(request.POST or None, initial={k: request.GET.get(k, "") for k in ("tenant", "pool")})
    return _form(request, form, _("设配额"))


@allowed(Act.EDIT_QUOTAS)
def quota_edit(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(QuotaRow.objects.select_related("tenant", "pool"), pk=pk)
    now = Quota(row.guaranteed_mib, row.borrowable_mib)
    values = {"tenant": row.tenant_id, "pool": row.pool_id, "seen": as_seen(now)}
    values |= {"guaranteed_mib": now.guaranteed_mib, "borrowable_mib": now.borrowable_mib}
    form = QuotaForm(request.POST or None, initial=values, fixed=True)
    title = _("%(who)s在%(pool)s的配额") % {"who": row.tenant.name, "pool": row.pool.label}
    return _form(request, form, title)


def _form(request: HttpRequest, form: QuotaForm, title: str) -> HttpResponse:
    if request.method == "POST" and form.is_valid() and _saved(form):
        messages.success(request, _("配额已定，下一秒起生效。"))
        return redirect("quotas")
    context = {"form": form, "title": title, "crumbs": _crumbs()}
    return render(request, "quotas/edit.html", context, status=422 if request.method == "POST" else 200)


def _saved(form: QuotaForm) -> bool:
    """False, with the reason on the form, where it was not."""
    given, rules = form.cleaned_data, state.policy()
    there = plannable_mib(ledger(rules), rules, given["pool"].name)
    try:
        put(given["tenant"], given["pool"], form.was, form.quota, there)
    except Overtaken:
        now = quota_of(given["tenant"].pk, given["pool"].pk)
        said = _("这里已经有配额了，您的没有存。在总表里改它。") if now and not form.was else _changed()
        form.add_error(None, said)
    except Overpromised as over:
        said = _("承诺会比这个资源池有的多 %(mib)s MiB：至多能保证 %(most)s MiB。")
        most = max(0, form.quota.guaranteed_mib - over.short_mib)
        form.add_error("guaranteed_mib", said % {"mib": f"{over.short_mib:,}", "most": f"{most:,}"})
    else:
        return True
    return False


def _changed() -> str:
    return _("刚才有人也改了这个配额，您的没有存。打开新的一页看现在的值。")


@allowed(Act.EDIT_QUOTAS)
def quota_answer(request: HttpRequest) -> HttpResponse:
    """What the quota as typed would do."""
    form = QuotaForm(request.POST or None)
    context: dict[str, Any] = {"form": form}
    if form.is_bound and form.is_valid():
        frozen = _frozen(form.cleaned_data["tenant"].slug, form.cleaned_data["pool"].name, form.quota)
        codes = {code: numbers for code, numbers in frozen["facts"]}
        if (over := codes.get("over_promised")) is not None:
            context["over"] = str(FACTS["over_promised"]) % over
            frozen["facts"] = [fact for fact in frozen["facts"] if fact[0] != "over_promised"]
        context["found"] = told(frozen, _names(request))
    return render(request, "quotas/_answer.html", context)


def _frozen(tenant: str, pool: str, new: Quota | None) -> dict[str, Any]:
    now = time.time()
    return weighed(weigh.look(now), tenant, pool, new).frozen(now)


def _names(request: HttpRequest) -> tell.Names:
    return tell.visible(own(Service.objects.all(), person(request)))


@allowed(Act.EDIT_QUOTAS)
def quota_end(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(QuotaRow.objects.select_related("tenant", "pool"), pk=pk)
    if request.method == "POST":
        return _ended(request, row)
    who = {"who": row.tenant.name, "pool": row.pool.label}
    says = [
        _("%(who)s在%(pool)s的配额将取消：保证 %(guaranteed)s GiB、可借 %(borrowable)s GiB。")
        % {**who, "guaranteed": gib(row.guaranteed_mib), "borrowable": gib(row.borrowable_mib)},
    ]
    rules = state.policy()
    facts = sums(ledger(rules), rules, row.tenant.slug, row.pool.name, None)
    says += [str(FACTS[code]) % numbers for code, numbers in facts]
    context: dict[str, Any] = {"title": _("取消配额"), "says": says}
    context |= {"done": _("取消配额"), "back": reverse("quotas"), "danger": True, "crumbs": _crumbs()}
    return render(request, "confirm.html", context)


def _ended(request: HttpRequest, row: QuotaRow) -> HttpResponse:
    try:
        put(row.tenant, row.pool, Quota(row.guaranteed_mib, row.borrowable_mib), None, 0)
    except Overtaken:
        messages.warning(request, _changed())
    else:
        messages.success(request, _("已取消。"))
    return redirect("quotas")


def _crumbs() -> list[tuple[str, str]]:
    return [(pgettext("several", "公司"), reverse("tenants")), (_("配额"), reverse("quotas"))]

"""Budgets: card budgets shrink who spent all, call budgets refuse. Seen by their company, set by the centre."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act, allowed, is_one, may, own
from console.accounts.models import Role
from console.costs.forms import FEN, CallBudgetFields, CardBudgetFields, whole
from console.costs.standing import lines
from console.costs.views import person
from console.filters import yuan
from console.forms import Styled
from console.money.models import CallBudget, CardBudget
from console.money.months import next_month


@allowed(Act.SEE_BUDGETS)
def budgets(request: HttpRequest) -> HttpResponse:
    user = person(request)
    calls = own(CallBudget.objects.select_related("tenant", "key"), user)
    now = timezone.now()
    context = {
        "cards": lines(user),
        "calls": [_used(row, now) for row in calls],
        "resets_at": next_month(now),
        "rules": state.policy(),
        "may_edit": may(user, Act.EDIT_BUDGETS),
        "may_ask": is_one(user, {Role.TENANT_ADMIN}),
        "crumbs": [(_("费用"), reverse("costs"))],
    }
    return render(request, "costs/budgets.html", context)


def _used(row: CallBudget, now: datetime) -> tuple[CallBudget, int, int]:
    """(row, used this month, percent of its limit): figures of a month that is over count no more."""
    used = row.used if row.resets_at is not None and row.resets_at > now else 0
    return row, used, 100 * used // row.limit if row.limit else 100


class CardBudgetForm(Styled, CardBudgetFields):
    pass


class CallBudgetForm(Styled, CallBudgetFields):
    pass


def _form(request: HttpRequest, form: forms.Form, title: str) -> HttpResponse:
    crumbs = [(_("费用"), reverse("costs")), (_("预算"), reverse("budgets"))]
    return render(request, "people/form.html", {"form": form, "title": title, "done": _("保存"), "crumbs": crumbs})


@allowed(Act.EDIT_BUDGETS)
def card_budget_new(request: HttpRequest) -> HttpResponse:
    """A new one, or a new limit for the one that is there."""
    form = CardBudgetForm(request.POST or None)
    form.scope(person(request))
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        limit = int(given["yuan"] * FEN)
        if not _saved(CardBudget, {"tenant": given["tenant"], "service": given["service"]}, {"limit_fen": limit}):
            form.add_error(None, _("刚才有人也设了这个预算，请再提交一次。"))
        else:
            messages.success(request, _("预算已设为每月 %(yuan)s 元。") % {"yuan": yuan(limit)})
            return redirect("budgets")
    return _form(request, form, _("设卡预算"))


@allowed(Act.EDIT_BUDGETS)
def call_budget_new(request: HttpRequest) -> HttpResponse:
    form = CallBudgetForm(request.POST or None)
    form.scope(person(request))
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        limit = whole(given["unit"], given["amount"])
        of = {"tenant": given["tenant"], "key": given["key"], "unit": given["unit"]}
        if not _saved(CallBudget, of, {"limit": limit}):
            form.add_error(None, _("刚才有人也设了这个预算，请再提交一次。"))
        else:
            messages.success(request, _("调用预算已设好，几秒后生效。"))
            return redirect("budgets")
    return _form(request, form, _("设调用预算"))


def _saved(kind: Any, of: dict[str, Any], values: dict[str, int]) -> bool:
    """False where another page made the same one a moment ago."""
    try:
        with transaction.atomic():
            kind.objects.update_or_create(**of, defaults=values)
    except IntegrityError:
        return False
    return True


@allowed(Act.EDIT_BUDGETS)
def card_budget_end(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(CardBudget.objects.select_related("tenant", "service"), pk=pk)
    says = [
        _("%(who)s 每月 %(yuan)s 元的卡预算将取消。") % {"who": row.service or row.tenant, "yuan": yuan(row.limit_fen)},
        _("正在因它收缩的业务不再收缩。"),
    ]
    return _end(request, row, _("取消卡预算"), says)


@allowed(Act.EDIT_BUDGETS)
def call_budget_end(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(CallBudget.objects.select_related("tenant", "key"), pk=pk)
    says = [
        _("%(who)s 的调用预算将取消。") % {"who": row.key or row.tenant},
        _("正因它被拒绝的调用几秒后恢复。"),
    ]
    return _end(request, row, _("取消调用预算"), says)


def _end(request: HttpRequest, row: CardBudget | CallBudget, title: str, says: list[str]) -> HttpResponse:
    if request.method == "POST":
        row.delete()
        messages.success(request, _("已取消。"))
        return redirect("budgets")
    crumbs = [(_("费用"), reverse("costs")), (_("预算"), reverse("budgets"))]
    context = {"title": title, "says": says, "done": title, "back": reverse("budgets"), "danger": True}
    return render(request, "confirm.html", context | {"crumbs": crumbs})

"""The list of decisions, newest first."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console.accounts.access import Act, allowed, own, tenant_of
from console.catalog.models import Service
from console.journal.models import Decision
from console.journal.words import said

PAGE_ROWS = 50


@allowed(Act.SEE_DECISIONS)
def decisions(request: HttpRequest) -> HttpResponse:
    user = request.user
    rows = own(Decision.objects.select_related("service__tenant", "card__host"), user, "service__tenant_id")  # type: ignore[arg-type]
    shown = Paginator(rows, PAGE_ROWS).get_page(request.GET.get("page"))
    labels = dict(own(Service.objects.all(), user).values_list("name", "label"))  # type: ignore[arg-type]
    context = {
        "decisions": [said(row, labels) for row in shown],
        "shown": shown,
        "staff": tenant_of(user) is None,  # type: ignore[arg-type]
    }
    return render(request, "journal/decisions.html", context)

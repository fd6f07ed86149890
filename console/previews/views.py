"""Trying unsaved values on the last seven days: asked for, watched, ended, looked at again, taken along as a table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console import state
from console.accounts.access import Act, allowed, may
from console.accounts.models import User
from console.exports import as_csv
from console.jobs.models import Job
from console.policies.change import in_force
from console.policy_pages import views as pages
from console.policy_pages.scope import Scope, scope_of
from console.policy_pages.words import section_of
from console.previews import fitting, jobs, page
from console.previews.past import LEAST_HOURS, hours_known
from console.previews.trace import MOST_EVENTS_H
from scheduler.settable import may_set

SHOWN = 50


@allowed(Act.EDIT_POLICIES)
@require_POST
def ask(request: HttpRequest) -> HttpResponse:
    """Files the job with the values of the form, which nobody has saved; one of a person at a time."""
    scope = scope_of(request.POST.get("layer", ""), request.POST.get("subject", ""))
    filled = pages.filled_in(request)
    changes, errors = pages.read(scope, filled)
    if errors:
        return pages.mistyped(request, scope, filled, errors)
    if not changes or not all(may_set(name, scope.core) for name in changes):
        messages.info(request, _("没有什么不同，没有什么可试的。"))
        return redirect(scope.url)
    now = timezone.now()
    known = hours_known(now)
    if known < LEAST_HOURS:
        return render(request, "previews/none.html", _about(scope, changes) | {"known": known, "least": LEAST_HOURS})
    job, new = jobs.ask(scope, changes, request.user, now)  # type: ignore[arg-type]
    if not new:
        messages.warning(request, _("您的上一个预演还没算完：等它完成，或先停下它。"))
    return redirect("policy-preview", job.pk)


@allowed(Act.SEE_POLICIES)
def preview(request: HttpRequest, pk: int) -> HttpResponse:
    job = _find(pk)
    scope = _scope(job)
    if scope is None:
        messages.info(request, _("它所在的资源池或业务已经没有了。"))
        return redirect("policy-previews")
    context = _about(scope, job.arguments["changes"]) | {
        "job": job,
        "pct": round(100 * job.progress),
        "running": job.state in jobs.UNDER_WAY,
        "mine": job.arguments["by"] == request.user.pk,
        "by": User.objects.filter(pk=job.arguments["by"]).first(),
        "may_edit": may(request.user, Act.EDIT_POLICIES),
        "until": datetime.fromisoformat(job.arguments["until"]),
    }
    return render(request, "previews/preview.html", context | (_shown(job) if job.result else {}))


def _shown(job: Job) -> dict[str, Any]:
    result = job.result
    found = page.whole(result)
    better, worse = page.summary(found)
    moved, changed = page.services(result)
    return {
        "result": result,
        "whole": found,
        "better": better,
        "worse": worse,
        "groups": [
            (_("按公司"), _("公司"), page.tenants(result)),
            (_("按业务类别"), _("业务类别"), page.classes(result)),
        ],
        "services": moved,
        "services_changed": changed,
        "columns": page.NARROW,
        "most": MOST_EVENTS_H,
    }


@allowed(Act.SEE_POLICIES)
def previews(request: HttpRequest) -> HttpResponse:
    """The latest ones of everybody."""
    rows = list(Job.objects.filter(kind=jobs.KIND).defer("result").order_by("-pk")[:SHOWN])
    people = User.objects.in_bulk({row.arguments["by"] for row in rows})
    told = [(row, _scope(row), people.get(row.arguments["by"])) for row in rows]
    lines = [
        {"row": row, "scope": scope, "by": by, "changes": _about(scope, row.arguments["changes"])["changes"]}
        for row, scope, by in told
        if scope is not None
    ]
    context = {"lines": lines, "crumbs": [(_("策略"), reverse("policies"))]}
    return render(request, "previews/previews.html", context)


@allowed(Act.EDIT_POLICIES)
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    job = _find(pk)
    if jobs.cancel(job):
        messages.success(request, _("已请它停下。"))
    return redirect("policy-preview", job.pk)


@allowed(Act.SEE_POLICIES)
def csv(request: HttpRequest, pk: int) -> HttpResponse:
    """The figures of the page, and each service's."""
    job = _find(pk)
    if not job.result:
        raise Http404
    return as_csv(page.table(job.result), f"policy-preview-{job.pk}")


@allowed(Act.SEE_POLICIES)
def proposal(request: HttpRequest) -> HttpResponse:
    """What thresholds fitted to the farm would be; a part of the page of the policy."""
    found = fitting.proposal(state.policy())
    context: dict[str, Any] = {"found": found, "may_edit": may(request.user, Act.EDIT_POLICIES)}
    if found is not None:
        typed = {pages.FIELD + name: str(value) for name, value in found.values.items()}
        context["query"] = urlencode({"section": "tiers"} | typed)
        context["changes"] = [pages.change_said(name, found.now[name], value) for name, value in found.values.items()]
    return render(request, "previews/_proposal.html", context)


def _find(pk: int) -> Job:
    return get_object_or_404(Job, pk=pk, kind=jobs.KIND)


def _scope(job: Job) -> Scope | None:
    """None: the pool or service is gone."""
    try:
        return scope_of(job.arguments["layer"], job.arguments["subject"])
    except Http404:
        return None


def _about(scope: Scope, changes: Mapping[str, float | None]) -> dict[str, Any]:
    """What every view of it says of the values."""
    here = in_force(scope.layer, scope.subject)
    shown = [pages.change_said(name, here.get(name), value) for name, value in changes.items()]
    query = urlencode({pages.FIELD + one["name"]: one["typed"] for one in shown})
    section = section_of(next(iter(changes)))
    return {
        "scope": scope,
        "changes": shown,
        "back": f"{reverse('policies')}?section={section}&{scope.query + '&' if scope.query else ''}{query}",
        "crumbs": [(_("策略"), reverse("policies")), (scope.label, scope.url)],
    }

"""The pages of the policy: a section of a layer, the question before a change, versions and the way back."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console import state
from console.accounts.access import Act, allowed, may
from console.catalog.models import Service
from console.fleet.models import Pool
from console.policies.change import Wrong, back_to, in_force, withdraw, write
from console.policies.models import Layer, PolicyValue, PolicyVersion
from console.policy_pages import effect, typed, words
from console.policy_pages.rows import counts, rows
from console.policy_pages.scope import Scope, pools, scope_of
from console.previews import jobs
from console.wire import read_gateways
from scheduler.settable import may_set, numbers

FIELD = "v."
NOTE_CHARS = 200
VERSIONS_SHOWN = 100


@allowed(Act.SEE_POLICIES)
def policies(request: HttpRequest) -> HttpResponse:
    scope = scope_of(request.GET.get("layer", ""), request.GET.get("subject", ""))
    filled = filled_in(request, request.GET) if may(request.user, Act.EDIT_POLICIES) else {}
    return _page(request, scope, _section(request.GET.get("section", ""), scope), filled, {})


@allowed(Act.EDIT_POLICIES)
@require_POST
def review(request: HttpRequest) -> HttpResponse:
    """The question: what would change, and what would follow at once. Writes nothing."""
    scope = scope_of(request.POST.get("layer", ""), request.POST.get("subject", ""))
    filled = filled_in(request)
    changes, errors = read(scope, filled)
    if errors:
        return mistyped(request, scope, filled, errors)
    section = _section(request.POST.get("section", ""), scope)
    if not changes:
        messages.info(request, _("没有什么不同，什么也没有改。"))
        return redirect(f"{reverse('policies')}?section={section.key}&{scope.query}")
    return _question(request, scope, changes)


@allowed(Act.EDIT_POLICIES)
@require_POST
def save(request: HttpRequest) -> HttpResponse:
    scope = scope_of(request.POST.get("layer", ""), request.POST.get("subject", ""))
    changes, errors = read(scope, filled_in(request))
    note, when = request.POST.get("note", "").strip(), request.POST.get("when", "")
    problems = _problems(note, when)
    if scope.layer is Layer.GROUP and state.policy().group_policy_approval:
        problems.append(_("集团的策略要审批：点“提申请”。"))
    if errors or problems:
        return _question(request, scope, changes, problems=problems, status=422)
    back_from = request.POST.get("back_to", "")
    back = PolicyVersion.objects.filter(pk=back_from).first() if back_from.isdecimal() else None
    now = timezone.now()
    try:
        version = write(
            scope.layer,
            scope.subject,
            changes,
            by=request.user,  # type: ignore[arg-type]
            note=note[:NOTE_CHARS],
            now=now,
            effective_at=_moment(when),
            back_to=back,
        )
    except Wrong as wrong:
        return _question(request, scope, changes, problems=list(wrong.fields.values()), status=422)
    if version is None:
        messages.info(request, _("没有什么不同，什么也没有改。"))
    elif version.waits:
        messages.success(request, _("已记下第 %(n)d 版，到时生效。") % {"n": version.pk})
    else:
        messages.success(request, _("第 %(n)d 版已生效，调度器下一轮就按它做。") % {"n": version.pk})
    return redirect(scope.url)


@allowed(Act.SEE_POLICIES)
def versions(request: HttpRequest) -> HttpResponse:
    """Of one layer, or of all."""
    found = PolicyVersion.objects.select_related("back_to")
    scope = None
    if request.GET.get("layer"):
        scope = scope_of(request.GET["layer"], request.GET.get("subject", ""))
        found = found.filter(layer=scope.layer, subject=scope.subject)
    labels = _labels()
    shown = [_told(version, labels) for version in found[:VERSIONS_SHOWN]]
    context = {
        "versions": shown,
        "scope": scope,
        "may_edit": may(request.user, Act.EDIT_POLICIES),
        "crumbs": [(_("策略"), reverse("policies"))],
    }
    return render(request, "policies/versions.html", context)


@allowed(Act.EDIT_POLICIES)
@require_POST
def roll_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Asks as any change does: what its layer would set again, and what follows."""
    version = get_object_or_404(PolicyVersion, pk=pk)
    scope = scope_of(version.layer, version.subject)
    changes = back_to(version)
    if not changes:
        messages.info(request, _("现在的值和第 %(n)d 版一样。") % {"n": version.pk})
        return redirect("policy-versions")
    return _question(request, scope, changes, back=version)


@allowed(Act.EDIT_POLICIES)
@require_POST
def take_back(request: HttpRequest, pk: int) -> HttpResponse:
    """Withdraw a version whose time has not come."""
    version = get_object_or_404(PolicyVersion, pk=pk)
    if withdraw(version, timezone.now()):
        messages.success(request, _("第 %(n)d 版已撤回，不会生效。") % {"n": version.pk})
    else:
        messages.error(request, _("第 %(n)d 版已经生效。要改回去，用“退回”。") % {"n": version.pk})
    return redirect("policy-versions")


def read(scope: Scope, filled: Mapping[str, str]) -> tuple[dict[str, float | None], dict[str, str]]:
    """(changes against what the layer sets, what is wrong with a field). Empty text: back to the wider layer."""
    here, changes, errors = in_force(scope.layer, scope.subject), {}, {}
    for name, text in filled.items():
        try:
            value = typed.read(name, text) if text.strip() else None
        except typed.Mistyped as mistyped:
            errors[name] = str(mistyped)
            continue
        if value != here.get(name):
            changes[name] = value
    return changes, errors


def filled_in(request: HttpRequest, given: Mapping[str, Any] | None = None) -> dict[str, str]:
    """What somebody typed. `given`: an address that fills in a form instead; nothing is saved by it."""
    given = request.POST if given is None else given
    names = (key.removeprefix(FIELD) for key in given if key.startswith(FIELD))
    return {name: str(given[FIELD + name]) for name in names if name in numbers()}


def mistyped(request: HttpRequest, scope: Scope, filled: Mapping[str, str], errors: Mapping[str, str]) -> HttpResponse:
    """The form again, with what is wrong beside each field."""
    section = _section(request.POST.get("section", ""), scope)
    return _page(request, scope, section, filled, errors, status=422)


def _section(key: str, scope: Scope) -> words.Section:
    """The one asked for, else the first in which this layer may set anything."""
    fitting = (one for one in words.SECTIONS if any(may_set(name, scope.core) for name in one.words))
    return next((one for one in words.SECTIONS if one.key == key), next(fitting))


def _page(
    request: HttpRequest,
    scope: Scope,
    section: words.Section,
    filled: Mapping[str, str],
    errors: Mapping[str, str],
    status: int = 200,
) -> HttpResponse:
    policy = state.policy()
    found = counts(scope, policy)
    context: dict[str, Any] = {
        "scope": scope,
        "section": section,
        "sections": [(one, *found[one.key]) for one in words.SECTIONS],
        "settable": any(may_set(name, scope.core) for name in section.words),
        "rows": rows(scope, section, policy, filled, errors),
        "errors": errors,
        "filled": bool(filled) and not errors,
        "pools": pools(),
        "services": Service.objects.values_list("name", "label").order_by("tenant__ordinal", "name"),
        "own_services": PolicyValue.objects.filter(layer="service").values("subject").distinct().count(),
        "last": PolicyVersion.objects.filter(layer=scope.layer, subject=scope.subject).first(),
        "may_edit": may(request.user, Act.EDIT_POLICIES),
    }
    return render(request, "policies/policy.html", context, status=status)


def _question(
    request: HttpRequest,
    scope: Scope,
    changes: Mapping[str, float | None],
    *,
    back: PolicyVersion | None = None,
    problems: list[str] | None = None,
    status: int = 200,
) -> HttpResponse:
    policy, now = state.policy(), time.time()
    refused = [name for name in changes if not may_set(name, scope.core)]
    if refused:
        raise Http404
    after = effect.changed(policy, scope, changes)
    here = in_force(scope.layer, scope.subject)
    labels = dict(Service.objects.values_list("name", "label"))
    effects = effect.at_once(state.world(now, read_gateways(), rules=policy), policy, after, now)
    context = {
        "scope": scope,
        "changes": [change_said(name, here.get(name), value) for name, value in changes.items()],
        "effects": [(one, [labels.get(name, name) for name in one.services]) for one in effects],
        "note": request.POST.get("note", ""),
        "when": request.POST.get("when", ""),
        "problems": problems or [],
        "back": back.pk if back else request.POST.get("back_to", ""),
        "preview": jobs.latest(scope.layer, scope.subject, changes),
        "crumbs": [(_("策略"), reverse("policies")), (scope.label, scope.url)],
    }
    return render(request, "policies/review.html", context, status=status)


def change_said(name: str, before: float | None, after: float | None) -> dict[str, Any]:
    """One line of a difference; None: not set at this layer."""
    return {
        "name": name,
        "label": words.label(name),
        "unit": words.UNITS[numbers()[name]["unit"]],
        "before": None if before is None else typed.shown(name, before),
        "after": None if after is None else typed.shown(name, after),
        "typed": "" if after is None else f"{after:.10g}",
    }


def _labels() -> dict[tuple[str, str], str]:
    """(layer, subject) → what people call it."""
    kinds: tuple[tuple[Layer, type[Pool] | type[Service]], ...] = ((Layer.POOL, Pool), (Layer.SERVICE, Service))
    return {(layer, name): label for layer, of in kinds for name, label in of.objects.values_list("name", "label")}


def _told(version: PolicyVersion, labels: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    known = {name: pair for name, pair in version.changes.items() if name in numbers()}
    return {
        "row": version,
        "changes": [change_said(name, before, after) for name, (before, after) in known.items()],
        "where": labels.get((version.layer, version.subject), version.subject) or _("集团默认"),
    }


def _moment(text: str) -> datetime | None:
    """Of a date-time field, which speaks site time; None: at once."""
    found = parse_datetime(text) if text else None
    return timezone.make_aware(found) if found is not None and timezone.is_naive(found) else found


def _problems(note: str, when: str) -> list[str]:
    found = []
    if not note:
        found.append(_("写一句为什么改，以后的人要看。"))
    try:
        unclear = bool(when) and _moment(when) is None
    except ValueError:
        unclear = True
    if unclear:
        found.append(_("生效时间没看懂，填日期和时间，或留空表示立即。"))
    return found

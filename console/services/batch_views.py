"""The catalogue as a file: taken away, brought back, looked at before it counts; and one change for many services."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import state
from console.accounts.access import Act, allowed, own
from console.catalog.models import Service
from console.requests import weigh
from console.requests.words import effect
from console.services import tell
from console.services.batch import MOST, Batch, Line, TooMany, exported, propose
from console.services.batch import write as write_all
from console.services.bulk import BulkForm, wanted
from console.services.changes import word
from console.services.described import FACTS
from console.services.edit import LABELS, EditForm, Overtaken
from console.services.views import person
from console.services.yaml_text import LONGEST, Wrong, dump, load
from scheduler.world import World

MODEL_LABELS: dict[str, Any] = {
    "name": gettext_lazy("名称"),
    "task": gettext_lazy("用途"),
    "weights": gettext_lazy("权重路径"),
    "weights_mib": gettext_lazy("权重，MiB"),
    "kv_bytes_per_token": gettext_lazy("每个 token 的 KV 字节数"),
    "max_context": gettext_lazy("最长 token 数"),
    "min_compute_cap": gettext_lazy("最低算力版本"),
    "shards": gettext_lazy("权重文件数"),
}
FIXED_LABELS: dict[str, Any] = {"tenant": gettext_lazy("公司"), "model": gettext_lazy("模型")}
assert set(MODEL_LABELS) == set(FACTS)


class FileForm(forms.Form):
    file = forms.FileField(required=False)
    text = forms.CharField(required=False, strip=False)

    def read(self) -> str:
        """Raises Wrong."""
        upload = self.cleaned_data["file"]
        if upload is None:
            return str(self.cleaned_data["text"])
        if upload.size > LONGEST:
            raise Wrong(_("文件太大，最多 8 MiB；分成几个。"))
        try:
            return str(upload.read().decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise Wrong(_("不是 UTF-8 文本。用文本编辑器另存为 UTF-8。")) from None


@allowed(Act.SEE_SERVICES)
def export(request: HttpRequest) -> HttpResponse:
    """Of the services the person may see."""
    rows = Service.objects.select_related("tenant", "model", "fallback", "long_lane")
    text = dump(*exported(own(rows.prefetch_related("pools", "audience_tenants"), person(request))))
    response = HttpResponse(text, content_type="application/yaml; charset=utf-8")
    name = f"gongka-services-{timezone.localtime():%Y%m%d}.yaml"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@allowed(Act.REGISTER_SERVICE)
def bring(request: HttpRequest) -> HttpResponse:
    """The form of the file; then what it would change."""
    if request.method != "POST":
        return _page(request)
    form, text = FileForm(request.POST, request.FILES), ""
    try:
        text = form.read() if form.is_valid() else ""
        return _looked_at(request, _proposed(request, load(text)), reverse("services-import"))
    except Wrong as wrong:
        return _page(request, text=text, problem=str(wrong), status=422)


@allowed(Act.REGISTER_SERVICE)
def write(request: HttpRequest) -> HttpResponse:
    """The click under what was looked at. What is no longer so is looked at once more."""
    if request.method != "POST":
        return redirect("services-import")
    try:
        batch = _proposed(request, load(request.POST.get("text", "")))
    except Wrong as wrong:
        return _page(request, problem=str(wrong), status=422)
    if not batch.wrong and request.POST.get("seen") == batch.seen:
        try:
            count = write_all(batch, person(request))
        except Overtaken:
            batch = _proposed(request, load(request.POST["text"]))
        else:
            messages.success(request, _("已写入 %(n)d 处。") % {"n": count})
            return redirect("services")
    messages.warning(request, _("这期间有人改过其中的业务，什么也没有写。下面是按现在重算的。"))
    return _looked_at(request, batch, reverse("services-import"))


@allowed(Act.REGISTER_SERVICE)
def bulk(request: HttpRequest) -> HttpResponse:
    """One change for many: the form, then the same look at what it would change."""
    form = BulkForm(request.POST or request.GET or None, ask=request.method == "POST")
    if request.method == "POST" and form.is_valid():
        try:
            batch = _proposed(request, {"models": {}, "services": wanted(form)})
            return _looked_at(request, batch, reverse("services-bulk"))
        except Wrong as wrong:
            form.add_error(None, str(wrong))
    picked = form.cleaned_data.get("name") if form.is_bound and form.errors is not None else None
    context = {"form": form, "picked": picked or (), "crumbs": _crumbs()}
    return render(request, "catalog/bulk.html", context, status=422 if request.method == "POST" else 200)


def _proposed(request: HttpRequest, parts: dict[str, dict[str, Any]]) -> Batch:
    """Raises Wrong."""
    try:
        return propose(person(request), parts["models"], parts["services"])
    except TooMany:
        raise Wrong(_("一次最多改 %(n)d 个。分成几份，一份一份来。") % {"n": MOST}) from None


def _looked_at(request: HttpRequest, batch: Batch, back: str) -> HttpResponse:
    return render(request, "catalog/batch.html", _told(request, batch, back), status=422 if batch.wrong else 200)


def _page(request: HttpRequest, *, text: str = "", problem: str = "", status: int = 200) -> HttpResponse:
    context = {"text": text, "problem": problem, "most": MOST, "crumbs": _crumbs()}
    return render(request, "catalog/bring.html", context, status=status)


def _crumbs() -> list[tuple[str, str]]:
    return [(_("业务"), reverse("services"))]


def _told(request: HttpRequest, batch: Batch, back: str) -> dict[str, Any]:
    return {
        "batch": batch,
        "models": _said(batch.models),
        "services": _said(batch.services),
        "new": sum(line.new and not line.errors for line in batch.lines),
        "changed": sum(not line.new and not line.errors for line in batch.lines),
        "effects": [] if batch.wrong else _effects(request, batch),
        "text": dump(batch.entries["models"], batch.entries["services"], as_read=True),
        "back": back,
        "crumbs": _crumbs(),
    }


def _label(name: str) -> Any:
    return {**MODEL_LABELS, **LABELS, **FIXED_LABELS}.get(name, name)


def _said(lines: list[Line]) -> list[tuple[Line, list[tuple[Any, str, str]], list[tuple[Any, str]]]]:
    """(line, its changes in words, its errors)."""
    return [
        (
            line,
            [(_label(name), word(name, before), word(name, after)) for name, before, after in line.changes],
            [(_label(name), error) for name, error in line.errors],
        )
        for line in lines
    ]


def _effects(request: HttpRequest, batch: Batch) -> list[str]:
    """What the next plan would do otherwise, in sentences."""
    seen = weigh.look(time.time())
    forms_of = [(line.name, line.form) for line in batch.services if line.form is not None]
    after = _after(seen.world, forms_of, seen)
    names = tell.visible(own(Service.objects.all(), person(request)))
    newcomers = {line.name: line.form.instance.label for line in batch.services if line.new}
    names = replace(names, services={**names.services, **newcomers})
    found = weigh.difference(seen, after, seen.rules)
    return [effect((one.verb, one.reason, one.services, one.more), names) for one in found]


def _after(world: World, forms_of: list[tuple[str, EditForm]], seen: weigh.Look) -> World:
    services = dict(world.services)
    for name, form in forms_of:
        known = services.get(name) or replace(
            state.claim_only(form.instance, seen.rules), tenant=form.instance.tenant.slug
        )
        services[name] = form.core(known, seen.rules)
    return replace(world, services=services)

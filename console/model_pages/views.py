"""The catalogue's pages: all models, one, a change by hand, and its numbers read anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import Act, allowed, may
from console.catalog.models import Model, Origin
from console.catalog.weights.problem import Unreadable
from console.model_pages import numbers
from console.model_pages.forms import ModelForm
from console.model_pages.numbers import NUMBERS, Found
from console.model_pages.words import FIELDS, UNKNOWN, parts, problem
from console.tables import Column, Table

TABLE = Table(
    name="models",
    row="models/_row.html",
    columns=(
        Column("name", gettext_lazy("名称"), ("name",)),
        Column("weights", gettext_lazy("权重路径"), ("weights",)),
        Column("size", gettext_lazy("权重，GiB"), ("weights_mib",), numeric=True),
        Column("kv", gettext_lazy("KV，KiB/token"), ("kv_bytes_per_token",), numeric=True),
        Column("context", gettext_lazy("最长上下文"), ("max_context",), numeric=True),
        Column("services", gettext_lazy("业务"), ("used",), numeric=True),
        Column("origin", gettext_lazy("数从哪里来")),
    ),
    start="name",
    search=("name", "slug", "weights"),
    search_hint=gettext_lazy("名称、标识或路径"),
    empty=(gettext_lazy("还没有模型"), gettext_lazy("登记第一个业务时，它的模型就记在这里。")),
)


@dataclass(frozen=True, slots=True)
class Line:
    """One number: what it is, where it came from, and what it would become."""

    label: Any
    now: Any
    origin: str
    then: Any = None
    differs: bool = False


def _now(row: Model, name: str) -> Any:
    """A context of zero is one that nobody told."""
    return getattr(row, name) or (None if name == "max_context" else 0)


def _origin(row: Model, name: str) -> str:
    known = row.origins.get(name)
    return str(Origin(known).label) if known in Origin.values else _("没有记下")


def _crumbs(row: Model | None = None) -> list[tuple[str, str]]:
    found = [(_("业务"), reverse("services")), (_("模型"), reverse("models"))]
    return found if row is None else [*found, (row.name, reverse("model", args=[row.pk]))]


@allowed(Act.SEE_MODELS)
def models(request: HttpRequest) -> HttpResponse:
    shown = TABLE.of(request, Model.objects.annotate(used=Count("services")))
    for row in shown.rows:
        row.from_where = sorted({_origin(row, name) for name in NUMBERS})
        row.kv_kib = row.kv_bytes_per_token / 1024
    return render(request, "models/models.html", {"table": shown, "crumbs": _crumbs()[:1]})


@allowed(Act.SEE_MODELS)
def model(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Model, pk=pk)
    context = {
        "row": row,
        "lines": [Line(FIELDS[name], _now(row, name), _origin(row, name)) for name in NUMBERS],
        "parts": parts(row.shape),
        "services": row.services.select_related("tenant"),
        "may_edit": may(request.user, Act.EDIT_MODELS),
        "crumbs": _crumbs(),
    }
    return render(request, "models/model.html", context)


@allowed(Act.EDIT_MODELS)
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    """By hand. Claims of services are theirs: they do not follow."""
    row = get_object_or_404(Model, pk=pk)
    form = ModelForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        written = form.write()
        if written is False:
            form.add_error(None, _("刚才有人也改了这个模型，您的没有存。打开新的一页看现在的值。"))
        else:
            messages.success(request, _("已保存。") if written else _("没有什么不同，什么也没有改。"))
            return redirect("model", row.pk)
    context = {"row": row, "form": form, "count": row.services.count(), "crumbs": _crumbs(row)}
    return render(request, "models/edit.html", context, status=422 if request.method == "POST" else 200)


@allowed(Act.EDIT_MODELS)
def read(request: HttpRequest, pk: int) -> HttpResponse:
    """What the files say, else what the shipped catalogue says, beside what is; on a click it is taken."""
    row = get_object_or_404(Model, pk=pk)
    found, why = _found(row, request.GET.get("from", ""))
    if request.method == "POST":
        return _taken(request, row, found)
    context = {
        "row": row,
        "found": found,
        "why": why,
        "lines": _beside(row, found) if found is not None else [],
        "parts": parts(found.shape) if found is not None else [],
        "unknown": UNKNOWN[found.unknown] if found is not None and found.unknown is not None else "",
        "seen": numbers.seen(row, found) if found is not None else "",
        "count": row.services.count(),
        "crumbs": _crumbs(row),
    }
    return render(request, "models/read.html", context)


def _found(row: Model, wanted: str) -> tuple[Found | None, str]:
    """(numbers, why not of the files). `wanted` "catalogue": the files are not asked."""
    if wanted == Origin.CATALOGUE:
        return numbers.of_catalogue(row.slug), ""
    try:
        return numbers.of_files(row.weights), ""
    except Unreadable as why:
        return numbers.of_catalogue(row.slug), problem(why)


def _beside(row: Model, found: Found) -> list[Line]:
    lines = []
    for name in NUMBERS:
        now, then = _now(row, name), found.numbers.get(name)
        lines.append(Line(FIELDS[name], now, _origin(row, name), then, then is not None and then != now))
    return lines


def _taken(request: HttpRequest, row: Model, found: Found | None) -> HttpResponse:
    unchanged = found is not None and numbers.seen(row, found) == request.POST.get("seen")
    if found is not None and unchanged and numbers.take(row, found, timezone.now()):
        messages.success(request, _("已记下。业务的声明没有变，要改到业务页去改。"))
        return redirect("model", row.pk)
    messages.warning(request, _("文件或这个模型刚才变了，什么也没有改。下面是现在的样子。"))
    return redirect("model-read", row.pk)

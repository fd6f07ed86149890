"""Applications below a company: one, a new one, a change, the removal of one that nothing calls with."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import IntegrityError, models, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console.accounts.access import Act, allowed, may, own
from console.accounts.models import Application, Tenant, User
from console.catalog.models import Service
from console.filters import name
from console.forms import Styled
from console.people import tree
from console.people.key_forms import TenantChoice, chosen_tenant

Crumbs = list[tuple[Any, str]]


class ApplicationForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Application
        fields = ("name", "slug", "owner", "note")

    def __init__(self, tenant: Tenant, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.instance.tenant = tenant
        self.fields["slug"].help_text = _("小写字母、数字和连字符，建好后不能改。")
        self.fields["slug"].disabled = self.instance.pk is not None
        people = User.objects.filter(tenant=tenant, is_active=True)
        owner: Any = self.fields["owner"]
        owner.queryset = people.order_by("full_name", "username")
        owner.label_from_instance, owner.empty_label = name, _("还没有定")
        owner.help_text = _("出了事找谁。")

    def clean(self) -> dict[str, Any]:
        """The company is no field of the form, so the form itself asks whether its names are free there."""
        given = super().clean() or self.cleaned_data
        others = Application.objects.filter(tenant=self.instance.tenant).exclude(pk=self.instance.pk)
        for field in ("name", "slug"):
            if given.get(field) and others.filter(**{field: given[field]}).exists():
                self.add_error(field, ValidationError(_("这家公司已有一个同名的应用，换一个。")))
        return given


def _found(request: HttpRequest, pk: int) -> Application:
    rows = own(Application.objects.select_related("tenant", "owner"), request.user)  # type: ignore[arg-type]
    return get_object_or_404(rows, pk=pk)


def _crumbs(tenant: Tenant) -> Crumbs:
    return [(pgettext("several", "公司"), reverse("tenants")), (tenant.name, reverse("tenant", args=[tenant.pk]))]


@allowed(Act.SEE_TENANTS)
def application(request: HttpRequest, pk: int) -> HttpResponse:
    row, user, now = _found(request, pk), request.user, timezone.now()
    costs, services = may(user, Act.SEE_COSTS), may(user, Act.SEE_SERVICES)
    branch = tree.branches([row.tenant], now, costs)[row.tenant_id]
    context = {
        "row": row,
        "leaf": next(leaf for leaf in branch.leaves if leaf.application == row),
        "costs": costs,
        "calls": _calls(row, user, now) if services else [],
        "keys": row.keys.order_by("-created_at") if may(user, Act.SEE_KEYS) else None,
        "now": now,
        "may_edit": may(user, Act.EDIT_APPLICATIONS),
        "may_see_services": services,
        "crumbs": _crumbs(row.tenant),
    }
    return render(request, "people/application.html", context)


def _calls(row: Application, user: Any, now: datetime) -> list[dict[str, Any]]:
    """A service that is not the person's to see is told by the name that its callers use."""
    found = tree.by_service(row, now)
    labels = own(Service.objects.filter(name__in=[one["service"] for one in found]), user)
    known = dict(labels.values_list("name", "label"))
    return [{**one, "label": known.get(one["service"], "")} for one in found]


@allowed(Act.EDIT_APPLICATIONS)
def new(request: HttpRequest) -> HttpResponse:
    tenant = chosen_tenant(request.user, request.GET.get("tenant"))  # type: ignore[arg-type]
    if tenant is None:
        context: dict[str, Any] = {"form": TenantChoice(request.user), "done": _("下一步"), "get": True}  # type: ignore[arg-type]
        context["crumbs"] = [(pgettext("several", "公司"), reverse("tenants"))]
        return render(request, "people/form.html", context | {"title": _("新建应用")})
    form = ApplicationForm(tenant, request.POST or None)
    if request.method == "POST" and form.is_valid() and _saved(form):
        said: str = _("%(name)s 已建好。下一步：给它建一个密钥，或把已有的归入它。")
        messages.success(request, said % {"name": form.instance.name})
        return redirect("application", pk=form.instance.pk)
    title = _("给%(tenant)s新建应用") % {"tenant": tenant.name}
    return render(
        request, "people/form.html", {"form": form, "title": title, "done": _("建好"), "crumbs": _crumbs(tenant)}
    )


def _saved(form: ApplicationForm) -> bool:
    """False: somebody took the name between the look and the write; the form says so."""
    try:
        with transaction.atomic():
            form.save()
    except IntegrityError:
        form.add_error("name", _("这家公司已有一个同名的应用，换一个。"))
        return False
    return True


@allowed(Act.EDIT_APPLICATIONS)
def edit(request: HttpRequest, pk: int) -> HttpResponse:
    row = _found(request, pk)
    title = _("改应用“%(name)s”") % {"name": row.name}
    form = ApplicationForm(row.tenant, request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid() and _saved(form):
        messages.success(request, _("已保存。"))
        return redirect("application", pk=row.pk)
    crumbs = [*_crumbs(row.tenant), (row.name, reverse("application", args=[row.pk]))]
    return render(request, "people/form.html", {"form": form, "title": title, "done": _("保存"), "crumbs": crumbs})


@allowed(Act.EDIT_APPLICATIONS)
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    """Only without keys: what was called with a key stays somebody's."""
    row = _found(request, pk)
    keys = row.keys.count()
    back = reverse("application", args=[row.pk])
    if request.method == "POST":
        try:
            with transaction.atomic():
                row.delete()
        except models.ProtectedError:
            messages.error(request, _("还有密钥归在它名下，没有删除。先在密钥页把它们改归别处。"))
            return redirect("application", pk=pk)
        messages.success(request, _("%(name)s 已删除。") % {"name": row.name})
        return redirect("tenant", pk=row.tenant_id)
    says = [_("它没有密钥，删除不影响任何调用。")]
    if keys:
        says = [_("它名下有 %(n)d 个密钥（含已吊销的），先在密钥页把它们改归别处，才能删除。") % {"n": keys}]
    context = {"title": _("删除应用“%(name)s”") % {"name": row.name}, "says": says, "done": _("删除"), "danger": True}
    return render(request, "confirm.html", context | {"back": back, "crumbs": _crumbs(row.tenant)})

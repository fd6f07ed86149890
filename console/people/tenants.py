"""Companies: the list, one company, a new one."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.db import IntegrityError, models, transaction
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from console.accounts.access import Act, allowed, is_one, may, own, tenant_of
from console.accounts.models import Role, Tenant, User
from console.catalog.models import Service
from console.forms import Styled
from console.people import tree
from console.people.live import live
from console.quotas.standing import lines_of
from console.tables import Column, Table
from console.usage.models import HourlyCalls

WEEK = timedelta(days=7)

TABLE = Table(
    name="tenants",
    row="people/_tenant_row.html",
    columns=(
        Column("name", gettext_lazy("公司"), ("name",)),
        Column("slug", gettext_lazy("标识"), ("slug",)),
        Column("services", gettext_lazy("业务"), ("service_count",), numeric=True),
        Column("members", gettext_lazy("成员"), ("member_count",), numeric=True),
        Column("keys", gettext_lazy("有效密钥"), ("key_count",), numeric=True),
        Column("calls", gettext_lazy("7 日调用"), ("calls_7d",), numeric=True),
        Column("ordinal", gettext_lazy("色号"), ("ordinal",), numeric=True),
    ),
    start="ordinal",
    search=("name", "slug"),
    search_hint=gettext_lazy("公司或标识"),
    empty=(
        gettext_lazy("还没有公司"),
        gettext_lazy("公司拥有业务、成员和密钥。先新建一家，再给它登记业务、发放密钥。"),
    ),
)


class TenantForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Tenant
        fields = ("name", "slug", "mark")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["slug"].help_text = _("小写字母、数字和连字符，用在接口和账单里，建好后不能改。")
        if self.instance.pk:
            self.fields["slug"].disabled = True


def _count(rows: QuerySet[Any], path: str) -> Coalesce:
    """A number per company, each worked out by itself: joins of three lists would multiply."""
    counted = rows.filter(**{path: OuterRef("pk")}).order_by().values(path).annotate(n=Count("pk")).values("n")
    return Coalesce(Subquery(counted, output_field=IntegerField()), 0)


def with_counts(rows: QuerySet[Tenant]) -> QuerySet[Tenant]:
    calls = HourlyCalls.objects.filter(tenant=OuterRef("slug"), hour__gte=timezone.now() - WEEK).order_by()
    summed = calls.values("tenant").annotate(n=Sum("calls")).values("n")
    people = User.objects.filter(is_active=True)
    return rows.annotate(
        service_count=_count(Service.objects.all(), "tenant"),
        member_count=_count(people, "tenant"),
        key_count=_count(live(), "tenant"),
        calls_7d=Coalesce(Subquery(summed, output_field=IntegerField()), 0),
    )


@allowed(Act.SEE_TENANTS)
def tenants(request: HttpRequest) -> HttpResponse:
    rows = with_counts(own(Tenant.objects.all(), request.user, "pk"))  # type: ignore[arg-type]
    shown, now = TABLE.of(request, rows), timezone.now()
    below = tree.branches(shown.rows, now)
    for row in shown.rows:
        row.branch = below[row.pk]
    context = {
        "table": shown,
        "group": tree.group(now) if tenant_of(request.user) is None else None,  # type: ignore[arg-type]
        "may_edit": may(request.user, Act.EDIT_TENANTS),
        "may_edit_applications": may(request.user, Act.EDIT_APPLICATIONS),
        "may_see_quotas": may(request.user, Act.SEE_QUOTAS),
    }
    return render(request, "people/tenants.html", context)


@allowed(Act.SEE_TENANTS)
def tenant(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(with_counts(own(Tenant.objects.all(), request.user, "pk")), pk=pk)  # type: ignore[arg-type]
    costs = may(request.user, Act.SEE_COSTS)
    services = Service.objects.filter(tenant=row).select_related("model")
    calls = HourlyCalls.objects.filter(tenant=row.slug, hour__gte=timezone.now() - WEEK)
    numbers = calls.aggregate(cold=Sum("cold"), refused=Sum("refused"), hold_ms=Sum("hold_ms"))
    context = {
        "row": row,
        "services": services,
        "numbers": numbers,
        "branch": tree.branches([row], timezone.now(), costs)[row.pk],
        "costs": costs,
        "crumbs": [(pgettext("several", "公司"), reverse("tenants"))],
        "quotas": lines_of(row) if may(request.user, Act.SEE_QUOTAS) else None,
        "may_ask": may(request.user, Act.FILE_REQUESTS) and is_one(request.user, {Role.TENANT_ADMIN}),  # type: ignore[arg-type]
        "may_edit_quotas": may(request.user, Act.EDIT_QUOTAS),
        "may_edit": may(request.user, Act.EDIT_TENANTS),
        "may_edit_applications": may(request.user, Act.EDIT_APPLICATIONS),
        "may_see_members": may(request.user, Act.SEE_MEMBERS),
        "may_see_keys": may(request.user, Act.SEE_KEYS),
    }
    return render(request, "people/tenant.html", context)


def next_ordinal() -> int:
    return (Tenant.objects.aggregate(last=models.Max("ordinal"))["last"] or 0) + 1


@allowed(Act.EDIT_TENANTS)
def tenant_new(request: HttpRequest) -> HttpResponse:
    form = TenantForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        form.instance.ordinal = next_ordinal()
        try:
            with transaction.atomic():
                row = form.save()
        except IntegrityError:
            form.add_error(None, _("刚才有人也新建了公司，请再提交一次。"))
        else:
            messages.success(request, _("%(name)s 已建好。下一步：给它加一位公司管理员。") % {"name": row.name})
            return redirect("tenant", pk=row.pk)
    context = {
        "form": form,
        "title": _("新建公司"),
        "done": _("建好"),
        "crumbs": [(pgettext("several", "公司"), reverse("tenants"))],
    }
    return render(request, "people/form.html", context)


@allowed(Act.EDIT_TENANTS)
def tenant_edit(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Tenant, pk=pk)
    form = TenantForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("已保存。"))
        return redirect("tenant", pk=row.pk)
    crumbs = [(pgettext("several", "公司"), reverse("tenants")), (row.name, reverse("tenant", args=[row.pk]))]
    return render(
        request, "people/form.html", {"form": form, "title": _("改名称"), "done": _("保存"), "crumbs": crumbs}
    )

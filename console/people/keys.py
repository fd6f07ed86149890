"""Callers' keys: the list, a new one (shown once), rotation with an overlap, revocation."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import state
from console.accounts.access import Act, allowed, is_one, may, own, tenant_of
from console.accounts.keys import new_key
from console.accounts.models import ApiKey, Role, Tenant, User
from console.filters import when
from console.people.key_forms import ApplicationForm, KeyForm, RotateForm, TenantChoice, chosen_tenant
from console.people.live import is_live
from console.people.members import once
from console.tables import Choice, Column, Table, picks
from console.usage.models import HourlyCalls

WEEK = timedelta(days=7)


def _states() -> dict[str, tuple[Any, Any]]:
    now = timezone.now()
    return {
        "live": (_("有效"), is_live(now)),
        "soon": (_("30 天内过期"), is_live(now) & Q(expires_at__lt=now + timedelta(days=30))),
        "expired": (_("已过期"), Q(revoked_at=None, expires_at__lte=now)),
        "revoked": (_("已吊销"), Q(revoked_at__isnull=False)),
    }


def _tenants(user: User) -> dict[str, tuple[Any, Any]]:
    return picks(own(Tenant.objects.all(), user, "pk").values_list("pk", "name"), "tenant_id")


def table(user: User) -> Table:
    """The column and the filter of the company are for those who see several."""
    staff = tenant_of(user) is None
    return Table(
        name="keys",
        row="people/_key_row.html",
        columns=(
            Column("name", gettext_lazy("名称"), ("name",)),
            Column("state", gettext_lazy("状态")),
            Column("prefix", gettext_lazy("开头"), ("prefix",)),
            Column("tenant", gettext_lazy("公司"), ("tenant__ordinal", "name")),
            Column("application", gettext_lazy("应用"), ("application__name", "name")),
            Column("services", gettext_lazy("能调用的业务")),
            Column("created", gettext_lazy("建于"), ("created_at",), numeric=True),
            Column("expires", gettext_lazy("到期"), ("expires_at",), numeric=True),
            Column("used", gettext_lazy("最近使用"), ("last_used_at",), numeric=True),
            Column("act", ""),
        ),
        filters=(
            Choice("state", gettext_lazy("状态"), _states),
            *((Choice("tenant", gettext_lazy("公司"), partial(_tenants, user)),) if staff else ()),
        ),
        start="tenant",
        search=("name", "prefix", "tenant__name", "application__name"),
        search_hint=gettext_lazy("名称、应用或开头几位"),
        empty=(gettext_lazy("还没有密钥"), gettext_lazy("应用带着密钥调用业务。先建一个，交给应用的负责人。")),
    )


def _seen(user: User) -> QuerySet[ApiKey]:
    return own(ApiKey.objects.select_related("tenant", "application", "followed_by"), user)


@allowed(Act.SEE_KEYS)
def keys(request: HttpRequest) -> HttpResponse:
    shown = table(request.user).of(request, _seen(request.user))  # type: ignore[arg-type]
    context = {"table": shown, "may_edit": may(request.user, Act.EDIT_KEYS), "now": timezone.now()}
    return render(request, "people/keys.html", context)


@allowed(Act.EDIT_KEYS)
def key_new(request: HttpRequest) -> HttpResponse:
    user: User = request.user  # type: ignore[assignment]
    tenant = chosen_tenant(user, request.GET.get("tenant"))
    crumbs = [(_("密钥"), reverse("keys"))]
    if tenant is None:
        context = {
            "form": TenantChoice(user),
            "title": _("新建密钥"),
            "done": _("下一步"),
            "crumbs": crumbs,
            "get": True,
        }
        return render(request, "people/form.html", context)
    form = KeyForm(tenant, request.POST or None, initial={"services": request.GET.getlist("services")})
    if request.method == "POST" and form.is_valid() and not _allowed(form, user):
        form.add_error("services", _("能调用全部业务的密钥要审批：选定业务，或在“申请”里提“大范围密钥”。"))
    elif request.method == "POST" and form.is_valid():
        made = new_key()
        ApiKey.objects.create(
            tenant=tenant,
            name=form.cleaned_data["name"],
            application=form.cleaned_data["application"],
            prefix=made.prefix,
            digest=made.digest,
            services=form.cleaned_data["services"],
            progress_content=form.cleaned_data["progress_content"],
            expires_at=form.expires_at(),
            created_by=user,
        )
        return _once(request, _("密钥已建好"), made.key)
    title = _("给%(tenant)s建密钥") % {"tenant": tenant.name}
    return render(
        request, "people/form.html", {"form": form, "title": title, "done": _("建好并显示"), "crumbs": crumbs}
    )


def _allowed(form: KeyForm, user: User) -> bool:
    """A key to everything is a company's by request only, where the site says so."""
    wide = not form.cleaned_data["services"]
    return not (wide and is_one(user, {Role.TENANT_ADMIN}) and state.policy().wide_key_approval)


def _once(request: HttpRequest, title: str, key: str) -> HttpResponse:
    text = _("这是唯一一次显示，我们只存它的指纹。现在复制到应用的配置里；2 秒内即可使用。")
    return once(request, title, text, key, reverse("keys"))


def _live_or_404(request: HttpRequest, pk: int) -> ApiKey:
    return get_object_or_404(_seen(request.user), is_live(timezone.now()), pk=pk)  # type: ignore[arg-type]


def _use(key: ApiKey) -> str:
    """What it was used for lately: the consequence of taking it away."""
    since = timezone.now() - WEEK
    calls = HourlyCalls.objects.filter(key_id=key.pk, hour__gte=since).aggregate(n=Sum("calls"))["n"] or 0
    if key.last_used_at is None and not calls:
        return _("它还没有被用过。")
    said: str = _("最近 7 天用它调用了 %(n)d 次，最近一次：%(at)s。")
    return said % {"n": calls, "at": when(key.last_used_at)}


@allowed(Act.EDIT_KEYS)
def key_rotate(request: HttpRequest, pk: int) -> HttpResponse:
    old = _live_or_404(request, pk)
    form = RotateForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = new_key()
        if _follow(old, made.prefix, made.digest, form, request.user):  # type: ignore[arg-type]
            return _once(request, _("新密钥已建好"), made.key)
        messages.error(request, _("这个密钥刚刚被吊销或轮换过，没有建新的。"))
        return redirect("keys")
    context = {
        "form": form,
        "title": _("轮换密钥“%(name)s”") % {"name": old.name},
        "says": [_use(old), _("新密钥的业务范围和进度选项与旧的相同。")],
        "done": _("建新密钥"),
        "crumbs": [(_("密钥"), reverse("keys"))],
    }
    return render(request, "people/form.html", context)


def _follow(old: ApiKey, prefix: str, digest: str, form: RotateForm, user: User) -> bool:
    """False, and nothing written, if the old key was revoked or followed meanwhile: the update says so, not a read."""
    life = old.expires_at - old.created_at if old.expires_at else None
    now = timezone.now()
    with transaction.atomic():
        new = ApiKey.objects.create(
            tenant=old.tenant,
            name=old.name,
            application_id=old.application_id,
            prefix=prefix,
            digest=digest,
            services=old.services,
            progress_content=old.progress_content,
            expires_at=now + life if life else None,
            created_by=user,
        )
        still = ApiKey.objects.filter(is_live(now), pk=old.pk, followed_by=None)
        done = still.update(followed_by=new, expires_at=form.ends_at(old)) == 1
        if not done:
            transaction.set_rollback(True)
    return done


@allowed(Act.EDIT_KEYS)
def key_application(request: HttpRequest, pk: int) -> HttpResponse:
    """Also of a key that has ended: its calls are still somebody's."""
    key = get_object_or_404(_seen(request.user), pk=pk)  # type: ignore[arg-type]
    form = ApplicationForm(key, request.POST or None)
    if request.method == "POST" and form.is_valid():
        ApiKey.objects.filter(pk=key.pk).update(application=form.cleaned_data["application"])
        messages.success(request, _("已保存。"))
        return redirect("keys")
    context = {
        "form": form,
        "title": _("密钥“%(name)s”归哪个应用") % {"name": key.name},
        "says": [_use(key)],
        "done": _("保存"),
        "crumbs": [(_("密钥"), reverse("keys"))],
    }
    return render(request, "people/form.html", context)


@allowed(Act.EDIT_KEYS)
def key_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    key = _live_or_404(request, pk)
    if request.method == "POST":
        ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
        messages.success(request, _("%(name)s 已吊销，2 秒内不再能调用。") % {"name": key.name})
        return redirect("keys")
    context = {
        "title": _("吊销密钥“%(name)s”") % {"name": key.name},
        "says": [_use(key), _("吊销后 2 秒内用它的调用都会被拒绝（401），不能恢复。想不中断就换新的，请用轮换。")],
        "done": _("吊销"),
        "danger": True,
        "back": reverse("keys"),
        "crumbs": [(_("密钥"), reverse("keys"))],
    }
    return render(request, "confirm.html", context)

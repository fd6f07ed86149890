"""People: the list, a new one, roles, first passwords, and the end of access.

A company's administrator sees and makes the three roles of a company only: who could give (or take over) a role of
the centre would be the centre.
"""

from __future__ import annotations

from typing import Any

from axes.utils import reset as forget_failures
from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import CENTRE, Act, allowed, may, own, stands_in, tenant_of
from console.accounts.models import Absence, Role, Tenant, User
from console.accounts.passwords import first_hash, first_password
from console.forms import Styled
from console.people.live import live
from console.tables import Choice, Column, Table, picks

#: What a role may do, in the words of who chooses one.
ROLES = {
    Role.OPERATOR: gettext_lazy("看全部；管主机、卡、业务、公司和密钥，按预热、摘流、停止。"),
    Role.APPROVER: gettext_lazy("看全部；审批申请，不审自己的。"),
    Role.AUDITOR: gettext_lazy("看全部和审计，什么也不改。"),
    Role.ACCOUNT_OFFICER: gettext_lazy("管公司和所有人的账户与角色；看不到业务和卡。"),
    Role.TENANT_ADMIN: gettext_lazy("看自己公司；管它的业务、成员和密钥。"),
    Role.TENANT_MEMBER: gettext_lazy("看自己公司的业务和密钥，试调用。"),
    Role.MANAGER: gettext_lazy("看自己公司，不填公司的看整个集团；什么也不改。"),
}
OF_A_TENANT = (Role.TENANT_ADMIN, Role.TENANT_MEMBER, Role.MANAGER)

TABLE = Table(
    name="members",
    row="people/_member_row.html",
    columns=(
        Column("name", gettext_lazy("姓名"), ("full_name", "username")),
        Column("username", gettext_lazy("账户"), ("username",)),
        Column("role", gettext_lazy("角色"), ("role",)),
        Column("tenant", gettext_lazy("公司"), ("tenant__ordinal",)),
        Column("state", gettext_lazy("状态"), ("is_active",)),
        Column("seen", gettext_lazy("最近登录"), ("last_login",), numeric=True),
    ),
    filters=(
        Choice("role", gettext_lazy("角色"), lambda: picks(Role.choices, "role")),
        Choice(
            "state",
            gettext_lazy("状态"),
            {"on": (gettext_lazy("可登录"), Q(is_active=True)), "off": (gettext_lazy("已停用"), Q(is_active=False))},
        ),
    ),
    start="name",
    search=("full_name", "username", "tenant__name"),
    search_hint=gettext_lazy("姓名、账户或公司"),
    empty=(gettext_lazy("还没有成员"), gettext_lazy("加一位成员，把只显示一次的初始密码交给本人。")),
)


def explained(user: User) -> list[tuple[Any, Any]]:
    """The roles the person may give, each with what it may do."""
    staff = tenant_of(user) is None
    return [(role.label, text) for role, text in ROLES.items() if staff or role in OF_A_TENANT]


def people(user: User) -> QuerySet[User]:
    """Whom the person may see. A tenant's administrator: that tenant's roles only."""
    rows = own(User.objects.select_related("tenant"), user)
    return rows if tenant_of(user) is None else rows.filter(role__in=OF_A_TENANT)


def misfit(role: Any, tenant: Any) -> str | None:
    """Why the role and the company do not go together; None: they do."""
    if role in CENTRE and tenant is not None:
        return _("信息中心的角色看得到所有公司，不能属于一家。")
    if role in (Role.TENANT_ADMIN, Role.TENANT_MEMBER) and tenant is None:
        return _("这个角色属于一家公司，请选一家。")
    return None


class MemberForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = User
        fields = ("full_name", "username", "role", "tenant")

    def __init__(self, actor: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.actor = actor
        self.fields["full_name"].required = True
        self.fields["username"].label, self.fields["username"].help_text = (
            _("账户"),
            _("登录时填的名字，建好后不能改。"),
        )
        self.fields["tenant"].label, self.fields["tenant"].help_text = _("公司"), _("信息中心的角色不填公司。")
        self.fields["tenant"].empty_label = _("信息中心")  # type: ignore[attr-defined]
        if self.instance.pk:
            self.fields["username"].disabled = True
        if tenant_of(actor) is not None:
            del self.fields["tenant"]
            self.fields["role"].choices = [(r.value, r.label) for r in OF_A_TENANT]  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        own_tenant = tenant_of(self.actor)
        if own_tenant is not None:
            self.instance.tenant = Tenant.objects.get(pk=own_tenant)
            return cleaned
        role, tenant = cleaned.get("role"), cleaned.get("tenant")
        wrong = misfit(role, tenant)
        if wrong is not None:
            self.add_error("tenant", ValidationError(wrong))
        return cleaned


@allowed(Act.SEE_MEMBERS)
def members(request: HttpRequest) -> HttpResponse:
    rows = people(request.user)  # type: ignore[arg-type]
    context = {
        "table": TABLE.of(request, rows),
        "may_edit": may(request.user, Act.EDIT_MEMBERS),
        "may_name_deputy": may(request.user, Act.NAME_DEPUTY),
    }
    return render(request, "people/members.html", context)


def once(request: HttpRequest, title: str, text: str, secret: str, back: str) -> HttpResponse:
    """A secret is shown in the answer itself: it is in no session, no log and no address."""
    return render(request, "people/once.html", {"title": title, "text": text, "secret": secret, "back": back})


def _first_password(user: User) -> str:
    """Somebody else reads it, so it opens nothing but the page that changes it."""
    password = first_password()
    user.password = first_hash(password)
    user.must_change_password = True
    return password


@allowed(Act.EDIT_MEMBERS)
def member_new(request: HttpRequest) -> HttpResponse:
    form = MemberForm(request.user, request.POST or None)  # type: ignore[arg-type]
    if request.method == "POST" and form.is_valid():
        user = form.save(commit=False)
        password = _first_password(user)
        user.save()
        text = _("把账户 %(name)s 和下面的初始密码交给本人。首次登录时要换成自己的密码。") % {"name": user.username}
        return once(request, _("成员已建好"), text, password, reverse("members"))
    context = {"form": form, "title": _("加成员"), "done": _("建好"), "crumbs": [(_("成员"), reverse("members"))]}
    return render(request, "people/form.html", context | {"roles": explained(request.user)})  # type: ignore[arg-type]


def _found(request: HttpRequest, pk: int) -> User:
    return get_object_or_404(people(request.user), pk=pk)  # type: ignore[arg-type]


def untouchable(actor: User) -> set[int]:
    """Nobody changes the own role or locks oneself out, so one administrator always remains; nor does a deputy take
    over the account of whom they stand in for."""
    return {actor.pk, *(row.person_id for row in stands_in(actor))}


def _another(request: HttpRequest, pk: int) -> User:
    found = _found(request, pk)
    if found.pk in untouchable(request.user):  # type: ignore[arg-type]
        raise PermissionDenied
    return found


def absences_of(person: User) -> QuerySet[Absence]:
    """To come and under way: theirs, and those in which they stand in."""
    rows = Absence.objects.filter(Q(person=person) | Q(deputy=person), ended_at=None, until__gt=timezone.now())
    return rows.select_related("person", "deputy").order_by("starts_at")


@allowed(Act.SEE_MEMBERS)
def member(request: HttpRequest, pk: int) -> HttpResponse:
    row = _found(request, pk)
    editable = may(request.user, Act.EDIT_MEMBERS) and row.pk not in untouchable(request.user)  # type: ignore[arg-type]
    form = MemberForm(request.user, request.POST or None, instance=row) if editable else None  # type: ignore[arg-type]
    if request.method == "POST":
        if form is None:
            raise PermissionDenied
        if form.is_valid():
            form.save(commit=False).save(update_fields=["full_name", "role", "tenant"])
            messages.success(request, _("已保存，下一次打开页面时生效。"))
            return redirect("member", pk=row.pk)
    context = {
        "row": User.objects.select_related("tenant").get(pk=row.pk),
        "form": form,
        "is_self": row.pk == request.user.pk,
        "roles": explained(request.user),  # type: ignore[arg-type]
        "absences": absences_of(row),
        "crumbs": [(_("成员"), reverse("members"))],
    }
    return render(request, "people/member.html", context)


@allowed(Act.EDIT_MEMBERS)
def member_access(request: HttpRequest, pk: int) -> HttpResponse:
    """Deactivate, or let in again: asks with what follows from it, then does it."""
    row = _another(request, pk)
    if request.POST.get("to") in ("on", "off"):
        User.objects.filter(pk=row.pk).update(is_active=request.POST["to"] == "on")
        messages.success(request, _("已保存，下一次打开页面时生效。"))
        return redirect("member", pk=row.pk)
    made = live().filter(created_by=row).count()
    says = [_("%(name)s 打开的页面会立即退出，也不能再登录。") % {"name": row.full_name or row.username}]
    if made:
        says.append(_("本人建的 %(n)d 个密钥不受影响，应用照常调用；要停用请到密钥页吊销。") % {"n": made})
    if not row.is_active:
        says = [_("%(name)s 可以用原来的密码重新登录。") % {"name": row.full_name or row.username}]
    context = {
        "title": _("停用成员") if row.is_active else _("恢复登录"),
        "says": says,
        "done": _("停用账户") if row.is_active else _("恢复"),
        "to": "off" if row.is_active else "on",
        "danger": row.is_active,
        "back": reverse("member", args=[row.pk]),
        "crumbs": [(_("成员"), reverse("members"))],
    }
    return render(request, "confirm.html", context)


@allowed(Act.EDIT_MEMBERS)
def member_password(request: HttpRequest, pk: int) -> HttpResponse:
    """A new first password; also ends a lock-out after failures and every open session of the person."""
    row = _another(request, pk)
    back = reverse("member", args=[row.pk])
    if request.method == "POST":
        password = _first_password(row)
        row.save(update_fields=["password", "must_change_password"])
        forget_failures(username=row.username)
        text = _("把账户 %(name)s 和下面的初始密码交给本人。首次登录时要换成自己的密码。") % {"name": row.username}
        return once(request, _("密码已重置"), text, password, back)
    says = [
        _("%(name)s 现在的密码作废，所有设备上的登录立即退出。") % {"name": row.full_name or row.username},
        _("新密码只显示一次，由您交给本人；登录失败的锁定同时解除。"),
    ]
    context = {"title": _("重置密码"), "says": says, "done": _("重置密码"), "danger": True, "back": back}
    return render(request, "confirm.html", context | {"crumbs": [(_("成员"), reverse("members"))]})

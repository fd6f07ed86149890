"""Deputies for the time of an absence: an approver's decides, a company administrator's does what they may there."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import MAY, STAND_INS, Act, allowed, may, own
from console.accounts.models import Absence, Role, User
from console.filters import name, when
from console.forms import Styled
from console.people.members import people
from console.requests.kind import moment_field
from console.requests.lists import person


def possible(user: User) -> QuerySet[User]:
    """Whom the person may name."""
    if user.role == Role.TENANT_ADMIN:
        found = User.objects.filter(tenant=user.tenant_id, role__in=STAND_INS, is_active=True)
    else:
        found = User.objects.filter(role__in=MAY[Act.DEPUTISE], is_active=True).exclude(pk=user.pk)
    return found.order_by("full_name", "username")


class AbsenceForm(Styled, forms.Form):
    deputy = forms.ModelChoiceField(User.objects.none(), label=gettext_lazy("由谁代为审批"), empty_label=None)
    starts_at = moment_field(gettext_lazy("从何时起"), required=True)
    until = moment_field(gettext_lazy("到何时止"), required=True)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        deputy: Any = self.fields["deputy"]
        deputy.queryset, deputy.label_from_instance = possible(user), name
        deputy.help_text = _("另一位审批人或运维；他自己提的申请仍要由别人决定。")
        if user.role == Role.TENANT_ADMIN:
            deputy.label = _("由谁代为管理公司")
            deputy.help_text = _("本公司的成员或管理者。他能做您在公司里能做的；不能改您的账户，也不能再找人代理。")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        starts, until = given.get("starts_at"), given.get("until")
        if starts is not None and until is not None and until <= max(starts, timezone.now()):
            self.add_error("until", _("要晚于开始的时间。"))
        return given


@allowed(Act.NAME_DEPUTY)
def absences(request: HttpRequest) -> HttpResponse:
    """One's own: those to come and under way, and a new one."""
    user, now = person(request), timezone.now()
    if request.method == "POST" and request.POST.get("end", "").isdecimal():
        _end(request, Absence.objects.filter(person=user, pk=int(request.POST["end"])), now)
        return redirect("request-absences")
    form = AbsenceForm(user, request.POST or None)
    manages = user.role == Role.TENANT_ADMIN
    if request.method == "POST" and form.is_valid():
        Absence.objects.create(person=user, **form.cleaned_data)
        said = _("已记下。那段时间由 %(who)s 代您管理公司。") if manages else _("已记下。那段时间由 %(who)s 代您审批。")
        messages.success(request, said % {"who": name(form.cleaned_data["deputy"])})
        return redirect("request-absences")
    rows = Absence.objects.filter(person=user, ended_at=None, until__gt=now).select_related("deputy")
    crumbs = [(_("成员"), reverse("members"))] if manages else [(_("申请"), reverse("requests"))]
    context = {"form": form, "rows": rows, "manages": manages, "crumbs": crumbs}
    return render(request, "requests/absences.html", context, status=422 if request.method == "POST" else 200)


def may_end(user: User, row: Absence) -> bool:
    """Either of the two, and who may change the account of the one who is away."""
    if user.pk in (row.person_id, row.deputy_id):
        return True
    return may(user, Act.EDIT_MEMBERS) and people(user).filter(pk=row.person_id).exists()


@allowed(Act.SEE_ABSENCE)
def end(request: HttpRequest, pk: int) -> HttpResponse:
    """The question, and on a click the end, at any time."""
    user = person(request)
    rows = own(Absence.objects.select_related("person", "deputy"), user, "person__tenant_id")
    row = get_object_or_404(rows, pk=pk)
    back = _back(user, row)
    if request.method == "POST":
        if not may_end(user, row):
            raise PermissionDenied
        _end(request, Absence.objects.filter(pk=row.pk), timezone.now())
        return redirect(back)
    said = {"deputy": name(row.deputy), "person": name(row.person), "from": when(row.starts_at), "to": when(row.until)}
    says = [_("%(deputy)s 代 %(person)s，%(from)s — %(to)s。") % said]
    if may_end(user, row):
        says.append(_("收回后立即生效：%(deputy)s 下一次打开页面时只有自己的权限，做过的事不变。") % said)
    else:
        says.append(_("由这两人，或能改 %(person)s 账户的人收回。") % said)
    context = {"title": _("结束代理"), "says": says, "done": _("收回"), "danger": True, "back": back}
    return render(request, "confirm.html", context)


def _back(user: User, row: Absence) -> str:
    if user.pk == row.person_id:
        return reverse("request-absences")
    seen = may(user, Act.SEE_MEMBERS) and user.pk != row.deputy_id
    return reverse("member", args=[row.person_id]) if seen and people(user).filter(pk=row.person_id).exists() else "/"


def _end(request: HttpRequest, rows: QuerySet[Absence], now: datetime) -> None:
    if rows.filter(ended_at=None).update(ended_at=now):
        messages.success(request, _("已收回。"))

"""The page on which an approver who will be away names a deputy."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import MAY, Act, allowed
from console.accounts.models import User
from console.filters import name
from console.forms import Styled
from console.requests.kind import moment_field
from console.requests.lists import person
from console.requests.models import Absence


class AbsenceForm(Styled, forms.Form):
    deputy = forms.ModelChoiceField(
        User.objects.none(),
        label=gettext_lazy("由谁代为审批"),
        empty_label=None,
        help_text=gettext_lazy("另一位审批人或运维；他自己提的申请仍要由别人决定。"),
    )
    starts_at = moment_field(gettext_lazy("从何时起"), required=True)
    until = moment_field(gettext_lazy("到何时止"), required=True)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = User.objects.filter(role__in=MAY[Act.DEPUTISE], is_active=True).exclude(pk=user.pk)
        self.fields["deputy"].queryset = people.order_by("full_name", "username")  # type: ignore[attr-defined]
        self.fields["deputy"].label_from_instance = name  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        starts, until = given.get("starts_at"), given.get("until")
        if starts is not None and until is not None and until <= max(starts, timezone.now()):
            self.add_error("until", _("要晚于开始的时间。"))
        return given


@allowed(Act.DECIDE_REQUESTS)
def absences(request: HttpRequest) -> HttpResponse:
    """One's own: those to come and under way, and a new one."""
    user, now = person(request), timezone.now()
    if request.method == "POST" and request.POST.get("end", "").isdecimal():
        _end(request, user, int(request.POST["end"]), now)
        return redirect("request-absences")
    form = AbsenceForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        Absence.objects.create(person=user, **form.cleaned_data)
        messages.success(
            request, _("已记下。那段时间由 %(who)s 代您审批。") % {"who": name(form.cleaned_data["deputy"])}
        )
        return redirect("request-absences")
    rows = Absence.objects.filter(person=user, ended_at=None, until__gt=now).select_related("deputy")
    context = {"form": form, "rows": rows, "crumbs": [(_("申请"), reverse("requests"))]}
    return render(request, "requests/absences.html", context, status=422 if request.method == "POST" else 200)


def _end(request: HttpRequest, user: User, pk: int, now: datetime) -> None:
    if Absence.objects.filter(pk=pk, person=user, ended_at=None).update(ended_at=now):
        messages.success(request, _("已收回，由您自己审批。"))

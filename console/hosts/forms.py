"""Forms of the host pages. Times are the site's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.fleet.models import Card, ForeignUse, Host
from console.forms import Styled


def moment_field(label: Any, help_text: Any = "") -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(label=label, widget=widget, help_text=help_text)


class MaintenanceForm(Styled, forms.Form):
    until = moment_field(
        gettext_lazy("最迟何时腾空"), gettext_lazy("到时还没做完的调用会被切断。留足让长调用做完的时间。")
    )

    def clean_until(self) -> datetime:
        until: datetime = self.cleaned_data["until"]
        if until <= timezone.now():
            raise forms.ValidationError(_("这个时间已经过去了"))
        return until


class ForeignForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    starts_at = moment_field(gettext_lazy("从"))
    ends_at = moment_field(gettext_lazy("到"))

    class Meta:
        model = ForeignUse
        fields = ("card", "starts_at", "ends_at", "note")
        labels = {"card": gettext_lazy("哪张卡"), "note": gettext_lazy("谁用，做什么")}  # noqa: RUF012

    def __init__(self, host: Host, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.instance.host = host
        field = self.fields["card"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Card.objects.filter(host=host).select_related("host")
        field.empty_label = str(_("整台主机"))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        starts, ends = values.get("starts_at"), values.get("ends_at")
        if starts and ends and ends <= starts:
            self.add_error("ends_at", _("要晚于开始的时间"))
        return values

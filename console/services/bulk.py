"""One change for many services: which, and what they become; everything left empty stays as it is."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.models import Tenant
from console.catalog.models import Service
from console.filters import PROFILES, TIERS
from console.fleet.models import Card, Pool
from console.forms import Styled
from console.services.edit import BOUNDS, LABELS
from console.services.shapes import card_class

UNCHANGED = ("", gettext_lazy("不改"))
ALL = ("", gettext_lazy("全部"))
NUMBERS = ("priority", "min_replicas", "max_replicas", "headroom_mib", "max_num_seqs", "hold_cap_s")


class BulkForm(Styled, forms.Form):
    """`ask`: a change is wanted, so there must be one. Those named go before those that the three filters find."""

    name = forms.ModelMultipleChoiceField(
        Service.objects.all(), to_field_name="name", required=False, widget=forms.MultipleHiddenInput
    )
    of_tenant = forms.ModelChoiceField(
        Tenant.objects.all(), to_field_name="slug", required=False, label=gettext_lazy("公司"), empty_label=ALL[1]
    )
    of_tier = forms.ChoiceField(choices=[ALL, *TIERS.items()], required=False, label=gettext_lazy("档位"))
    of_profile = forms.ChoiceField(choices=[ALL, *PROFILES.items()], required=False, label=gettext_lazy("画像"))
    tier = forms.ChoiceField(choices=[UNCHANGED, *TIERS.items()], required=False)
    profile = forms.ChoiceField(choices=[UNCHANGED, *PROFILES.items()], required=False)
    waiter = forms.ChoiceField(choices=[UNCHANGED, *Service.Waiter.choices], required=False)
    can_sleep = forms.ChoiceField(
        choices=[UNCHANGED, ("true", gettext_lazy("可以")), ("false", gettext_lazy("不可以"))], required=False
    )
    pools = forms.ModelMultipleChoiceField(
        Pool.objects.all(), to_field_name="name", required=False, widget=forms.CheckboxSelectMultiple
    )
    card_classes = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)

    def __init__(self, data: Any = None, *, ask: bool) -> None:
        super().__init__(data)
        self.ask = ask
        for name in NUMBERS:
            least, most = BOUNDS[name]
            self.fields[name] = forms.IntegerField(min_value=least, max_value=most, required=False)
            self.fields[name].widget.attrs |= {"class": "form-control", "placeholder": _("不改")}
        for name in self.changing:
            self.fields[name].label = LABELS[name]
        classes = Card.objects.values_list("card_class", flat=True).distinct().order_by("card_class")
        self.fields["card_classes"].choices = [(one, card_class(one)) for one in classes]  # type: ignore[attr-defined]

    @property
    def changing(self) -> list[str]:
        first = ["tier", "profile", "waiter", "can_sleep"]
        return [*first, *NUMBERS, "pools", "card_classes"]

    @property
    def to_change(self) -> list[forms.BoundField]:
        return [self[name] for name in self.changing]

    @property
    def to_find(self) -> list[forms.BoundField]:
        return [self["of_tenant"], self["of_tier"], self["of_profile"]]

    def chosen(self) -> QuerySet[Service]:
        """Those named; where none is, those that the filters find."""
        given = getattr(self, "cleaned_data", {})
        if given.get("name"):
            return Service.objects.filter(pk__in=[row.pk for row in given["name"]])
        found = {"tenant": given.get("of_tenant"), "tier": given.get("of_tier"), "profile": given.get("of_profile")}
        return Service.objects.filter(**{name: value for name, value in found.items() if value})

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if self.ask and not self.errors:
            if not self.change():
                raise forms.ValidationError(_("还没有说改什么。"))
            if not self.chosen().exists():
                raise forms.ValidationError(_("没有这样的业务。换个条件。"))
        return given

    def change(self) -> dict[str, Any]:
        """Fields that become something, as a file says them."""
        found: dict[str, Any] = {}
        for name in self.changing:
            value = self.cleaned_data.get(name)
            if isinstance(value, QuerySet):
                value = [row.name for row in value]
            if value not in (None, "", []):
                found[name] = value if isinstance(value, list) else str(value)
        return found


def wanted(form: BulkForm) -> dict[str, dict[str, Any]]:
    """Of a valid form: service → its change."""
    return {name: form.change() for name in form.chosen().values_list("name", flat=True)}

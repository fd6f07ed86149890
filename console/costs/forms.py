"""Fields of the two budgets: the centre sets them on a page of its own, a company asks for the same ones."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.access import own
from console.accounts.models import ApiKey, Tenant, User
from console.catalog.models import Service
from console.service_field import ServiceField
from scheduler.call_budget import Unit

FEN = 100


class OfTenant(forms.Form):
    """A company, and perhaps one thing of it. `part`: the field of that thing; `not_theirs`: said of another's."""

    tenant = forms.ModelChoiceField(
        Tenant.objects.none(), label=gettext_lazy("公司"), empty_label=gettext_lazy("选一家公司")
    )
    part = ""
    not_theirs: Any = ""

    def scope(self, person: User) -> None:
        """Only what the person may see is there to choose."""
        tenant: Any = self.fields["tenant"]
        tenant.queryset = own(Tenant.objects.all(), person, "pk")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        part, tenant = given.get(self.part), given.get("tenant")
        if part is not None and tenant is not None and part.tenant_id != tenant.pk:
            raise ValidationError(self.not_theirs)
        return given


class CardBudgetFields(OfTenant):
    service = ServiceField(
        label=pgettext_lazy("one", "业务"), required=False, empty_label=gettext_lazy("公司的全部业务")
    )
    yuan = forms.DecimalField(
        label=gettext_lazy("每月，元"),
        min_value=0,
        max_value=Decimal(1_000_000_000),
        decimal_places=2,
        help_text=gettext_lazy("按卡时价格算。用满才收缩：先通知，低优先级先走，在线业务保留最少实例，从不拒绝调用。"),
    )
    part, not_theirs = "service", gettext_lazy("这个业务不是这家公司的。")

    def scope(self, person: User) -> None:
        super().scope(person)
        service: Any = self.fields["service"]
        service.queryset = own(Service.objects.all(), person)


class CallBudgetFields(OfTenant):
    key = forms.ModelChoiceField(
        ApiKey.objects.none(),
        label=gettext_lazy("密钥"),
        required=False,
        empty_label=gettext_lazy("公司的全部密钥"),
    )
    unit = forms.ChoiceField(
        label=gettext_lazy("按什么算"),
        choices=[(Unit.TOKENS.value, gettext_lazy("token 数")), (Unit.FEN.value, gettext_lazy("元"))],
    )
    amount = forms.DecimalField(
        label=gettext_lazy("每月上限"),
        min_value=0,
        max_value=Decimal(10**15),
        decimal_places=2,
        help_text=gettext_lazy("用完后网关拒绝调用，到下月初恢复。按元算的在每小时入账后才更新。"),
    )
    part, not_theirs = "key", gettext_lazy("这个密钥不是这家公司的。")

    def scope(self, person: User) -> None:
        super().scope(person)
        key: Any = self.fields["key"]
        key.queryset = own(ApiKey.objects.filter(revoked_at=None).select_related("tenant"), person)


def whole(unit: str, amount: Decimal) -> int:
    """What the row keeps: tokens, or fen."""
    return int(amount * (FEN if unit == Unit.FEN else 1))

"""A card budget: how many yuan a month a company, or one of its services, may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.access import own
from console.accounts.models import Role, Tenant, User
from console.catalog.models import Service
from console.filters import yuan
from console.money.models import CardBudget
from console.requests import weigh
from console.requests.kind import AskForm, Filed, Kind, Stale
from console.requests.models import Request
from console.service_field import ServiceField
from scheduler.world import Budget as CoreBudget

FEN = 100


class BudgetForm(AskForm):
    tenant = forms.ModelChoiceField(Tenant.objects.none(), label=gettext_lazy("公司"))
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

    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.fields["tenant"].queryset = own(Tenant.objects.all(), person, "pk")  # type: ignore[attr-defined]
        self.fields["service"].queryset = own(Service.objects.all(), person)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        service, tenant = given.get("service"), given.get("tenant")
        if service is not None and tenant is not None and service.tenant_id != tenant.pk:
            raise ValidationError(_("这个业务不是这家公司的。"))
        return given


class Budget(Kind):
    key = "budget"
    label = pgettext_lazy("one", "卡预算")
    about = gettext_lazy("一家公司或一个业务每月可以花多少钱；用满后低优先级先收缩，从不拒绝调用。")
    askers = frozenset({Role.OPERATOR, Role.TENANT_ADMIN})

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        return BudgetForm(person, data, initial={"tenant": person.tenant_id, **initial})

    def filed(self, form: Any) -> Filed:
        tenant, service = form.cleaned_data["tenant"], form.cleaned_data["service"]
        wanted = {
            "tenant": tenant.pk,
            "service": service.name if service is not None else "",
            "yuan": str(form.cleaned_data["yuan"]),
        }
        return Filed(tenant, service, service.label if service is not None else tenant.name, wanted)

    def says(self, row: Request) -> list[tuple[Any, str]]:
        return [
            (gettext_lazy("给谁"), row.subject),
            (gettext_lazy("每月，元"), yuan(self._limit(row))),
            (gettext_lazy("现在每月，元"), yuan(self._now(row))),
        ]

    def fen_month(self, row: Request) -> int:
        """What it is more by; of a first one all of it."""
        return max(0, self._limit(row) - (self._now(row) or 0))

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        seen, standing = weigh.look(now), self._row(row)
        tenant = row.tenant.slug if row.tenant is not None else ""
        service = row.service.name if row.service is not None else ""
        others = [one for one in seen.world.budgets if (one.tenant, one.service) != (tenant, service)]
        old = next((one for one in seen.world.budgets if (one.tenant, one.service) == (tenant, service)), None)
        new = replace(old or CoreBudget(tenant, 0, 0, None, service), limit_fen=self._limit(row))
        after = replace(seen.world, budgets=(*others, new))
        figures = {"spent": yuan(new.spent_fen), "foreseen": yuan(new.forecast_fen)}
        return weigh.Weighed(
            fen_month=None if standing is None else self._limit(row) - standing.limit_fen,
            effects=weigh.difference(seen, after, seen.rules),
            facts=[("budget", figures), *([] if standing is not None else [("first_budget", {})])],
        ).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        if row.tenant_id is None or (row.wanted["service"] and row.service_id is None):
            raise Stale("service_gone")
        before = self._now(row)
        limit = {"limit_fen": self._limit(row)}
        CardBudget.objects.update_or_create(tenant_id=row.tenant_id, service=row.service, defaults=limit)
        return {"before": {"card_budget_fen": before}, "after": {"card_budget_fen": self._limit(row)}}

    def end(self, row: Request, now: datetime) -> None:
        before, standing = row.undo["before"]["card_budget_fen"], self._row(row)
        if standing is None or standing.limit_fen != self._limit(row):
            return
        mine = CardBudget.objects.filter(pk=standing.pk, limit_fen=self._limit(row))
        if before is None:
            mine.delete()
        else:
            mine.update(limit_fen=before)

    def _limit(self, row: Request) -> int:
        return int(Decimal(row.wanted["yuan"]) * FEN)

    def _row(self, row: Request) -> CardBudget | None:
        if row.wanted["service"] and row.service_id is None:
            return None
        return CardBudget.objects.filter(tenant_id=row.tenant_id or 0, service=row.service).first()

    def _now(self, row: Request) -> int | None:
        standing = self._row(row)
        return None if standing is None else standing.limit_fen

"""A card budget: how many yuan a month a company, or one of its services, may cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from django.http import QueryDict
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.models import User
from console.costs.forms import FEN, CardBudgetFields
from console.filters import yuan
from console.money.models import CardBudget
from console.requests import weigh
from console.requests.kind import AskForm, Filed
from console.requests.kinds.limit import Limit
from console.requests.models import Request
from scheduler.world import Budget as CoreBudget


class BudgetForm(CardBudgetFields, AskForm):
    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.scope(person)


class Budget(Limit):
    key = "budget"
    label = pgettext_lazy("one", "卡预算")
    about = gettext_lazy("一家公司或一个业务每月可以花多少钱；用满后低优先级先收缩，从不拒绝调用。")
    rows, column, told, fields = CardBudget, "limit_fen", "card_budget_fen", BudgetForm

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
            (gettext_lazy("每月，元"), yuan(self.limit(row))),
            (gettext_lazy("现在每月，元"), yuan(self.now(row))),
        ]

    def fen_month(self, row: Request) -> int:
        """What it is more by; of a first one all of it."""
        return max(0, self.limit(row) - (self.now(row) or 0))

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        seen, standing = weigh.look(now), self.now(row)
        tenant = row.tenant.slug if row.tenant is not None else ""
        service = row.service.name if row.service is not None else ""
        others = [one for one in seen.world.budgets if (one.tenant, one.service) != (tenant, service)]
        old = next((one for one in seen.world.budgets if (one.tenant, one.service) == (tenant, service)), None)
        new = replace(old or CoreBudget(tenant, 0, 0, None, service), limit_fen=self.limit(row))
        after = replace(seen.world, budgets=(*others, new))
        figures = {"spent": yuan(new.spent_fen), "foreseen": yuan(new.forecast_fen)}
        return weigh.Weighed(
            fen_month=None if standing is None else self.limit(row) - standing,
            effects=weigh.difference(seen, after, seen.rules),
            facts=[("budget", figures), *([] if standing is not None else [("first_budget", {})])],
        ).frozen(now)

    def names(self, row: Request) -> Mapping[str, Any] | None:
        if row.tenant_id is None or (row.wanted["service"] and row.service_id is None):
            return None
        return {"tenant_id": row.tenant_id, "service": row.service}

    def limit(self, row: Request) -> int:
        return int(Decimal(row.wanted["yuan"]) * FEN)

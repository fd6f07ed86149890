"""A call budget: how many tokens or yuan a month the calls of a company, or with one of its keys, may use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Q
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.models import ApiKey, User
from console.costs import used
from console.costs.forms import CallBudgetFields, whole
from console.filters import thousands, yuan
from console.money.models import CallBudget
from console.money.months import month_of, next_month
from console.requests import weigh
from console.requests.kind import AskForm, Filed
from console.requests.kinds.limit import Limit
from console.requests.models import Request
from console.state import moment
from scheduler.call_budget import Unit
from scheduler.policy import Policy

WEEK_DAYS = 7

Fact = tuple[str, dict[str, Any]]


class CallsForm(CallBudgetFields, AskForm):
    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.scope(person)


class Calls(Limit):
    key = "calls"
    label = pgettext_lazy("one", "调用预算")
    about = gettext_lazy("一家公司或一个密钥每月可以用多少 token 或多少钱；用完后网关拒绝调用，到下月初恢复。")
    rows, column, told, fields = CallBudget, "limit", "call_budget", CallsForm

    def filed(self, form: Any) -> Filed:
        given = form.cleaned_data
        tenant, key = given["tenant"], given["key"]
        wanted = {"tenant": tenant.pk, "key": key.pk if key is not None else None}
        wanted |= {"unit": given["unit"], "amount": str(given["amount"])}
        return Filed(tenant, None, f"{tenant.name} · {key.name}" if key is not None else tenant.name, wanted)

    def says(self, row: Request) -> list[tuple[Any, str]]:
        unit = row.wanted["unit"]
        return [
            (gettext_lazy("给谁"), row.subject),
            (gettext_lazy("每月上限"), said(unit, self.limit(row))),
            (gettext_lazy("现在每月上限"), said(unit, self.now(row))),
        ]

    def steps(self, row: Request, rules: Policy) -> int:
        """As any budget: one number says how many agree to one."""
        return 2 if self.fen_month(row) > rules.two_approvers_fen else rules.approvers_budget

    def fen_month(self, row: Request) -> int:
        """What it is more by; tokens have no price of their own."""
        return max(0, self.limit(row) - (self.now(row) or 0)) if row.wanted["unit"] == Unit.FEN else 0

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        if self.names(row) is None:
            return weigh.Weighed(facts=[("unclear", {})]).frozen(now)
        standing, money = self.now(row), row.wanted["unit"] == Unit.FEN
        facts = self._fen(row, moment(now)) if money else self._tokens(row, moment(now))
        facts += [] if standing is not None else [("first_call_budget", {})]
        more = self.limit(row) - standing if money and standing is not None else None
        return weigh.Weighed(fen_month=more, facts=facts).frozen(now)

    def _fen(self, row: Request, now: datetime) -> list[Fact]:
        spent = used.fen(_slug(row), row.wanted["key"], now)
        return [("call_fen", {"used": yuan(spent)}), *([("call_spent", {})] if spent >= self.limit(row) else [])]

    def _tokens(self, row: Request, now: datetime) -> list[Fact]:
        """Used, and when it would be spent if the month goes on as the last days went."""
        of = _slug(row), row.wanted["key"]
        spent = used.tokens(*of, Q(hour__gte=month_of(now)))
        day = used.tokens(*of, Q(hour__gte=now - timedelta(days=WEEK_DAYS))) / WEEK_DAYS
        facts: list[Fact] = [("call_tokens", {"used": thousands(spent), "day": thousands(round(day))})]
        if spent >= self.limit(row):
            return [*facts, ("call_spent", {})]
        left_days = (self.limit(row) - spent) / day if day else None
        ends = left_days is not None and now + timedelta(days=min(left_days, 40)) < next_month(now)
        return [*facts, ("call_ends", {"days": f"{left_days:.0f}"}) if ends else ("call_lasts", {})]

    def names(self, row: Request) -> Mapping[str, Any] | None:
        key = row.wanted["key"]
        if row.tenant_id is None or (key is not None and not ApiKey.objects.filter(pk=key, revoked_at=None).exists()):
            return None
        return {"tenant_id": row.tenant_id, "key_id": key, "unit": row.wanted["unit"]}

    def limit(self, row: Request) -> int:
        return whole(row.wanted["unit"], Decimal(row.wanted["amount"]))


def _slug(row: Request) -> str:
    return row.tenant.slug if row.tenant is not None else ""


def said(unit: str, limit: int | None) -> str:
    """A limit with its unit; none: it is unlimited."""
    if limit is None:
        return _("没有设，不限")
    if unit == Unit.FEN:
        return _("%(yuan)s 元") % {"yuan": yuan(limit)}
    return f"{limit:,} token"

"""The lists of requests: one's own, what waits for one's word, and all that one may see."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.access import own, tenant_of
from console.accounts.models import Tenant, User
from console.requests.kinds import KINDS
from console.requests.models import OVER, State
from console.tables import Choice, Column, Table, picks

EMPTY: dict[str, tuple[Any, Any]] = {
    "mine": (gettext_lazy("您还没有提过申请"), gettext_lazy("要白名单、预算、新业务，或让别的公司调用，从这里提。")),
    "review": (gettext_lazy("没有等您决定的"), gettext_lazy("有人提出申请，或运维紧急生效了什么，会列在这里。")),
    "all": (gettext_lazy("还没有申请"), gettext_lazy("申请写明要什么、为什么、到何时；批准前先看它会怎样。")),
}


def _kinds() -> dict[str, tuple[Any, Any]]:
    return picks([(key, kind.label) for key, kind in KINDS.items()], "kind")


def _states() -> dict[str, tuple[Any, Any]]:
    return {
        "live": (gettext_lazy("没有了结的"), ~Q(state__in=OVER)),
        "urgent": (gettext_lazy("紧急生效的"), Q(urgent=True)),
        **picks(State.choices, "state"),
    }


def table(which: str, user: User) -> Table:
    """`which`: mine, review or all; each remembers for itself how it was sorted and narrowed."""

    def tenants() -> dict[str, tuple[Any, Any]]:
        return picks(own(Tenant.objects.all(), user, "pk").values_list("pk", "name"), "tenant_id")

    staff = tenant_of(user) is None
    return Table(
        name=f"requests-{which}",
        row="requests/_row.html",
        columns=(
            Column("number", gettext_lazy("编号"), ("pk",), numeric=True),
            Column("kind", gettext_lazy("种类"), ("kind",)),
            Column("subject", gettext_lazy("要什么"), ("subject",)),
            Column("tenant", gettext_lazy("公司"), ("tenant__ordinal",)),
            Column("by", gettext_lazy("谁提出"), ("asked_by__full_name",)),
            Column("asked", gettext_lazy("何时提出"), ("asked_at",), numeric=True),
            Column("until", gettext_lazy("到何时止"), ("until",), numeric=True),
            Column("state", pgettext_lazy("request", "状态"), ("state",)),
        ),
        filters=(
            Choice("kind", gettext_lazy("种类"), _kinds),
            Choice("state", pgettext_lazy("request", "状态"), _states),
            *((Choice("tenant", gettext_lazy("公司"), tenants),) if staff else ()),
        ),
        start="-number",
        search=("subject", "why", "asked_by__full_name", "asked_by__username"),
        search_hint=gettext_lazy("要什么、为什么或谁提出"),
        empty=EMPTY[which],
    )

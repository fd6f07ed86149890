"""The audit's page and its export: the same rows, narrowed the same way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import Act, allowed
from console.accounts.models import Role
from console.audit.models import Entry
from console.audit.record import record
from console.audit.words import ACTS
from console.exports import as_csv, as_xlsx
from console.tables import Choice, Column, Table

EXPORTED = 100_000  # lines of one file: what a spreadsheet still opens


def _acts() -> dict[str, tuple[Any, Any]]:
    """Several addresses may be one act in words: the first names them all."""
    by_word: dict[str, list[str]] = {}
    for act, said in ACTS.items():
        by_word.setdefault(str(said), []).append(act)
    return {acts[0]: (said, Q(act__in=acts)) for said, acts in by_word.items()}


def _times() -> dict[str, tuple[Any, Any]]:
    now = timezone.now()
    return {
        str(days): (label, Q(at__gte=now - timedelta(days=days)))
        for days, label in ((1, _("24 小时内")), (7, _("7 天内")), (30, _("30 天内")), (180, _("180 天内")))
    }


TABLE = Table(
    name="audit",
    row="audit/_row.html",
    columns=(
        Column("at", gettext_lazy("时间"), ("at",)),
        Column("who", gettext_lazy("谁"), ("username",)),
        Column("act", gettext_lazy("做了什么"), ("act",)),
        Column("subject", gettext_lazy("对象"), ("subject",)),
        Column("changes", gettext_lazy("前后")),
        Column("address", gettext_lazy("来自"), ("address",)),
    ),
    filters=(
        Choice("when", gettext_lazy("时间"), _times),
        Choice("act", gettext_lazy("做了什么"), _acts),
        Choice("role", gettext_lazy("角色"), lambda: {role: (label, Q(role=role)) for role, label in Role.choices}),
        Choice(
            "outcome",
            gettext_lazy("结果"),
            lambda: {value: (label, Q(outcome=value)) for value, label in Entry.Outcome.choices},
        ),
    ),
    start="-at",
    search=("username", "full_name", "subject", "address", "path"),
    search_hint=gettext_lazy("人、对象或地址"),
    empty=(gettext_lazy("还没有记录"), gettext_lazy("有人登录或改动了什么，就会记在这里，谁也改不了。")),
)


@allowed(Act.SEE_AUDIT)
def audit(request: HttpRequest) -> HttpResponse:
    return render(request, "audit/audit.html", {"table": TABLE.of(request, Entry.objects.all())})


@allowed(Act.SEE_AUDIT)
def audit_csv(request: HttpRequest) -> HttpResponse:
    """What the page's filters leave, newest first. Who takes the record away is itself recorded."""
    record(request, "audit-csv")
    return as_csv(_lines(request), f"audit-{timezone.localdate():%Y-%m-%d}")


@allowed(Act.SEE_AUDIT)
def audit_xlsx(request: HttpRequest) -> HttpResponse:
    record(request, "audit-xlsx")
    return as_xlsx(_lines(request), f"audit-{timezone.localdate():%Y-%m-%d}")


def _lines(request: HttpRequest) -> Iterator[tuple[object, ...]]:
    """A head, then one line a changed field; an entry without changes is one line."""
    yield tuple(
        str(one)
        for one in (
            *(_("时间"), _("账户"), _("姓名"), _("角色"), _("来自"), _("做了什么"), _("对象"), _("结果")),
            *(_("改了谁"), _("字段"), _("之前"), _("之后")),
        )
    )
    for row in TABLE.all(request, Entry.objects.all())[:EXPORTED]:
        head = (
            f"{timezone.localtime(row.at):%Y-%m-%d %H:%M:%S}",
            row.username,
            row.full_name,
            row.role_word,
            row.address or "",
            row.word,
            row.subject,
            row.get_outcome_display(),
        )
        for kind, which, field, before, after in row.changes or [("", "", "", "", "")]:
            yield (*head, f"{kind} {which}".strip(), field, _cell(before), _cell(after))


def _cell(value: object) -> object:
    return "" if value is None else value if isinstance(value, int | float) else str(value)

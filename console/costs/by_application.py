"""What calls of each application took of a month's cost: its keys' shares, as booked. One of them: key by key.

Calls take a part of what memory costs; what stood idle, and the buffer, are nobody's calls. So the sum here is less
than the bill of the companies, and the page says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.db.models import Sum
from django.utils.translation import gettext as _

from console.accounts.access import own
from console.accounts.models import ApiKey, Application, Tenant, User
from console.filters import yuan
from console.money.models import KeyCost


@dataclass(slots=True)
class Line:
    """`application` None: keys that belong to none, or of an application's own page one key."""

    label: str
    owner: Tenant
    application: int | None
    keys: int
    fen: int


@dataclass(frozen=True, slots=True)
class ByApplication:
    first: date
    chosen: Application | None
    lines: list[Line]

    @property
    def total_fen(self) -> int:
        return sum(line.fen for line in self.lines)

    @property
    def drawn(self) -> list[tuple[Line, int]]:
        """(line, its length in percent of the dearest)."""
        dearest = max((line.fen for line in self.lines), default=0) or 1
        return [(line, 100 * line.fen // dearest) for line in self.lines]


def month(user: User, first: date, wanted: str = "") -> ByApplication:
    """`wanted`: an application's id as the address says it; one that is not there, or not theirs, narrows nothing."""
    rows = own(Application.objects.select_related("tenant"), user)
    chosen = rows.filter(pk=int(wanted)).first() if wanted.isdecimal() and len(wanted) < 18 else None
    lines = _keys(chosen, first) if chosen is not None else _applications(user, first)
    return ByApplication(first, chosen, sorted(lines, key=lambda line: (-line.fen, line.owner.ordinal, line.label)))


def _fen(first: date, slugs: Iterable[str]) -> dict[tuple[str, int], int]:
    """By (company, key)."""
    rows = KeyCost.objects.filter(month=first, tenant__in=list(slugs)).order_by()
    return {(tenant, key): n for tenant, key, n in rows.values_list("tenant", "key_id").annotate(n=Sum("fen"))}


def _applications(user: User, first: date) -> list[Line]:
    """Every application, and of each company what is left: keys of none, and keys that are gone. Four queries."""
    tenants = {row.slug: row for row in own(Tenant.objects.all(), user, "pk")}
    by_pk = {row.pk: row for row in tenants.values()}
    applications = Application.objects.filter(tenant__in=by_pk)
    lines = {row.pk: Line(row.name, by_pk[row.tenant_id], row.pk, 0, 0) for row in applications}
    rest = {slug: Line(str(_("不归应用的密钥")), tenant, None, 0, 0) for slug, tenant in tenants.items()}
    fen = _fen(first, tenants)
    keys = ApiKey.objects.filter(tenant__in=by_pk).values_list("pk", "tenant_id", "application_id")
    for key, tenant, application in keys:
        line = lines[application] if application in lines else rest[by_pk[tenant].slug]
        line.keys += 1
        line.fen += fen.pop((by_pk[tenant].slug, key), 0)
    for (slug, _key), amount in fen.items():
        rest[slug].fen += amount
    return [*lines.values(), *(line for line in rest.values() if line.keys or line.fen)]


def _keys(chosen: Application, first: date) -> list[Line]:
    fen = _fen(first, [chosen.tenant.slug])
    slug = chosen.tenant.slug
    return [Line(key.name, chosen.tenant, None, 1, fen.get((slug, key.pk), 0)) for key in chosen.keys.all()]


def table(found: ByApplication) -> list[list[str]]:
    """The very figures of the page."""
    what = _("密钥") if found.chosen is not None else _("应用")
    head = [_("公司"), what, _("密钥数"), _("调用占的费用（元）")]
    body = [[line.owner.name, line.label, str(line.keys), yuan(line.fen)] for line in found.lines]
    return [head, *body, [_("合计"), "", "", yuan(found.total_fen)]]

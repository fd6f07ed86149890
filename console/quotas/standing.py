"""How quotas stand, as printed: pool by pool, each company's bar and figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from console import state
from console.accounts.models import Tenant
from console.filters import gib
from console.fleet.models import Pool
from console.fleet.models import Quota as QuotaRow
from console.quotas.ledger import ledger
from scheduler.lending import Share, plannable_mib, promised_mib, shares


@dataclass(frozen=True, slots=True)
class Line:
    """One company in one pool. `row` None: nothing is set there. `scale_mib`: how long the bar may be at most."""

    tenant: Tenant
    pool: Pool
    row: int | None
    share: Share
    scale_mib: int

    @property
    def within_mib(self) -> int:
        """Used of its guarantee."""
        return self.share.used_mib - self.share.borrowed_mib

    @property
    def idle_mib(self) -> int:
        """Of its guarantee, used by nobody."""
        return self.share.unused_mib - self.share.lent_mib

    @property
    def left_mib(self) -> int | None:
        """What it may still start; None: no limit is set. Below 0: it has more than it may by now."""
        return None if self.share.quota is None else self.share.quota.limit_mib - self.share.used_mib

    @property
    def over_mib(self) -> int:
        """What it has beyond its limit by now."""
        return max(0, -(self.left_mib or 0))

    @property
    def over(self) -> bool:
        return self.over_mib > 0

    @property
    def borrowable_left_mib(self) -> int:
        borrowable = 0 if self.share.quota is None else self.share.quota.borrowable_mib
        return max(0, borrowable - self.share.borrowed_mib)

    @property
    def bar(self) -> SafeString:
        """Its parts side by side, and the rest of the scale."""
        parts = [
            ("s-w", self.within_mib),
            ("s-lent", self.share.lent_mib),
            ("s-kg", self.idle_mib),
            ("s-h", self.share.borrowed_mib),
            ("s-buf", self.borrowable_left_mib),
        ]
        parts.append(("s-free", self.scale_mib - sum(mib for _, mib in parts)))
        return format_html_join("", '<i class="{}" style="--m:{}"></i>', [part for part in parts if part[1] > 0])

    @property
    def said(self) -> str:
        """The bar for who does not see it."""
        share = self.share
        names = {"used": share.used_mib, "promised": share.promised_mib, "lent": share.lent_mib}
        figures = {name: gib(mib) for name, mib in {**names, "borrowed": share.borrowed_mib}.items()}
        return _("在用 %(used)s，保证 %(promised)s，借出 %(lent)s，借入 %(borrowed)s GiB") % figures


@dataclass(frozen=True, slots=True)
class PoolStanding:
    pool: Pool
    plannable_mib: int
    promised_mib: int
    lines: list[Line]

    @property
    def unpromised_mib(self) -> int:
        """Below 0: more was promised than there is, as after cards have gone."""
        return self.plannable_mib - self.promised_mib

    @property
    def short_mib(self) -> int:
        return max(0, -self.unpromised_mib)

    @property
    def used_mib(self) -> int:
        return sum(line.share.used_mib for line in self.lines)

    @property
    def lent_mib(self) -> int:
        return sum(line.share.lent_mib for line in self.lines)


def standings(of: int | None = None) -> list[PoolStanding]:
    """By pool. `of`: lines of this company only, its sums stay those of all."""
    rules = state.policy()
    world = ledger(rules)
    tenants, pools = {t.slug: t for t in Tenant.objects.all()}, {p.name: p for p in Pool.objects.all()}
    rows = {(row[0], row[1]): row[2] for row in QuotaRow.objects.order_by().values_list("tenant_id", "pool_id", "pk")}
    found, known = [], _known(shares(world, rules), tenants)
    for pool in sorted(pools.values(), key=lambda p: p.label):
        there = [share for share in known if share.pool == pool.name]
        scale = max((_length(share) for share in there), default=0)
        mine = [(tenants[share.tenant], share) for share in there if of in (None, tenants[share.tenant].pk)]
        lines = [Line(tenant, pool, rows.get((tenant.pk, pool.pk)), share, scale) for tenant, share in mine]
        lines.sort(key=lambda line: line.tenant.ordinal)
        mib = plannable_mib(world, rules, pool.name), promised_mib(world.quotas, pool.name)
        found.append(PoolStanding(pool, *mib, lines))
    return found


def table(found: Iterable[PoolStanding]) -> list[list[str]]:
    """Every line of the page as text, GiB; a field without a limit or a promise is empty: none is not zero."""
    head = [
        _("资源池"),
        _("公司"),
        _("在用，GiB"),
        _("保证，GiB"),
        _("可借，GiB"),
        _("借出，GiB"),
        _("借入，GiB"),
        _("还能起，GiB"),
    ]
    return [head, *(_cells(line) for one in found for line in one.lines)]


def _cells(line: Line) -> list[str]:
    share = line.share
    set_ = ["", ""] if share.quota is None else [gib(share.quota.guaranteed_mib), gib(share.quota.borrowable_mib)]
    left = "" if line.left_mib is None else gib(line.left_mib)
    sizes = [gib(share.used_mib), *set_, gib(share.lent_mib), gib(share.borrowed_mib), left]
    return [line.pool.label, line.tenant.name, *sizes]


def lines_of(tenant: Tenant) -> list[Line]:
    """Of one company, pool by pool."""
    return [line for one in standings(tenant.pk) for line in one.lines]


def _known(found: Iterable[Share], tenants: dict[str, Tenant]) -> list[Share]:
    """Without what belongs to a company that went meanwhile, and without empty lines."""
    return [share for share in found if share.tenant in tenants and (share.used_mib or share.quota is not None)]


def _length(share: Share) -> int:
    return max(share.used_mib, share.quota.limit_mib if share.quota is not None else 0)

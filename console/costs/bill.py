"""A month's bill: lines of tenants, services or cards in their parts. Every figure is a sum of the same booked rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import QuerySet, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import tenant_of
from console.accounts.models import Tenant, User
from console.catalog.models import Service
from console.filters import yuan
from console.fleet.models import Card
from console.money.models import Bill, CardHour, CostDay
from console.money.months import days_of
from scheduler.cost import HOUR_S, Part

PARTS: Mapping[Part, object] = {
    Part.WEIGHTS: gettext_lazy("权重"),
    Part.KV: "KV",
    Part.HEADROOM: gettext_lazy("余量与开销"),
    Part.RESIDUE: gettext_lazy("休眠残留"),
    Part.DRIFT: gettext_lazy("超出声明"),
    Part.RESERVED: gettext_lazy("驱动保留"),
    Part.EXTERNAL: gettext_lazy("外部占用"),
    Part.BUFFER: gettext_lazy("缓冲"),
    Part.IDLE: gettext_lazy("空闲"),
}
#: How a part is drawn: as on a card.
FILLS: Mapping[Part, str] = {
    Part.WEIGHTS: "s-w",
    Part.KV: "s-ku",
    Part.HEADROOM: "s-h",
    Part.RESIDUE: "s-asleep",
    Part.DRIFT: "s-over",
    Part.RESERVED: "s-ext",
    Part.EXTERNAL: "s-ext",
    Part.BUFFER: "s-buf",
    Part.IDLE: "s-idle",
}
#: What the parts come to: used by services, kept for safety, taken by others, used by nobody.
SHARES: Mapping[object, tuple[Part, ...]] = {
    gettext_lazy("业务用掉"): (Part.WEIGHTS, Part.KV, Part.HEADROOM, Part.RESIDUE, Part.DRIFT),
    gettext_lazy("没人用"): (Part.IDLE,),
    gettext_lazy("缓冲与驱动"): (Part.BUFFER, Part.RESERVED),
    gettext_lazy("外部占用"): (Part.EXTERNAL,),
}
BY: Mapping[str, object] = {
    "tenant": gettext_lazy("按公司"),
    "service": gettext_lazy("按业务"),
    "card": gettext_lazy("按卡"),
}
#: Another way to look at the month, worked out from keys: `by_application`.
APPLICATION = "application"
WAYS: Mapping[str, object] = {**BY, APPLICATION: gettext_lazy("按应用")}


@dataclass(frozen=True, slots=True)
class Line:
    """`fen` in the order of the bill's parts; `host_fen` is the second bill, of host memory. `owner`: whose it is."""

    key: str
    label: str
    note: str
    owner: Tenant | None
    fen: tuple[int, ...]
    gib_h: float
    host_fen: int
    card: int | None = None  # its row, where the line is a card's

    @property
    def total_fen(self) -> int:
        return sum(self.fen)


@dataclass(frozen=True, slots=True)
class Month:
    """`parts`: those that cost anything. `as_of`: end of the last booked hour; None: nothing is booked."""

    first: date
    by: str
    parts: tuple[Part, ...]
    lines: tuple[Line, ...]
    as_of: datetime | None

    @property
    def heads(self) -> list[object]:
        return [PARTS[part] for part in self.parts]

    @property
    def legend(self) -> list[tuple[object, str]]:
        """(heading, how it is drawn)."""
        return [(PARTS[part], FILLS[part]) for part in self.parts]

    @property
    def drawn(self) -> list[tuple[Line, int, list[tuple[str, int]]]]:
        """(line, its length in percent of the dearest that is somebody's, [how a part is drawn, fen])."""
        dearest = max((line.total_fen for line in self.lines if line.key), default=0) or 1
        fills = [FILLS[part] for part in self.parts]
        return [
            (
                line,
                100 * line.total_fen // dearest,
                [(css, fen) for css, fen in zip(fills, line.fen, strict=True) if fen],
            )
            for line in self.lines
        ]

    @property
    def shares(self) -> list[tuple[object, int, str]]:
        """(label, fen, percent of the total) of what cost anything."""
        fen = dict(zip(self.parts, self.sums, strict=True))
        sums = [(label, sum(fen.get(part, 0) for part in parts)) for label, parts in SHARES.items()]
        return [(label, n, f"{100 * n / self.total_fen:.1f}") for label, n in sums if n]

    @property
    def sums(self) -> list[int]:
        return [sum(line.fen[i] for line in self.lines) for i in range(len(self.parts))]

    @property
    def total_fen(self) -> int:
        return sum(self.sums)

    @property
    def host_fen(self) -> int:
        return sum(line.host_fen for line in self.lines)


def rows_of(user: User) -> QuerySet[CostDay]:
    """What the person may see: all, or what the own company pays."""
    tenant = tenant_of(user)
    if tenant is None:
        return CostDay.objects.all()
    return CostDay.objects.filter(tenant=Tenant.objects.values_list("slug", flat=True).get(pk=tenant))


def month(user: User, first: date, by: str) -> Month:
    """The bill; dearest line first."""
    begin, end = days_of(first)
    rows = rows_of(user).filter(day__gte=begin, day__lt=end).order_by().values_list(by, "bill", "part")
    fen: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    sizes: dict[str, int] = defaultdict(int)
    host: dict[str, int] = defaultdict(int)
    for key, bill, part, amount, mib_s in rows.annotate(fen=Sum("fen"), mib_s=Sum("mib_s")):
        if bill == Bill.HOST:
            host[key] += amount
        else:
            fen[key][part] += amount
            sizes[key] += mib_s
    parts = tuple(part for part in Part if any(one.get(part) for one in fen.values()))
    labels = _labels(by, user)
    cards = dict(Card.objects.values_list("uuid", "pk")) if by == "card" and tenant_of(user) is None else {}
    lines = [
        Line(
            key,
            *labels.get(key, (key or str(_("信息中心")), "", None)),
            tuple(fen[key].get(part, 0) for part in parts),
            sizes[key] / 1024 / HOUR_S,
            host[key],
            cards.get(key),
        )
        for key in fen.keys() | host.keys()
    ]
    lines.sort(key=lambda line: (-line.total_fen - line.host_fen, line.key))
    last = CardHour.objects.exclude(booked_at=None).order_by("-hour").values_list("hour", flat=True).first()
    return Month(begin, by, parts, tuple(lines), last)


def _labels(by: str, user: User) -> dict[str, tuple[str, str, Tenant | None]]:
    """Key → (label, what stands small beside it, whose). What has no row any more keeps its name of then."""
    if by == "tenant":
        found = {row.slug: (row.name, row.slug, row) for row in Tenant.objects.all()}
        return {"": (_("信息中心"), _("没有归属的资源池"), None), **found}
    if by == "service":
        mine, theirs = tenant_of(user), _("其他公司的业务")
        owners = {row.pk: row for row in Tenant.objects.all() if mine in (None, row.pk)}
        rows = Service.objects.values_list("name", "label", "tenant_id")
        known = {name: (label, owners[pk].name if pk in owners else theirs, owners.get(pk)) for name, label, pk in rows}
        return {"": (_("资源池本身"), _("驱动保留、外部、缓冲、空闲"), None), **known}
    cards = Card.objects.select_related("host", "pool")
    return {
        card.uuid: (f"{card.number:02d}" if card.number is not None else str(card), f"{card}, {card.name}", None)
        for card in cards
    }


def table(bill: Month) -> list[list[str]]:
    """The bill as a table of text: the very figures of the page."""
    head = [
        str(BY[bill.by]),
        _("说明"),
        *(str(head) for head in bill.heads),
        _("卡时合计（元）"),
        _("主机内存（元）"),
        "GiB·h",
    ]
    body = [
        [line.label, line.note, *(yuan(n) for n in line.fen), yuan(line.total_fen), yuan(line.host_fen)]
        + [f"{line.gib_h:.1f}"]
        for line in bill.lines
    ]
    last = [_("合计"), "", *(yuan(n) for n in bill.sums), yuan(bill.total_fen), yuan(bill.host_fen), ""]
    return [head, *body, last]


def months(user: User) -> Sequence[date]:
    """First days of the months that have anything booked, newest first."""
    return [day.replace(day=1) for day in rows_of(user).dates("day", "month", order="DESC")]

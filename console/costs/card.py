"""One card's booked hours: the rows that its price was split into, and that they sum to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from console.accounts.access import Act, allowed
from console.accounts.models import Tenant
from console.catalog.models import Service
from console.costs.bill import PARTS
from console.fleet.models import Card
from console.money.models import CardHour
from scheduler.cost import HOUR_S, MIB_PER_GIB, Part

HOURS = 24


@dataclass(frozen=True, slots=True)
class Row:
    part: str
    tenant: str
    service: str
    replica: int | None
    gib_h: float
    fen: int


@dataclass(frozen=True, slots=True)
class Hour:
    """`fen` of the rows sum to `price_fen`."""

    at: datetime
    price_fen: int
    rows: tuple[Row, ...]

    @property
    def sum_fen(self) -> int:
        return sum(row.fen for row in self.rows)


@allowed(Act.SEE_PRICES)
def card(request: HttpRequest, pk: int) -> HttpResponse:
    """The hour that the address names, else the last one booked."""
    row = get_object_or_404(Card.objects.select_related("host"), pk=pk)
    booked = CardHour.objects.filter(card=row.uuid).exclude(booked_at=None).order_by("-hour")
    hours = list(booked.values_list("hour", flat=True)[:HOURS])
    asked = _moment(request.GET.get("hour", ""))
    one = booked.filter(hour=asked).first() if asked is not None else booked.first()
    context = {
        "card": row,
        "hours": hours,
        "hour": None if one is None else _hour(one),
        "crumbs": [(_("费用"), reverse("costs") + "?by=card")],
    }
    return render(request, "costs/card.html", context)


def _moment(text: str) -> datetime | None:
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


def _hour(row: CardHour) -> Hour:
    tenants: Mapping[str, str] = dict(Tenant.objects.values_list("slug", "name"))
    services: Mapping[str, str] = dict(Service.objects.values_list("name", "label"))
    return Hour(row.hour, row.price_fen or 0, tuple(_row(line, tenants, services) for line in row.rows))


def _row(line: list[Any], tenants: Mapping[str, str], services: Mapping[str, str]) -> Row:
    part, tenant, service, replica, mib_s, fen = line
    payer = tenants.get(tenant, tenant) or str(_("信息中心"))
    return Row(
        str(PARTS[Part(part)]), payer, services.get(service, service), replica, mib_s / MIB_PER_GIB / HOUR_S, fen
    )

"""A month of money in rows: what its pages look like with something on them."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from console.accounts.models import Tenant
from console.catalog.models import Replica, Service
from console.fleet.models import Card
from console.money.models import CallBudget, CardBudget, CardHour, CostDay, Price, Residency
from console.money.months import local, month_of, next_month
from scheduler import symptoms
from scheduler.policy import Policy
from scheduler.thrash import Hour
from workers.control.check_up import keep

SHOWN = "property-service"
PARTS = {"weights": 14_000, "kv": 9_000, "headroom": 2_600, "drift": 300}


def fill() -> str:
    """Bills, budgets in every standing, a price that waits, six symptoms, advice; the name of the service shown."""
    now = timezone.now()
    _bills(now)
    month = {"month": month_of(now).date(), "forecast_fen": 180_000, "as_of": now}
    for slug, spent in (("estate", 40_000), ("energy", 85_000), ("finance", 123_456)):
        owner = Tenant.objects.get(slug=slug)
        CardBudget.objects.create(tenant=owner, limit_fen=100_000, spent_fen=spent, **month)
        CallBudget.objects.create(tenant=owner, limit=100_000, used=spent, resets_at=next_month(now))
    Price.objects.create(card_class="a10", fen_h=99_999, starts_at=now + timedelta(hours=5), needs_second=True)
    keep(symptoms.check_up(_figures(), Policy()), now.timestamp())
    _advice(now)
    return SHOWN


def _bills(now) -> None:  # type: ignore[no-untyped-def]
    card = Card.objects.get(number=10)
    lines = [[part, "estate", SHOWN, 7, mib * 3600, mib // 100] for part, mib in PARTS.items()]
    lines += [["buffer", "", "", None, 6_553 * 3600, 41], ["idle", "", "", None, 40_000 * 3600, 250]]
    CardHour.objects.create(
        card=card.uuid, hour=now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=2), booked_at=now,
        price_fen=sum(line[5] for line in lines), rows=lines,
    )  # fmt: skip
    for part, tenant, service, _, mib_s, fen in lines:
        CostDay.objects.create(
            day=local(now).date(), tenant=tenant, service=service, card=card.uuid, part=part, mib_s=mib_s, fen=fen
        )


def _figures() -> symptoms.Figures:
    copy = Replica.objects.get(service__name="equipment-kb")
    return symptoms.Figures(
        pools=[symptoms.PoolUse("shared-large", 29, 92, 3, (symptoms.Resident("equipment-kb", 20480, 1),))],
        mornings=[symptoms.Mornings(SHOWN, (12.0, 14.0, 16.0), 8)],
        caps=[symptoms.Caps(SHOWN, 12, 40, 15, 22.0)],
        broken=[symptoms.Broken(SHOWN, 700, 3, "out_of_memory", 0, calls=17)],
        swaps=[symptoms.Swaps(SHOWN, Hour(30, 4, 50), ("equipment-kb",), 120, 30)],
        busy=[symptoms.Busy(SHOWN, 9, 2400, 800, (symptoms.Neighbour("equipment-kb", copy.pk, 4000, 30720),))],
    )


def _advice(now) -> None:  # type: ignore[no-untyped-def]
    ways = {
        "resident": {"waiting_s": 0, "waiting_fen": 0, "holding_fen": 320},
        "warm": {"waiting_s": 18.0, "waiting_fen": 180, "holding_fen": 48},
        "demand": {"waiting_s": 90.0, "waiting_fen": 900, "holding_fen": 0},
    }
    room = {"fits": 2, "plain": 3, "total_mib": 24576, "each_mib": 9304, "allocatable_mib": 22159, "left_mib": 3551}
    numbers = {
        "ways": ways, "switches_h": 6, "load_s": 15, "wake_s": 3, "share_pct": 40, "contended_pct": 40, "lost_calls": 4,
        "price_fen_h": 2000, "residents": room | {"reserved_mib": 450, "buffer_mib": 1967, "short_mib": 5753},
    }  # fmt: skip
    Residency.objects.create(service=Service.objects.get(name=SHOWN), mode="warm", numbers=numbers, at=now)

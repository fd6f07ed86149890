"""Finished hours into bills: each card's hour is split once, then summed into days, keys and budgets.

One hour a transaction, whose first statement takes the lock that lets one control book. A card-hour is booked where it
is not booked yet; whatever comes later of that hour changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Max, Min, Q
from django.utils import timezone

from console import state
from console.fleet.models import Card
from console.jobs.models import Daily
from console.money.models import Bill, CardHour, CostDay, Holding, KeyCost, Price
from console.money.months import local
from console.usage.models import HourlyCalls
from scheduler.cost import HOUR_S, Row, Span, apportioned, host_memory, shared, split, uses_of
from scheduler.cost import CardHour as Hour
from scheduler.memory import buffer_mib
from scheduler.policy import Policy
from scheduler.world import Card as CoreCard
from workers.control import budgets

Booked = tuple[str, Bill, Row]  # card, bill, line
HOUR = timedelta(seconds=HOUR_S)
LOCK = "book_hours"
CARDS_A_STEP = 25  # booked in one transaction: nobody waits for the database long
STEPS_A_RUN = 4
BATCH = 500


def run(now: datetime | None = None) -> int:
    """Books hours that are over, oldest first, some cards at a time; how many steps it took.

    What is left after `STEPS_A_RUN` follows a minute later; budgets are looked at when nothing is left.
    """
    now = now or timezone.now()
    rules, steps = state.policy(), 0
    Daily.objects.get_or_create(name=LOCK, defaults={"done_at": now})
    for hour in due(now, rules):
        _fill_in(hour)
        while steps < STEPS_A_RUN and _some(hour, rules, now):
            steps += 1
        if steps == STEPS_A_RUN:
            return steps
    budgets.run(now, rules)
    _follow(now)
    return steps


def _follow(now: datetime) -> None:
    """The planner and the advisor reckon with the price in force now."""
    for card_class, fen in prices_at(now).items():
        Card.objects.filter(card_class=card_class).exclude(price_fen_h=fen).update(price_fen_h=fen)


def due(now: datetime, rules: Policy) -> list[datetime]:
    """Hours that are over for long enough and not booked, also those in which nobody sampled."""
    unbooked = CardHour.objects.filter(booked_at=None).aggregate(first=Min("hour"))["first"]
    booked = CardHour.objects.exclude(booked_at=None).aggregate(last=Max("hour"))["last"]
    starts = [hour for hour in (unbooked, booked and booked + HOUR) if hour is not None]
    if not starts:
        return []
    first = min(starts)
    last = (now - timedelta(seconds=rules.cost_late_s)).replace(minute=0, second=0, microsecond=0) - HOUR
    return [first + i * HOUR for i in range(max(0, int((last - first) / HOUR) + 1))]


def _some(hour: datetime, rules: Policy, now: datetime) -> bool:
    """The next few cards of the hour, in a transaction that nobody waits for long; False: none is left."""
    with transaction.atomic():
        Daily.objects.filter(name=LOCK).update(done_at=now)
        facts = _facts(hour)
        if not facts.rows:
            return False
        owners = [(row.card, bill, line) for row in facts.rows for bill, line in _card(row, facts, rules, hour)]
        booked, per_key = _shared(owners, facts.tokens)
        _write(facts.rows, booked, now)
        day = local(hour).date()
        _add_days(day, booked)
        _add_keys(day.replace(day=1), per_key)
    return True


@dataclass(frozen=True, slots=True)
class Facts:
    """What one hour is booked from."""

    rows: Sequence[CardHour]
    cards: Mapping[str, Card]
    spans: Mapping[str, Sequence[Span]]
    prices: Mapping[str, int]  # card class → fen
    tokens: Mapping[str, Mapping[tuple[str, int], int]]  # service → (tenant, key) → tokens


def _facts(hour: datetime) -> Facts:
    rows = list(CardHour.objects.filter(hour=hour, booked_at=None).order_by("card")[:CARDS_A_STEP])
    here = [row.card for row in rows]
    cards = {card.uuid: card for card in Card.objects.filter(uuid__in=here).select_related("pool__owner")}
    spans: dict[str, list[Span]] = defaultdict(list)
    there = Holding.objects.filter(Q(ended=None) | Q(ended__gt=hour), card__in=here, began__lt=hour + HOUR)
    for row in there.order_by("pk"):
        spans[row.card].append(_span(row))
    return Facts(rows, cards, spans, prices_at(hour), _tokens(hour, {s.service for own in spans.values() for s in own}))


def _fill_in(hour: datetime) -> None:
    """A card that was there the hour before and has no sample in this one has a price all the same."""
    cards = Card.objects.values_list("uuid", flat=True)
    known = CardHour.objects.filter(hour=hour - HOUR, card__in=cards).values_list("card", flat=True)
    CardHour.objects.bulk_create([CardHour(card=card, hour=hour) for card in known], ignore_conflicts=True)


def _span(row: Holding) -> Span:
    return Span(
        row.replica,
        row.service,
        row.tenant,
        row.began.timestamp(),
        None if row.ended is None else row.ended.timestamp(),
        row.weights_mib,
        row.kv_mib,
        row.headroom_mib,
        row.overhead_mib,
        row.residue_mib,
        row.host_mib,
    )


def prices_at(hour: datetime) -> dict[str, int]:
    """Fen an hour by card class, of the prices in force then; a class without one has its cards' own."""
    rows = Price.objects.filter(starts_at__lte=hour).order_by("starts_at", "id")
    return {row.card_class: row.fen_h for row in rows if row.counts}


def _tokens(hour: datetime, services: Collection[str]) -> dict[str, dict[tuple[str, int], int]]:
    found: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
    rows = HourlyCalls.objects.filter(hour=hour, service__in=services).order_by("tenant", "key_id")
    columns = rows.values_list("service", "tenant", "key_id", "prompt_tokens", "generated_tokens")
    for service, tenant, key, prompt, generated in columns:
        if prompt + generated:
            found[service][tenant, key] = prompt + generated
    return found


def _card(row: CardHour, facts: Facts, rules: Policy, hour: datetime) -> list[tuple[Bill, Row]]:
    """The two bills of one card's hour; sets the price on the row."""
    card = facts.cards.get(row.card)
    spans, start = facts.spans.get(row.card, ()), int(hour.timestamp())
    row.price_fen = facts.prices.get(card.card_class, card.price_fen_h) if card else 0
    measured = {int(r): total // n for r, (n, total) in row.replicas.items() if n}
    total_mib = row.total_mib or (card.total_mib if card else 0)
    reserved_mib = row.reserved_mib or (card.reserved_mib if card else 0)
    size = CoreCard("", "", 0, "", total_mib, reserved_mib, None)
    lines = split(
        Hour(
            row.price_fen,
            total_mib * HOUR_S,
            reserved_mib * HOUR_S,
            row.external_mib * HOUR_S // row.samples if row.samples else None,
            buffer_mib(size, rules) * HOUR_S,
            card.pool.owner.slug if card and card.pool.owner else "",
            uses_of(spans, start, measured),
        )
    )
    host = host_memory(spans, start, rules.host_memory_fen_gib_h)
    return [(Bill.CARD, line) for line in lines] + [(Bill.HOST, line) for line in host]


def _shared(
    booked: list[Booked], tokens: Mapping[str, Mapping[tuple[str, int], int]]
) -> tuple[list[Booked], dict[tuple[str, int], int]]:
    """Called services paid by their callers; beside it what calls with each key took (fen by tenant and key)."""
    callers: dict[str, dict[str, int]] = {service: defaultdict(int) for service in tokens}
    for service, keys in tokens.items():
        for (tenant, _), n in keys.items():
            callers[service][tenant] += n
    paid = shared([line for _, _, line in booked], callers)
    found = [(card, bill, part) for (card, bill, _), parts in zip(booked, paid, strict=True) for part in parts]
    fen: dict[tuple[str, str], int] = defaultdict(int)
    for _, _, part in found:
        fen[part.service, part.tenant] += part.fen
    per_key: dict[tuple[str, int], int] = defaultdict(int)
    for service, keys in tokens.items():
        for tenant in callers[service]:
            mine = {key: n for (who, key), n in keys.items() if who == tenant}
            for key, amount in zip(mine, apportioned(fen[service, tenant], list(mine.values())), strict=True):
                per_key[tenant, key] += amount
    return found, per_key


def _write(rows: Sequence[CardHour], booked: Iterable[Booked], now: datetime) -> None:
    """The split on each card-hour's own row, of the bill of cards."""
    lines: dict[str, list[list[Any]]] = defaultdict(list)
    for card, bill, line in booked:
        if bill is Bill.CARD:
            lines[card].append([line.part.value, line.tenant, line.service, line.replica, line.mib_s, line.fen])
    for row in rows:
        row.rows, row.booked_at = lines[row.card], now
    CardHour.objects.bulk_create(
        rows, update_conflicts=True, update_fields=["rows", "price_fen", "booked_at"], unique_fields=["pk"]
    )


def _add_days(day: date, booked: Collection[Booked]) -> None:
    """Onto the day's sums. Whole sums are written: the lock lets nobody else add meanwhile."""
    more: dict[tuple[str, str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for card, bill, line in booked:
        sums = more[bill.value, line.tenant, line.service, card, line.part.value]
        sums[0] += line.mib_s
        sums[1] += line.fen
    names = ("bill", "tenant", "service", "card", "part")
    there = CostDay.objects.filter(day=day, card__in={card for card, _, _ in booked})
    for *key, mib_s, fen in there.values_list(*names, "mib_s", "fen"):
        if (known := more.get(tuple(key))) is not None:
            known[0] += mib_s
            known[1] += fen
    rows = [
        CostDay(day=day, mib_s=mib_s, fen=fen, **dict(zip(names, key, strict=True)))
        for key, (mib_s, fen) in sorted(more.items())
    ]
    CostDay.objects.bulk_create(
        rows, BATCH, update_conflicts=True, update_fields=["mib_s", "fen"], unique_fields=["day", *names]
    )


def _add_keys(month: date, per_key: Mapping[tuple[str, int], int]) -> None:
    for (tenant, key), fen in sorted(per_key.items()):
        row, _ = KeyCost.objects.get_or_create(month=month, tenant=tenant, key_id=key)
        KeyCost.objects.filter(pk=row.pk).update(fen=F("fen") + fen)

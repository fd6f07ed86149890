"""The advisor's word on every service: resident, warm or on demand, with both prices of each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db.models import Sum

from console import state
from console.catalog.models import Service as ServiceRow
from console.journal.models import Event
from console.money.models import PoolHour, Residency
from console.state import moment
from console.usage.models import DailyForecast, Session
from scheduler.advisor import Advised, Habit, Waiter, advise, call_mib, lost_concurrency, residents, share_of
from scheduler.draft import Draft
from scheduler.estimate import load_estimate, wake_estimate
from scheduler.kept import HALF_EMPTY, QUESTIONS
from scheduler.memory import Book, allocatable_mib, room_mib
from scheduler.tiers import WEEK
from scheduler.world import Phase, Replica, Service, Want

STEP = 50  # services between two words on progress
WEEK_H = WEEK * 24
#: A little used card is a passing state; what it means is in the sums: nobody wants the memory.
BOUNDARIES = {name: ask for name, ask in QUESTIONS.items() if name != HALF_EMPTY}


def run(arguments: dict[str, object]) -> Iterator[float]:
    """Says it anew for each service that has a card it could live on; yields the share done."""
    now = time.time()
    rules = state.policy()
    draft = Draft(state.world(now, rules=rules), rules, now)
    week = Week(now)
    rows = list(ServiceRow.objects.select_related("model").order_by("pk"))
    for i, row in enumerate(rows):
        if i % STEP == 0:
            yield i / len(rows)
        service = draft.services.get(row.name)
        if service is not None:
            _one(draft, service, row, week)
    yield 1.0


class Week:
    """What the last seven days counted: a query each."""

    def __init__(self, now: float) -> None:
        since = moment(now) - timedelta(days=WEEK)
        events = Event.objects.filter(at__gte=since, phase=Phase.READY, how__in=("start", "wake")).order_by()
        self.loads = Counter(events.exclude(service=None).values_list("service__name", flat=True))
        self.sessions = Counter(Session.objects.filter(start__gte=since).order_by().values_list("service", flat=True))
        forecast = DailyForecast.objects.filter(day__gte=since.date()).order_by().values_list("service")
        self.hits = {name: used / n for name, used, n in forecast.annotate(u=Sum("used"), n=Sum("sessions")) if n}
        hours = PoolHour.objects.filter(hour__gte=since).order_by().values_list("pool")
        counted = hours.annotate(c=Sum("contended"), n=Sum("samples"))
        self.contended: Mapping[str, float] = {pool: c / n for pool, c, n in counted if n}


def _one(draft: Draft, service: Service, row: ServiceRow, week: Week) -> None:
    book = home(draft, service)
    if book is None:
        return
    habit = habit_of(draft, service, row.waiter, book, week)
    said = advise(habit, draft.policy)
    numbers = numbers_of(
        said, habit, book, service, call_mib(row.model.kv_bytes_per_token, draft.policy.typical_tokens)
    )
    values = {"mode": said.mode.value, "why": said.why, "numbers": numbers, "at": moment(draft.now)}
    Residency.objects.update_or_create(service=row, defaults=values)


def home(draft: Draft, service: Service) -> Book | None:
    """The card it sits on, else the cheapest measured one that it could; None: there is none."""
    sits = [c for r in draft.of_service(service.name) for c in r.cards if c in draft.world.cards]
    cards = [draft.world.cards[c] for c in sorted(set(sits))] or [
        card
        for card in draft.world.cards.values()
        if (not service.pools or card.pool in service.pools)
        and (not service.card_classes or card.card_class in service.card_classes)
    ]
    for card in sorted(cards, key=lambda c: (c.price_fen_h, c.id)):
        if allocatable_mib(book := draft.book(card.id)):
            return book
    return None


def habit_of(draft: Draft, service: Service, waiter: str, book: Book, week: Week) -> Habit:
    world, policy, card = draft.world, draft.policy, book.card
    allocatable = allocatable_mib(book) or 0
    switches = max(week.loads[service.name], week.sessions[service.name])
    pools = service.pools or frozenset({card.pool})
    wanted = [week.contended[pool] for pool in pools if pool in week.contended]
    return Habit(
        switches_h=switches / WEEK_H,
        load_s=load_estimate(world, policy, service, card.host).seconds,
        wake_s=wake_estimate(world, policy, service, card.host).seconds,
        price_fen_h=card.price_fen_h * service.cards_per_replica,
        share=share_of(service.claim.fixed_mib + service.claim.kv_cap_mib, allocatable),
        residue_share=share_of(policy.default_residue_mib, allocatable),
        contended=max(wanted, default=0.0),
        waiter=Waiter(waiter),
        preload_hit=min(1.0, week.hits.get(service.name, 0.0)),
        can_sleep=service.can_sleep,
        kept=boundary(draft, service, card.id),
    )


def boundary(draft: Draft, service: Service, card: str) -> str:
    """The rule that always keeps a copy of it there; asked of its own copy, else of one as it would be."""
    own = [r for r in draft.of_service(service.name) if r.phase is Phase.READY]
    copy = own[0] if own else Replica(0, service.name, (card,), Want.READY, Phase.READY)
    return next((name for name, ask in BOUNDARIES.items() if ask(draft, copy, service)), "")


def numbers_of(said: Advised, habit: Habit, book: Book, service: Service, one_call_mib: int) -> dict[str, Any]:
    """What the page shows: per way both prices an hour, and what they come from."""
    held = service.claim.fixed_mib + service.claim.kv_cap_mib
    return {
        "ways": {
            p.mode.value: {"waiting_s": round(p.waiting_s, 2), "waiting_fen": round(p.waiting_fen, 2)}
            | {"holding_fen": round(p.holding_fen, 2)}
            for p in said.prices
        },
        "switches_h": round(habit.switches_h, 3),
        "load_s": round(habit.load_s, 1),
        "wake_s": round(habit.wake_s, 1),
        "share_pct": round(100 * habit.share, 1),
        "contended_pct": round(100 * habit.contended, 1),
        "price_fen_h": habit.price_fen_h,
        "residents": asdict(residents(book.card, service.claim, book.policy)),
        "lost_calls": lost_concurrency(max(0, room_mib(book) or 0), held, one_call_mib),
    }

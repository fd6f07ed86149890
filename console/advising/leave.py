"""Leave for one advice: it may act until then, and what it makes room for is asked for: its caller was sent away."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from console.accounts.models import User
from console.catalog.models import Order, Service
from console.journal.models import Advice
from scheduler.decision import Reason
from scheduler.modes import SUGGEST, TOLD
from scheduler.policy import Policy
from scheduler.world import Act


def give(row: Advice, by: User, now: datetime, rules: Policy) -> bool:
    """False, and nothing written: it is closed, approved already, or of a pool that only observes by now."""
    until = now + timedelta(seconds=rules.advice_approved_s)
    again = Q(approved_until=None) | Q(approved_until__lt=now)
    open_still = Advice.objects.filter(again, pk=row.pk, closed_at=None, told=TOLD[SUGGEST])
    with transaction.atomic():
        given = bool(open_still.update(approved_by=by, approved_at=now, approved_until=until))
        if given and row.reason == Reason.ROOM:
            _ask_for(str(row.numbers.get("room_for", "")), by, now, until)
    return given


def _ask_for(service: str, by: User, now: datetime, until: datetime) -> None:
    """As the button of a preload would, insisting: nobody waits any more, and the room is for somebody all the same."""
    for found in Service.objects.filter(name=service):
        if not Order.objects.filter(service=found, act=Act.PRELOAD, done_at=None, until__gt=now).exists():
            Order.objects.create(service=found, act=Act.PRELOAD, force=True, by=by, at=now, until=until)

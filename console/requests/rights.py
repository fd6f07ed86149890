"""Who may decide what: approvers, and whoever an approver who is away has named; never the person who asked."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from console.accounts.access import Act, may, own
from console.accounts.models import Absence, Role, User
from console.requests.models import Request, State

#: What waits for a decision: open ones, and urgent ones that nobody has reviewed.
WAITS = Q(state=State.OPEN) | Q(state=State.IN_FORCE, urgent=True, first_by=None)


def stood_in_for(user: User, now: datetime) -> list[int]:
    """Approvers who are away and named this person. One query."""
    if not may(user, Act.DEPUTISE):
        return []
    away = Absence.objects.filter(deputy=user, starts_at__lte=now, until__gt=now, ended_at=None)
    return list(away.filter(person__is_active=True, person__role=Role.APPROVER).values_list("person_id", flat=True))


def decides(user: User, now: datetime) -> bool:
    """May the person decide requests at all, now?"""
    return may(user, Act.DECIDE_REQUESTS) or bool(stood_in_for(user, now))


def why_not(row: Request, user: User, now: datetime) -> str:
    """Code of why the person may not decide this one; empty: they may."""
    if row.asked_by_id == user.pk:
        return "own"
    if not decides(user, now):
        return "not_yours"
    return "twice" if user.pk in row.deciders else ""


def seen(user: User) -> QuerySet[Request]:
    """What the person may see; the site's own requests are staff's."""
    return own(Request.objects.select_related("tenant", "service", "asked_by", "handed_to"), user)


def waiting(user: User, now: datetime) -> QuerySet[Request]:
    """What waits for this person's word. Two queries at most."""
    substitutes = stood_in_for(user, now)
    if not (substitutes or may(user, Act.DECIDE_REQUESTS)):
        return Request.objects.none()
    mine = Q(handed_to=None) | Q(handed_to=user) | Q(handed_to__in=substitutes)
    rows = seen(user).filter(WAITS).filter(mine)
    return rows.exclude(asked_by=user).exclude(first_by=user).exclude(second_by=user)


def deciders_of(row: Request) -> QuerySet[User]:
    """To whom it may be handed over."""
    people = User.objects.filter(role=Role.APPROVER, is_active=True).exclude(pk=row.asked_by_id)
    return people.exclude(pk__in=row.deciders).order_by("full_name", "username")

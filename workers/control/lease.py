"""One planner at a time: a row with a holder, a deadline by the database's clock, and a token that fences."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from console.jobs.models import Lease

NAME = "control"
TTL = timedelta(seconds=5)


class Lost(Exception):
    """Another holder took the lease: nothing more may be recorded."""


def ensure() -> None:
    Lease.objects.get_or_create(name=NAME, defaults={"until": timezone.now() - TTL})


def take(me: str) -> int | None:
    """The fencing token, or None while another holds it. A holder may retake its own at once."""
    free_or_mine = Q(until__lt=Now()) | Q(holder=me)
    taken = Lease.objects.filter(free_or_mine, name=NAME).update(holder=me, token=F("token") + 1, until=Now() + TTL)
    if not taken:
        return None
    return Lease.objects.values_list("token", flat=True).filter(name=NAME, holder=me).first()


def fence(token: int) -> None:
    """First statement of a recording transaction: row lock, check and renewal in one."""
    if not Lease.objects.filter(name=NAME, token=token).update(until=Now() + TTL):
        raise Lost


def release(me: str) -> None:
    Lease.objects.filter(name=NAME, holder=me).update(until=Now() - TTL)


def raise_route_version(token: int) -> int:
    """The next version of the set of routed replicas."""
    if not Lease.objects.filter(name=NAME, token=token).update(route_version=F("route_version") + 1):
        raise Lost
    return route_version()


def route_version() -> int:
    return Lease.objects.values_list("route_version", flat=True).get(name=NAME)

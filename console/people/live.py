"""Which keys a caller can call with now."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet
from django.utils import timezone

from console.accounts.models import ApiKey


def is_live(now: datetime) -> Q:
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def live() -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(is_live(timezone.now()))

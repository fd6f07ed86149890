"""Who a session belongs to now: for what stays open longer than a request."""

from __future__ import annotations

from importlib import import_module

from django.conf import settings
from django.contrib.auth import get_user
from django.db import close_old_connections
from django.http import HttpRequest

from console.accounts.models import User


def person_now(session_key: str | None) -> User | None:
    """Read anew, as a request would. None: signed out, expired, deactivated, or the password was changed since."""
    close_old_connections()
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    found = get_user(request)
    return found if isinstance(found, User) else None

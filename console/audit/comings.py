"""Signing in and out, and failures to: told by Django and by what locks out."""

from __future__ import annotations

from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from console.audit.models import Entry
from console.audit.record import record
from console.audit.words import FAILED, LOCKED_OUT, SIGNED_IN, SIGNED_OUT


def _in(request: HttpRequest, user: Any, **_: Any) -> None:
    record(request, SIGNED_IN, user=user)


def _out(request: HttpRequest, user: Any, **_: Any) -> None:
    if user is not None:
        record(request, SIGNED_OUT, user=user)


def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    """Who it was is not known: the row says what name was typed."""
    record(request, FAILED, username=str(credentials.get("username", "")), outcome=Entry.Outcome.DENIED)


def _locked(request: HttpRequest, username: str, **_: Any) -> None:
    record(request, LOCKED_OUT, username=username or "", outcome=Entry.Outcome.DENIED)


def listen() -> None:
    user_logged_in.connect(_in, dispatch_uid="audit")
    user_logged_out.connect(_out, dispatch_uid="audit")
    user_login_failed.connect(_failed, dispatch_uid="audit")
    user_locked_out.connect(_locked, dispatch_uid="audit")

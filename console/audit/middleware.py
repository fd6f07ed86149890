"""Beside every act of a person its row of the audit, in the same transaction: neither is there without the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponseBase

from console.audit.models import Entry
from console.audit.record import record
from console.audit.seen import values, watch
from console.audit.subjects import subject

View = Callable[..., HttpResponseBase]
SAFE = ("GET", "HEAD", "OPTIONS")
#: Asked by POST because they carry a form; they answer and write nothing (a draft at most, which is only the person's
#: own), and must not hold the database meanwhile.
ONLY_ANSWER = frozenset(
    {
        "service-claim",
        "service-answer",
        "service-read",
        "service-edit-answer",
        "policy-review",
        "policy-roll-back",
        "quota-answer",
        "services-import",
        "services-bulk",
        "member-import",
        "tenant-import",
        "request-draft",
    }
)


class Audit:
    """The last middleware before the view. What carries no `act` (sign in and out, the language) is told elsewhere."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: View, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> HttpResponseBase | None:
        name = request.resolver_match.url_name if request.resolver_match else None
        if request.method in SAFE or name is None or name in ONLY_ANSWER or not hasattr(view, "act"):
            return None
        try:
            return _acted(request, view, name, args, kwargs)
        except PermissionDenied:
            record(request, name, subject=subject(name, kwargs) or "", outcome=Entry.Outcome.DENIED)
            raise


def _acted(
    request: HttpRequest, view: View, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> HttpResponseBase:
    with transaction.atomic(), watch() as seen:
        row = subject(name, kwargs)
        if row is not None:
            seen.touch(row, values(row))
        response = view(request, *args, **kwargs)
        lines = seen.lines()
        if lines:
            record(request, name, subject=row or lines[0][1], changes=lines)
    return response

"""Requests as template filters: the kind's name, the colour of a state, and who did what nobody did."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

from console.accounts.models import User
from console.filters import name
from console.requests.kinds import KINDS
from console.requests.models import Request, State
from console.requests.words import STALE

register = template.Library()

TONES: dict[str, str] = {
    State.OPEN: "warn",
    State.RETURNED: "warn",
    State.APPROVED: "acc",
    State.IN_FORCE: "ok",
    State.REJECTED: "bad",
    State.FAILED: "bad",
}


@register.filter
def kind(row: Request) -> str:
    """What kind of request it is; one of a kind that is no longer there keeps its key."""
    known = KINDS.get(row.kind)
    return row.kind if known is None else str(known.label)


@register.filter
def request_tone(row: Request) -> str:
    """Class of the tag that says the state."""
    return TONES.get(row.state, "")


@register.filter
def no_said(reason: str) -> str:
    """A failure's code in words; what a person wrote stays as it is."""
    return str(STALE.get(reason, reason))


@register.filter
def name_or_itself(person: User | None) -> str:
    """Who did it; nobody: it came about by itself."""
    return _("自动") if person is None else name(person)

"""Requests as tests make them: asked through the form, decided on from the page as it is drawn."""

from __future__ import annotations

import re
from datetime import timedelta

from django.test import Client
from django.utils import timezone

from console import state
from console.accounts.models import User
from console.catalog.models import Service
from console.requests import deciding, filing
from console.requests.kinds import KINDS
from console.requests.models import Request
from tests.console import rows

NAME = "property-service"


def text(answer) -> str:
    return answer.content.decode()


def service() -> Service:
    return Service.objects.get(name=NAME)


def local(days: float) -> str:
    return timezone.localtime(timezone.now() + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M")


def asked(days: float = 3, why: str = "周五前的投标评审", **more: str) -> dict[str, str]:
    return {"service": NAME, "until": local(days), "why": why, **more}


def filed(who: str = "tenant_admin", kind: str = "whitelist", urgent: bool = False, **fields: str) -> Request:
    """Asked by this person, past the page."""
    from django.http import QueryDict

    person, given = rows.person(who), QueryDict(mutable=True)
    given.update(fields or asked())
    form = KINDS[kind].form(person, given, {})
    assert form.is_valid(), form.errors
    return filing.file(KINDS[kind], form, person, state.policy(), timezone.now(), urgent=urgent)


def given(word: str = "approve", text: str = "", **more: object) -> deciding.Given:
    weighed = {"at": 0, "cards": [], "held_mib": 0, "colder": [], "colder_n": 0, "wait_s": 0, "fen_month": 0}
    return deciding.Given(deciding.Word(word), weighed | {"effects": [], "facts": []}, text, **more)


def decide(
    row: Request, who: str | User = "approver", word: str = "approve", text: str = "", **more: object
) -> Request:
    """Past the page, of the row as it is now."""
    row.refresh_from_db()
    person = rows.person(who) if isinstance(who, str) else who
    deciding.decide(row, person, given(word, text, **more), state.policy(), timezone.now())
    row.refresh_from_db()
    return row


def another_approver(name: str = "approver2") -> User:
    return User.objects.get_or_create(username=name, defaults={"role": "approver", "full_name": "王芳"})[0]


def seal(client: Client, row: Request) -> str:
    """What the page hands back with the decision."""
    found = re.search(r'name="seal" value="([^"]+)"', text(client.get(f"/requests/{row.pk}/weighed")))
    return found[1] if found else ""


def click(client: Client, row: Request, word: str, said: str = "", **more: str):
    """The page is looked at, then a button of it is clicked."""
    sent = {"seal": seal(client, row), "word": word, "text": said, **more}
    return client.post(f"/requests/{row.pk}/decision", sent, follow=True)

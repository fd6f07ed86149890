"""A decision taken in another system, by a person it names: a signed message, and the same rules as on the page.

`POST /api/v1/requests/12/decision` with the header `X-Gongka-Signature: t=SECONDS,v1=HEX`, where HEX is HMAC-SHA256
with the site's secret over `SECONDS.PATH.BODY`, PATH being that of the address: what was signed for one request decides
no other. The body is JSON: `person` (their user name here), `word` (approve, reject
or return), `reference` (its number there), and if wanted `text` and `until` (ISO 8601 with its offset). Answers JSON:
200 with `state` and `version`, and again the same for the same message; else `error`: one of `words.NO`, or
`signature`, `malformed`, `nobody`, `not_found`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import Http404, HttpRequest, JsonResponse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from console import state
from console.accounts.models import User
from console.audit.record import record
from console.audit.seen import values, watch
from console.requests.deciding import Given, Word, decide
from console.requests.kinds import KINDS
from console.requests.models import Request
from console.requests.steps import No

SIGNATURE = re.compile(r"^t=(\d{1,12}),v1=([0-9a-f]{64})$")
FORBIDDEN = dict.fromkeys(("nobody", "own", "not_yours"), 403)
UNCLEAR = dict.fromkeys(("malformed", "past", "no_reason"), 422)
STATUS = {"signature": 401, "not_found": 404, **FORBIDDEN, **UNCLEAR}
REFERENCE_CHARS = 80


def sign(secret: str, at: int, path: str, body: bytes) -> str:
    """The header's value."""
    signed = b"%d.%b.%b" % (at, path.encode(), body)
    return f"t={at},v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


@csrf_exempt
@require_POST
def decision(request: HttpRequest, pk: int) -> JsonResponse:
    """Not there at all on a site that has no secret for it."""
    if not settings.DECISIONS_SECRET:
        raise Http404
    try:
        _checked(request, state.policy().signed_within_s)
        row = _told(request, pk, _read(request.body))
    except No as refused:
        return JsonResponse({"error": refused.code}, status=STATUS.get(refused.code, 409))
    return JsonResponse({"state": row.state, "version": row.version})


def _checked(request: HttpRequest, within_s: int) -> None:
    """Raises No("signature") for one that is wrong, too old, or from the future."""
    found = SIGNATURE.match(request.headers.get("X-Gongka-Signature", ""))
    if found is None or abs(time.time() - int(found[1])) > within_s:
        raise No("signature")
    expected = sign(settings.DECISIONS_SECRET, int(found[1]), request.path, request.body)
    if not hmac.compare_digest(expected, found[0]):
        raise No("signature")


def _read(body: bytes) -> dict[str, Any]:
    """Raises No("malformed")."""
    try:
        given = json.loads(body)
        words = {name: str(given[name]).strip() for name in ("person", "word", "reference")}
        words["word"] = Word(words["word"])
        until = _moment(given.get("until"))
        text = str(given.get("text", ""))[:400]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise No("malformed") from None
    if not words["reference"]:
        raise No("malformed")
    return {**words, "reference": words["reference"][:REFERENCE_CHARS], "until": until, "text": text}


def _moment(text: Any) -> datetime | None:
    """Raises ValueError for one without its offset: two systems need not speak one time zone."""
    if text is None:
        return None
    found = parse_datetime(str(text))
    if found is None or timezone.is_naive(found):
        raise ValueError(text)
    return found


def _told(request: HttpRequest, pk: int, given: Mapping[str, Any]) -> Request:
    """With its row of the audit, under the name of who decided."""
    row = Request.objects.filter(pk=pk).select_related("service", "tenant").first()
    person = User.objects.filter(username=given["person"], is_active=True).first()
    if row is None:
        raise No("not_found")
    if person is None:
        raise No("nobody")
    with transaction.atomic(), watch() as seen:
        seen.touch(row, values(row))
        _decided(row, person, given)
        if lines := seen.lines():
            record(request, "api-request-decision", user=person, subject=row, changes=lines)
    return row


def _decided(row: Request, person: User, given: Mapping[str, Any]) -> None:
    if row.entries.filter(by=person, numbers__reference=given["reference"], numbers__word=given["word"]).exists():
        return  # the same message once more
    now = timezone.now()
    weighed = KINDS[row.kind].consequences(row, now.timestamp())
    origin = {"reference": given["reference"], "word": given["word"]}
    word = Given(given["word"], weighed, given["text"], given["until"], origin)
    decide(row, person, word, state.policy(), now)

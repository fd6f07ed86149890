"""The timeline's pages: which rows are read for which question, and how one pages through time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from console.accounts.access import Act, allowed, own, tenant_of
from console.accounts.models import Tenant, User
from console.catalog.models import Service
from console.fleet.models import Card, Host
from console.journal.models import Decision, Event
from console.journal.stories import SPAN, Story, group
from console.journal.telling import tell
from console.journal.words import REASONS

STORIES_SHOWN = 30
#: Rows that begin a page's stories, and the most read beside them: a page costs the same in a quiet and a busy year.
ROWS_READ, ROWS_BESIDE = 150, 600
#: With a filter each row found brings its company: fewer will do.
ROWS_FOUND = 50
PERIODS = {"1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7), "": None}
PERIOD_WORDS = {"": _("全部时间"), "1h": _("最近 1 小时"), "24h": _("最近 24 小时"), "7d": _("最近 7 天")}
ID_DIGITS = 18  # what a column of ids can hold, whatever is typed
FILTERS = ("service", "tenant", "card", "host", "reason", "refused", "period")


@dataclass(frozen=True, slots=True)
class Asked:
    """The filters as they stand in the address; `before`: stories that began earlier than that."""

    values: dict[str, str]
    before: datetime | None

    @classmethod
    def read(cls, request: HttpRequest) -> Asked:
        """Never refuses: what makes no sense is not asked."""
        values = {name: request.GET.get(name, "").strip()[:60] for name in FILTERS}
        before: datetime | None = None
        with contextlib.suppress(KeyError, ValueError, OverflowError, OSError):
            # later than now is now: stories are sought for a while after it, and the calendar has an end
            before = datetime.fromtimestamp(min(float(request.GET["before"]), time.time()), UTC)
        return cls({name: value for name, value in values.items() if value}, before)

    def narrow(self, rows: QuerySet[Decision], ids: dict[str, int]) -> QuerySet[Decision]:
        """`ids`: of the services the reader may see; for whom room was made is told of those alone."""
        get = self.values.get
        if service := get("service"):
            waited = Q(reason="room", numbers__room_for=service) if service in ids else Q()
            rows = rows.filter(Q(service__name=service) | waited)
        if tenant := get("tenant"):
            rows = rows.filter(service__tenant__slug=tenant)
        if card := get("card"):
            rows = rows.filter(card=int(card)) if card.isdecimal() and len(card) <= ID_DIGITS else rows.none()
        if host := get("host"):
            rows = rows.filter(card__host__name=host)
        if reason := get("reason"):
            rows = rows.filter(reason=reason)
        if get("refused"):
            rows = rows.exclude(refusal="")
        if (period := PERIODS.get(get("period", ""))) is not None:
            rows = rows.filter(at__gte=timezone.now() - period)
        return rows

    def query(self, **more: object) -> str:
        return urlencode(self.values | {name: str(value) for name, value in more.items()})


@dataclass(frozen=True, slots=True)
class Page:
    stories: list[Story]
    older: datetime | None  # stories that began before it come next; None: there are none


def _decisions(user: User) -> QuerySet[Decision]:
    return own(Decision.objects.all(), user, "service__tenant_id")


def _told(rows: Iterable[Decision], beside: Iterable[Decision] = ()) -> list[Decision]:
    """With service, company, card and host at hand: hundreds are read for a page, and each of these is made once.

    `beside`: rows that have theirs already, mostly the same.
    """
    found = list(rows)
    services = Service.objects.only("name", "label", "tenant").select_related("tenant")
    cards = Card.objects.only("number", "index", "host__name").select_related("host")
    for name, known in ("service", services), ("card", cards):
        by_id = {getattr(row, f"{name}_id"): getattr(row, name) for row in beside}
        by_id |= known.in_bulk({pk for row in found if (pk := getattr(row, f"{name}_id")) not in by_id} - {None})
        put = Decision._meta.get_field(name).set_cached_value  # type: ignore[union-attr]
        for row in found:
            put(row, by_id.get(getattr(row, f"{name}_id")))
    return found


def _events(user: User) -> QuerySet[Event]:
    return own(Event.objects.select_related("service__tenant", "card"), user, "service__tenant_id")


def visible(user: User) -> tuple[dict[str, int], dict[str, str]]:
    """Ids and labels by name, of the services the person may see."""
    rows = list(own(Service.objects.all(), user).values_list("name", "pk", "label"))
    return {name: pk for name, pk, _label in rows}, {name: label for name, _pk, label in rows}


def read(user: User, asked: Asked, ids: dict[str, int]) -> Page:
    """One page of stories: those that began before `asked.before`, the newest first, cut to what was asked."""
    rows = asked.narrow(_decisions(user), ids)
    if asked.before is not None:
        rows = rows.filter(at__lt=asked.before + SPAN)  # a story that began before may go on after
    most = ROWS_FOUND if asked.values else ROWS_READ
    anchors = _told(rows.order_by("-at", "-id")[:most])
    if not anchors:
        return Page([], None)
    oldest, full = anchors[-1].at, len(anchors) == most
    wanted = {row.pk for row in anchors}
    stories = group(_company(user, asked, anchors, ids), ids)
    fitting = [one for one in stories if any(row.pk in wanted for row in one.decisions)]
    if asked.before is not None:
        fitting = [one for one in fitting if one.start < asked.before]
    whole = [one for one in fitting if one.start > oldest] if full else fitting  # the oldest may lack their beginning
    shown = (whole or fitting)[:STORIES_SHOWN]
    more = full or len(fitting) > len(shown)
    return Page(shown, shown[-1].start if shown and more else None)


def _company(user: User, asked: Asked, anchors: list[Decision], ids: dict[str, int]) -> list[Decision | Event]:
    """The anchors with everything told beside them: without a filter they are all there is."""
    oldest, newest = anchors[-1].at, anchors[0].at
    decisions = anchors
    events = _events(user).filter(at__gte=oldest, at__lte=newest + SPAN)
    if asked.values:
        about = {row.service_id for row in anchors if row.service_id is not None}
        about |= {ids[name] for row in anchors if (name := str(row.numbers.get("room_for"))) in ids}
        beside = Q(service__in=about) | Q(reason="room", numbers__room_for__in=_names(anchors))
        near = _decisions(user).filter(beside, at__gte=oldest - SPAN, at__lte=newest + SPAN)
        found = {row.pk: row for row in [*_told(near.order_by("-at", "-id")[:ROWS_BESIDE], anchors), *anchors]}
        decisions = list(found.values())
        events = _events(user).filter(service__in=about, at__gte=oldest - SPAN, at__lte=newest + SPAN)
    return [*decisions, *events.order_by("-at", "-id")[:ROWS_BESIDE]]


def _names(rows: list[Decision]) -> set[str]:
    return {row.service.name for row in rows if row.service is not None}


@allowed(Act.SEE_DECISIONS)
def timeline(request: HttpRequest) -> HttpResponse:
    user: User = request.user  # type: ignore[assignment]
    asked, (ids, labels) = Asked.read(request), visible(user)
    page = read(user, asked, ids)
    context = {
        "stories": [tell(story, labels) for story in page.stories],
        "asked": asked,
        "older": asked.query(before=page.older.timestamp()) if page.older is not None else "",
        "newest": asked.query(),
        **_choices(user, labels, asked),
    }
    return render(request, "journal/timeline.html", context)


def _choices(user: User, labels: dict[str, str], asked: Asked) -> dict[str, Any]:
    staff, card = tenant_of(user) is None, asked.values.get("card", "")
    return {
        "staff": staff,
        "reasons": REASONS.items(),
        "periods": PERIOD_WORDS.items(),
        "tenants": Tenant.objects.all() if staff else (),
        "hosts": Host.objects.values_list("name", flat=True) if staff else (),
        "card": Card.objects.filter(pk=int(card)).first() if card.isdecimal() and staff else None,
        "service": labels.get(asked.values.get("service", ""), ""),
        "labels": sorted(labels.items(), key=lambda item: item[1]) if len(labels) <= SERVICES_LISTED else (),
    }


#: More services than this are chosen by typing their name: a list of a thousand is no choice.
SERVICES_LISTED = 60


@allowed(Act.SEE_DECISIONS)
def story(request: HttpRequest, pk: int) -> HttpResponse:
    """One story, by any of its decisions: an address to send to somebody."""
    user: User = request.user  # type: ignore[assignment]
    row = next(iter(_told(_decisions(user).filter(pk=pk))), None)
    if row is None:
        raise Http404
    ids, labels = visible(user)
    near = Q(at__gte=row.at - SPAN, at__lte=row.at + SPAN)
    about = {row.service_id, ids.get(str(row.numbers.get("room_for")))} - {None}
    names = [name for name, pk_ in ids.items() if pk_ in about]
    rows = _decisions(user).filter(near, Q(service__in=about) | Q(reason="room", numbers__room_for__in=names))
    company = _company_of(user, _told(rows.order_by("-at")[:ROWS_BESIDE]), near)
    found = next((one for one in group(company, ids) if any(each.pk == pk for each in one.decisions)), None)
    if found is None:
        found = group([row], ids)[0]
    return render(request, "journal/story.html", {"story": tell(found, labels), "staff": tenant_of(user) is None})


def _company_of(user: User, decisions: list[Decision], near: Q) -> list[Decision | Event]:
    about = {row.service_id for row in decisions}
    return [*decisions, *_events(user).filter(near, service__in=about).order_by("-at")[:ROWS_BESIDE]]

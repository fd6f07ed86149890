"""The board's pages and partials. Everything drawn went through `scopes.seen_by` first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from console.accounts.access import Act, allowed, may, own, tenant_of
from console.board import draw, rows
from console.board.choice import STATES, Choice, counts
from console.board.drawer import card_cordon, card_drawer, card_failure
from console.board.keys import keys
from console.board.messages import numbers as numbers_json
from console.board.names import hue
from console.board.picture import CardNumbers
from console.board.scopes import held_by, layout, seen_by
from console.catalog.models import Service
from console.fleet.models import Card, Host
from console.unchanged import Unchanged

BY_LABEL = attrgetter("label")


@dataclass(frozen=True, slots=True)
class Row:
    """One host's line of the board; its tiles are one piece."""

    host: Host
    head: SafeString
    tiles: SafeString


#: Heads of hosts, with what each says: they change by people's hands only, and 40 of them take a template 10 ms.
_heads: Unchanged[SafeString] = Unchanged()


def _head(card: Card, staff: bool, dense: bool) -> SafeString:
    """Of a host by its first card, for what all of them share."""
    host, pool = card.host, card.pool
    values = (
        (host.name, host.rack, host.simulated, host.cordoned),
        (card.name, card.card_class, card.total_mib),
        (pool.label, pool.mode),
    )
    context = {"host": host, "card": card, "staff": staff, "dense": dense}
    return _heads.of(
        (host.pk, staff, dense, get_language()),
        values,
        lambda: mark_safe(render_to_string("board/_host_head.html", context)),
    )


def _rows(cards: list[CardNumbers], board: rows.Board, staff: bool, dense: bool) -> list[Row]:
    names, line_pct = board.names, board.policy.pressure_pct
    result = []
    for _host, group in groupby(cards, lambda one: names.cards[one.id].host_id):
        mine = list(group)
        card = names.cards[mine[0].id]
        tiles = mark_safe("".join([draw.tile(one, names, line_pct, dense=dense) for one in mine]))
        result.append(Row(card.host, _head(card, staff, dense), tiles))
    return result


def _context(request: HttpRequest) -> dict[str, Any]:
    tenant, choice = tenant_of(request.user), Choice.read(request.GET)  # type: ignore[arg-type]
    board = rows.board(hosts=rows.hosts_of(tenant))
    now, names = board.now, board.names
    visible = seen_by(now.cards, tenant)
    placed = choice.but_state(visible, names)
    dense = choice.is_dense(len(visible))
    shown = choice.with_state(placed)
    found = counts(placed)
    owners = sorted((one for pk, one in names.tenants.items() if tenant in (None, pk)), key=lambda one: one.ordinal)
    return {
        "rows": _rows(shown, board, tenant is None, dense),
        "keys": keys(visible, held_by(now.held, tenant), tenant, now.at, now.stranded_pct),
        "layout": layout(visible),
        "at": now.at,
        "tenants": [(one, hue(one)) for one in owners],
        "staff": tenant is None,
        "farm": bool(names.cards) or Card.objects.exists(),
        "some": bool(visible),
        "live": True,
        "choice": choice,
        "query": choice.query(),
        "dense": dense,
        "wall": choice.wall,
        "densities": [(choice.query(dense=False), not dense), (choice.query(dense=True), dense)],
        "states": [(name, word, found[name], choice.query(state=name)) for name, (word, _holds) in STATES.items()],
        "pools": sorted({(pool := names.cards[one.id].pool).pk: pool for one in visible}.values(), key=BY_LABEL),
    }


@allowed(Act.SEE_BOARD)
def page(request: HttpRequest) -> HttpResponse:
    return render(request, "board/page.html", _context(request))


@allowed(Act.SEE_BOARD)
def hosts(request: HttpRequest) -> HttpResponse:
    """The whole board region, when cards came or went or a message was missed."""
    return render(request, "board/_hosts.html", _context(request))


@allowed(Act.SEE_BOARD)
def tile(request: HttpRequest, pk: int) -> HttpResponse:
    numbers, board = _visible(request, pk)
    dense = request.GET.get("dense") == "1"
    return HttpResponse(draw.tile(numbers, board.names, board.policy.pressure_pct, dense=dense))


@allowed(Act.SEE_BOARD)
def drawer(request: HttpRequest, pk: int) -> HttpResponse:
    numbers, board = _visible(request, pk)
    services = own(Service.objects.all(), request.user)  # type: ignore[arg-type]
    context = card_drawer(numbers, board, services)
    return render(request, "board/_card_drawer.html", context | {"operates": may(request.user, Act.OPERATE_HOSTS)})


@allowed(Act.SEE_BOARD)
def failure(request: HttpRequest, pk: int) -> HttpResponse:
    """Asked for by the drawer once it is open: the planner takes a moment to answer."""
    numbers, board = _visible(request, pk)
    services = own(Service.objects.all(), request.user)  # type: ignore[arg-type]
    return render(request, "board/_failure.html", card_failure(numbers, board, services))


@allowed(Act.OPERATE_HOSTS)
def cordon(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask, with the consequence in numbers; then do it where it is still as it was shown."""
    numbers, board = _visible(request, pk)
    card = board.names.cards[pk]
    if request.method == "POST":
        wanted = request.POST.get("cordoned") == "1"
        done = Card.objects.filter(pk=pk, cordoned=not wanted).update(cordoned=wanted)
        say = (_("%s 已停止调度，新实例不再上来") if wanted else _("%s 已恢复调度")) if done else _("%s 已经是这样了")
        messages.success(request, say % card)
        return redirect("board")
    return render(request, "board/cordon.html", card_cordon(numbers, board))


@allowed(Act.SEE_BOARD)
def numbers(request: HttpRequest) -> HttpResponse:
    """What a socket would have sent on connect: asked for every few seconds while the socket is down."""
    tenant = tenant_of(request.user)  # type: ignore[arg-type]
    now = rows.now(hosts=rows.hosts_of(tenant))
    at = max((card.sampled_at for card in now.cards if card.sampled_at is not None), default=now.at)
    return JsonResponse(numbers_json(now.cards, now.held, now.stranded_pct, tenant=tenant, version=0, at=at))


def _visible(request: HttpRequest, pk: int) -> tuple[CardNumbers, rows.Board]:
    """Reads that card's host alone. Raises Http404 for a card that shows nothing of the person's tenant."""
    host = Card.objects.filter(pk=pk).values_list("host_id", flat=True).first()
    if host is not None:
        board = rows.board(hosts=[host])
        for card in seen_by(board.now.cards, tenant_of(request.user)):  # type: ignore[arg-type]
            if card.id == pk:
                return card, board
    raise Http404

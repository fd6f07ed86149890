"""Tiles and bars as HTML, written directly: 300 of them through templates take 800 ms, so they take 20.

The one place that draws them, for page, partial and drawer alike. Everything a person typed is escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from html import escape

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from console.board.names import Line, Names, line, number_of, sentence
from console.board.picture import CardNumbers, Group
from console.board.scopes import shape, state
from console.filters import clock
from console.fleet.models import Card
from scheduler.world import Phase

#: Share of the bar from which a segment is wide enough for the tenant's one-character mark.
MARK_SHARE, MARK_SHARE_DENSE = 0.085, 0.13
CLASSES = {
    "stale": "is-stale", "unknown": "is-stale", "cordoned": "is-off", "foreign": "is-off", "sick": "is-pressure",
    "pressure": "is-pressure", "loading": "is-change", "draining": "is-change", "notice": "is-change",
    "releasing": "is-change",
}  # fmt: skip
#: State → (icon, tone).
ICONS = {
    "unknown": ("clock", "muted"), "stale": ("clock", "muted"), "sick": ("alert", "bad"), "pressure": ("alert", "bad"),
    "foreign": ("user", "muted"), "cordoned": ("off", "muted"), "draining": ("clock", "warn"),
    "loading": ("down", "warn"), "notice": ("clock", "warn"), "releasing": ("undo", "warn"),
}  # fmt: skip


@lru_cache(maxsize=1)
def _drawer() -> str:
    """Looking an address up 300 times costs 20 ms: once, and the id put in."""
    return reverse("board-drawer", args=(0,))


def gib(mib: int | None) -> str:
    return "—" if mib is None else f"{mib / 1024:,.1f}"


def icon(name: str) -> str:
    return f'<svg class="icon" aria-hidden="true"><use href="#i-{name}"/></svg>'


#: (card, dense, language, whose replicas it names) → (what it was drawn from, the HTML): most cards are quiet.
_drawn: dict[tuple[object, ...], tuple[object, SafeString]] = {}
#: P99 of the last minutes: board.js fills it as the figures come.
SPARK = '<svg class="gk-spark" viewBox="0 0 60 14" preserveAspectRatio="none" aria-hidden="true"><polyline/></svg>'
DRAWN_KEPT = 4096


def tile(numbers: CardNumbers, names: Names, line_pct: int, *, dense: bool = False) -> SafeString:
    """The whole tile; `line_pct`: where the pressure line stands.

    Drawn anew only when anything on it differs from the last time: everything drawn is compared, nothing is assumed.
    """
    key = (numbers.id, dense, names.language, tuple(group.replica for group in numbers.groups))
    source = _source(numbers, names, line_pct)
    old = _drawn.get(key)
    if old is not None and old[0] == source:
        return old[1]
    if len(_drawn) >= DRAWN_KEPT:
        _drawn.clear()
    html = _tile(numbers, names, line_pct, dense)
    _drawn[key] = source, html
    return html


def _source(numbers: CardNumbers, names: Names, line_pct: int) -> tuple[object, ...]:
    """All a tile depends on. The time of a sample counts only once it is old: it is not drawn before."""
    card = names.cards[numbers.id]
    owners = [names.tenants[group.tenant] for group in numbers.groups if group.tenant is not None]
    return (
        numbers.groups,
        numbers.rest,
        (numbers.total_mib, numbers.used_mib, numbers.load_pct, numbers.healthy, numbers.cordoned, numbers.eaten),
        (numbers.pressed, numbers.foreign_until, numbers.sampled_at if numbers.stale else numbers.sampled_at is None),
        [names.services[group.service] for group in numbers.groups if group.service is not None],
        [(owner.name, owner.mark, owner.ordinal) for owner in owners],
        (card.number, card.index, card.host.name, line_pct),
    )


def _tile(numbers: CardNumbers, names: Names, line_pct: int, dense: bool) -> SafeString:
    card, lines = names.cards[numbers.id], [line(group, names) for group in numbers.groups]
    name = state(numbers)
    say, number, mood = names.say, number_of(card), CLASSES.get(name, "")
    href = _drawer().replace("/0/", f"/{card.pk}/")
    label = say["open"] % {"number": number, "card": escape(str(card))}
    load = "—" if numbers.load_pct is None else f"{numbers.load_pct}%"
    if dense:
        tail = ""
    else:
        items = "".join(_item(one, say) for one in lines)
        p99 = "" if numbers.p99_ms is None else f"{numbers.p99_ms:,} ms"
        tail = (
            f'<div class="m"><span class="lp">{say["load"]} {load}</span>{SPARK}<span class="p9">{p99}</span></div>\n'
        )
        tail += f"<ul>{items}</ul>"
    return mark_safe(
        f'<article class="{"gk-c" if dense else "gk-tile"} {mood}" id="card-{card.pk}"'
        f' data-shape="{shape(numbers, name)}">'
        f'<div class="h"><a class="stretched-link" href="{href}" hx-get="{href}" hx-target="#gk-drawer"'
        f' hx-swap="innerHTML" data-drawer aria-label="{label}">{number}</a>{_mark(name, numbers, say, dense)}'
        f'<span class="u" title="{say["used"] % gib(numbers.total_mib)}">{gib(numbers.used_mib)}</span></div>\n'
        f"{_bar(card, numbers, lines, line_pct, say, dense=dense)}\n"
        f'<div class="gk-load"><i style="--p:{numbers.load_pct or 0}%"></i></div>{tail}</article>'
    )


def bar(numbers: CardNumbers, names: Names, line_pct: int, *, big: bool = False) -> SafeString:
    """The bar alone; `big`: with sizes written into it."""
    lines = [line(group, names) for group in numbers.groups]
    return mark_safe(_bar(names.cards[numbers.id], numbers, lines, line_pct, names.say, big=big))


def mark(numbers: CardNumbers, names: Names) -> SafeString:
    """The state of a card: icon and word, or nothing when all is as it should be."""
    return mark_safe(_mark(state(numbers), numbers, names.say))


def _mark(name: str, numbers: CardNumbers, say: Mapping[str, str], dense: bool = False) -> str:
    """`dense`: there is room for an icon and a number, and the words are its title."""
    if not name:
        return ""
    symbol, tone = ICONS[name]
    if dense:
        title = say[name].replace("%s", "").strip()
        return f'<span class="st gk-{tone}" title="{title}">{icon(symbol)}{_short(name, numbers)}</span>'
    return f'<span class="st gk-{tone}">{icon(symbol)} {_state_text(name, numbers, say)}</span>'


def _short(name: str, numbers: CardNumbers) -> str:
    if name == "pressure":
        return f" {100 * (numbers.used_mib or 0) / numbers.total_mib:.0f}%"
    if name == "loading":
        return f" {_progress(numbers)}"
    return ""


def _progress(numbers: CardNumbers) -> str:
    starting = [group for group in numbers.groups if group.phase == Phase.STARTING]
    least = min(starting, key=lambda group: group.progress or 0.0)
    known = "" if least.progress is None else f"{100 * least.progress:.0f}%"
    return f'<span data-progress="{least.replica}">{known}</span>'


def _state_text(name: str, numbers: CardNumbers, say: Mapping[str, str]) -> str:
    text = say[name]
    if name == "stale":
        return f'<span data-since="{numbers.sampled_at}">{text}</span>'
    if name == "pressure":
        return text % f"{100 * (numbers.used_mib or 0) / numbers.total_mib:.1f}%"
    if name == "foreign":
        return text % clock(numbers.foreign_until)
    if name == "notice":
        until = min((group.until for group in numbers.groups if group.until is not None), default="")
        return f'{text} <span data-until="{until}"></span>'
    if name == "loading":
        return f"{text} {_progress(numbers)}"
    return text


def _bar(
    card: Card,
    numbers: CardNumbers,
    lines: list[Line],
    line_pct: int,
    say: Mapping[str, str],
    *,
    dense: bool = False,
    big: bool = False,
) -> str:
    share = MARK_SHARE_DENSE if dense else MARK_SHARE
    groups = "".join(_group(one, share * numbers.total_mib, say, big) for one in lines)
    rest = "".join(
        f'<i class="s-{kind}{" eaten" if kind == "buf" and numbers.eaten else ""}" style="--m:{size}"'
        f' title="{say[f"rest-{kind}"]} {gib(size)} GiB"></i>'
        for kind, size in numbers.rest
    )
    spoken = escape(sentence(card, numbers, lines, say))
    return (
        f'<div class="gk-wl" style="--wl:{line_pct}%"><div class="gk-bar{" big" if big else ""}" role="img"'
        f' aria-label="{spoken}">{groups}{rest}</div></div>'
    )


def _group(one: Line, wide_mib: float, say: Mapping[str, str], big: bool) -> str:
    group, label = one.group, escape(one.label)
    if one.anonymous:
        title = f"{say['other']}{say['comma']}{one.profile}{say['comma']}{gib(group.mib)} GiB"
        return "".join(f'<i class="s-anon" style="--m:{size}" title="{title}"></i>' for _, size in group.segments)
    if group.phase == Phase.ASLEEP:
        title = say["residue"] % {"who": label, "gib": gib(group.mib)}
        return f'<i class="s-asleep {one.hue}" style="--m:{group.mib}" title="{title}"></i>'
    parts = "".join(_part(kind, size, one, wide_mib, big) for kind, size in group.segments)
    title = f"{escape(one.tenant)}{say['comma']}{label}{say['comma']}{gib(group.mib)} GiB"
    return f'<span class="gk-rep {one.hue}" style="--m:{group.mib}" title="{title}">{parts}</span>'


def _part(kind: str, size: int, one: Line, wide_mib: float, big: bool) -> str:
    # not on `load`: half of it has the ground colour, on which the mark cannot be read
    text = escape(one.mark) if kind == "w" and size >= wide_mib > 0 else ""
    if big and text:
        text = f"{text} {gib(size)}"
    progress = f";--p:{100 * (one.group.progress or 0):.0f}%" if kind == "load" else ""
    return f'<i class="s-{kind}" style="--m:{size}{progress}">{text}</i>'


def _item(one: Line, say: Mapping[str, str]) -> str:
    group = one.group
    if one.anonymous:
        return (
            f'<li class="gk-muted"><i class="gk-mk t-0">{say["he"]}</i><span class="nm">{say["other"]}{say["comma"]}'
            f'{one.profile}</span><span class="q">{gib(group.mib)}</span></li>'
        )
    live = ""
    if group.phase in (Phase.READY, Phase.DRAINING):
        live = f' data-replica="{group.replica}"'
    elif group.phase == Phase.STARTING:
        live = f' data-progress="{group.replica}"'
    label = escape(one.label)
    return (
        f'<li><i class="gk-mk {one.hue}" title="{escape(one.tenant)}">{escape(one.mark)}</i>'
        f'<span class="nm" title="{label}">{label}</span><span class="q"{live}>{_doing(group, say)}</span></li>'
    )


def _doing(group: Group, say: Mapping[str, str]) -> str:
    if group.phase == Phase.ASLEEP:
        return f"{icon('moon')} {say['asleep']}"
    if group.phase == Phase.STARTING:
        return say["queued"] if group.progress is None else f"{100 * group.progress:.0f}%"
    if group.until is not None:
        return f'<span class="gk-warn">{say["notice"]}</span>'
    if group.in_flight is None:
        return "—"
    return say["flying"] % group.in_flight if group.in_flight else say["idle"]

"""Card prices: fen an hour by class, from an hour on. A jump needs a second person before it counts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Max, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console import state
from console.accounts.access import Act, allowed, may
from console.costs.views import person
from console.filters import minute, name, yuan
from console.fleet.models import Card, Pool
from console.forms import Styled
from console.money.models import CardHour, Price
from console.services.shapes import card_class

FEN = 100
HOUR = timedelta(hours=1)
WEEK = timedelta(days=7)
PAST = 50
ALWAYS = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Class:
    """One card class: its cards, the price in force now, and those to come or waiting for a second person."""

    key: str
    label: str
    cards: int
    fen_h: int
    coming: tuple[Price, ...]


def classes(now: datetime) -> list[Class]:
    rows = Card.objects.order_by().values_list("card_class").annotate(own=Max("price_fen_h"), n=Sum(1))
    prices = list(Price.objects.select_related("made_by", "approved_by"))
    found = []
    for key, own_fen, n in sorted(rows):
        mine = [price for price in prices if price.card_class == key]
        coming = tuple(price for price in mine if price.starts_at > now or not price.counts)
        found.append(Class(key, str(card_class(key)), n, in_force(mine, now, own_fen), coming))
    return found


def in_force(prices: list[Price], now: datetime, own_fen: int) -> int:
    """Of one class's prices, oldest first; else what the cards came with."""
    counting = [price.fen_h for price in prices if price.counts and price.starts_at <= now]
    return counting[-1] if counting else own_fen


def jumps(old_fen: int, new_fen: int, factor: int) -> bool:
    """Does the price change by more than so many times? From or to nothing it always does."""
    if old_fen == new_fen:
        return False
    low, high = min(old_fen, new_fen), max(old_fen, new_fen)
    return low == 0 or high > low * factor


class PriceForm(Styled, forms.Form):
    card_class = forms.ChoiceField(label=gettext_lazy("卡型"))
    yuan = forms.DecimalField(
        label=gettext_lazy("每卡每小时，元"), min_value=0, max_value=Decimal(100_000), decimal_places=2
    )
    starts_at = forms.DateTimeField(
        label=gettext_lazy("从何时起"),
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("站点时间的整点，最早是当前这一小时；已经入账的小时不改。"),
    )

    def __init__(self, now: datetime, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now = now
        known = [
            (one.key, _("%(class)s，现价 %(yuan)s 元") % {"class": one.label, "yuan": yuan(one.fen_h)})
            for one in classes(now)
        ]
        self.fields["card_class"].choices = known  # type: ignore[attr-defined]

    def clean_starts_at(self) -> datetime:
        starts_at: datetime = self.cleaned_data["starts_at"]
        if starts_at != starts_at.replace(minute=0, second=0, microsecond=0):
            raise forms.ValidationError(_("价格按整点计。"))
        if starts_at < self.now.replace(minute=0, second=0, microsecond=0):
            raise forms.ValidationError(_("最早是当前这一小时。"))
        return starts_at


@allowed(Act.SEE_PRICES)
def prices(request: HttpRequest) -> HttpResponse:
    user = person(request)
    context = {
        "classes": classes(timezone.now()),
        "pools": Pool.objects.select_related("owner").order_by("label"),
        "past": [(price, card_class(price.card_class)) for price in _past()],
        "may_edit": may(user, Act.EDIT_PRICES),
        "may_approve": may(user, Act.APPROVE_PRICES),
        "me": user.pk,
        "factor": state.policy().price_jump_factor,
        "crumbs": [(_("费用"), reverse("costs"))],
    }
    return render(request, "costs/prices.html", context)


def _past() -> QuerySet[Price]:
    """What people set, newest first."""
    rows = Price.objects.filter(starts_at__gt=ALWAYS).select_related("made_by", "approved_by")
    return rows.order_by("-id")[:PAST]


@allowed(Act.EDIT_PRICES)
def price_new(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    start = timezone.localtime(now).replace(minute=0, second=0, microsecond=0) + HOUR
    form = PriceForm(now, request.POST or None, initial={"starts_at": start})
    if request.method == "POST" and form.is_valid():
        price = _made(request, form, now)
        said = _("价格已记下，%(when)s 起生效。") % {"when": minute(price.starts_at)}
        if price.needs_second:
            said = _("改动超过 %(n)d 倍，要另一人复核后才生效。") % {"n": state.policy().price_jump_factor}
        messages.success(request, said)
        return redirect("prices")
    crumbs = [(_("费用"), reverse("costs")), (_("价格"), reverse("prices"))]
    context = {"form": form, "title": _("改价格"), "done": _("保存"), "crumbs": crumbs}
    return render(request, "people/form.html", context)


def _made(request: HttpRequest, form: PriceForm, now: datetime) -> Price:
    """The first price of a class is preceded by what its cards came with: hours before it are booked at that."""
    given = form.cleaned_data
    if not Price.objects.filter(card_class=given["card_class"]).exists():
        came_with = next(one.fen_h for one in classes(now) if one.key == given["card_class"])
        Price.objects.create(card_class=given["card_class"], fen_h=came_with, starts_at=ALWAYS)
    fen = int(given["yuan"] * FEN)
    old = next(one.fen_h for one in classes(given["starts_at"]) if one.key == given["card_class"])
    return Price.objects.create(
        card_class=given["card_class"],
        fen_h=fen,
        starts_at=given["starts_at"],
        needs_second=jumps(old, fen, state.policy().price_jump_factor),
        made_by=person(request),
    )


@allowed(Act.APPROVE_PRICES)
def price_approve(request: HttpRequest, pk: int) -> HttpResponse:
    """A second person's word, with last week's cost under the new price. Never of who made it."""
    row = get_object_or_404(Price, pk=pk, needs_second=True, approved_at=None)
    if request.method == "POST":
        with transaction.atomic():
            waiting = Price.objects.filter(pk=pk, approved_at=None).exclude(made_by=person(request))
            late = max(row.starts_at, timezone.now().replace(minute=0, second=0, microsecond=0))
            done = waiting.update(approved_by=person(request), approved_at=timezone.now(), starts_at=late)
        if done:
            messages.success(request, _("已复核，%(when)s 起生效。") % {"when": minute(late)})
        else:
            messages.warning(request, _("没有复核：自己改的价格要由另一人复核。"))
        return redirect("prices")
    context = {"title": _("复核价格"), "says": says(row), "done": _("复核通过"), "back": reverse("prices")}
    crumbs = [(_("费用"), reverse("costs")), (_("价格"), reverse("prices"))]
    return render(request, "confirm.html", context | {"crumbs": crumbs})


def says(row: Price) -> list[str]:
    """What it would mean, in numbers."""
    hours = CardHour.objects.filter(
        hour__gte=timezone.now() - WEEK, card__in=Card.objects.filter(card_class=row.card_class).values("uuid")
    ).exclude(booked_at=None)
    was = hours.aggregate(fen=Sum("price_fen"))["fen"] or 0
    return [
        _("%(class)s 每卡每小时 %(yuan)s 元，%(when)s 起。")
        % {"class": card_class(row.card_class), "yuan": yuan(row.fen_h), "when": minute(row.starts_at)},
        _("近七日这一卡型共 %(was)s 元，按新价会是 %(new)s 元。")
        % {"was": yuan(was), "new": yuan(hours.count() * row.fen_h)},
        _("%(who)s 提出。") % {"who": name(row.made_by)},
    ]


class OwnerForm(Styled, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Pool
        fields = ("owner",)
        labels = {"owner": gettext_lazy("归谁")}
        help_texts = {"owner": gettext_lazy("驱动保留、外部、缓冲和空闲由它付；留空：信息中心。下一个入账的小时起算。")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["owner"].empty_label = _("信息中心")  # type: ignore[attr-defined]


@allowed(Act.EDIT_PRICES)
def pool_owner(request: HttpRequest, pk: int) -> HttpResponse:
    """Who pays what nobody uses of a pool."""
    row = get_object_or_404(Pool, pk=pk)
    form = OwnerForm(request.POST or None, instance=row)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("已保存。"))
        return redirect("prices")
    crumbs = [(_("费用"), reverse("costs")), (_("价格"), reverse("prices"))]
    context = {"form": form, "title": _("%s由谁付") % row.label, "done": _("保存"), "crumbs": crumbs}
    return render(request, "people/form.html", context)

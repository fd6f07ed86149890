"""The page of advice: what waits for a click, what is only observed, what is about to happen; and its buttons."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console import state
from console.accounts.access import Act, allowed, may
from console.accounts.models import User
from console.advising import leave, words
from console.advising.gain import gains
from console.advising.modes import ModeForm, consequences, set_mode
from console.catalog.models import Order
from console.fleet.models import Pool
from console.journal.models import Notice
from console.wire import hurry
from scheduler.world import Act as Ordered

PAGE_ROWS = 50


@allowed(Act.SEE_ADVICE)
def page(request: HttpRequest) -> HttpResponse:
    user = _person(request)
    known, now = words.labels(user), timezone.now()
    shown = Paginator(words.standing(user), PAGE_ROWS).get_page(request.GET.get("page"))
    notices = list(words.open_notices(user)[:PAGE_ROWS])
    context = {
        "lines": [words.line(row, known, user, now) for row in shown],
        "shown": shown,
        "notices": [words.told(row, known, user) for row in notices],
        "staff": words.staff(user),
        "may_set": may(user, Act.SET_POOL_MODE),
        "pools": list(Pool.objects.order_by("name")) if words.staff(user) else [],
        "gains": gains(now, state.policy()) if words.staff(user) else [],
    }
    return render(request, "journal/advice.html", context)


@allowed(Act.SEE_ADVICE)
def badge(request: HttpRequest) -> HttpResponse:
    """The number beside the menu's word; nothing where nothing waits."""
    return render(request, "journal/_badge.html", {"count": words.count(_person(request))})


@allowed(Act.APPROVE_ADVICE)
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    """One click lets it act: the next plan looks again, and does it only if it still wants it."""
    user, now, rules = _person(request), timezone.now(), state.policy()
    row = get_object_or_404(words.standing(user), pk=pk)
    if request.method == "POST":
        if leave.give(row, user, now, rules):
            hurry(row.service.name if row.service is not None else "")
            messages.success(request, _("已批。下一轮调度重新核对，仍然需要就做。"))
        else:
            messages.error(request, _("这条建议刚刚变了，什么也没有做。"))
        return redirect("advice")
    line = words.line(row, words.labels(user), user, now)
    card = _("%s 号卡") % line.card if line.card else ""
    what = _("，").join(part for part in (line.verb, line.service, card) if part)
    says = [
        _("%(what)s。原因：%(reason)s。") % {"what": what, "reason": line.reason},
        line.numbers,
        _("下一轮调度按那时的情形重新核对，仍然需要才做；%(n)s 分钟内没有做成，就要重新批。")
        % {"n": round(rules.advice_approved_s / 60)},
    ]
    return _ask(request, _("批准这条建议"), says, _("批准"))


@allowed(Act.SET_POOL_MODE)
def mode(request: HttpRequest, pk: int) -> HttpResponse:
    """Observe, suggest, enforce: pool by pool, and back."""
    pool = get_object_or_404(Pool, pk=pk)
    form = ModeForm(request.POST or None, initial={"mode": pool.mode})
    if request.method == "POST" and form.is_valid():
        if set_mode(pool, form.cleaned_data["mode"], _person(request)):
            hurry("")
            messages.success(request, _("已改。下一轮调度按新的模式。"))
        else:
            messages.info(request, _("没有什么不同。"))
        return redirect("advice")
    context = {
        "title": _("%(pool)s：让调度自己做多少") % {"pool": pool.label},
        "says": consequences(pool),
        "form": form,
        "done": _("改模式"),
        "crumbs": [(pgettext("several", "建议"), reverse("advice"))],
    }
    return render(request, "people/form.html", context)


@allowed(Act.KEEP)
def keep(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes a notice back, or gives none for a while."""
    user, now, rules = _person(request), timezone.now(), state.policy()
    rows = words.open_notices(user).filter(kind=Notice.Kind.RECLAIM, replica__isnull=False)
    row = get_object_or_404(rows.select_related("replica"), pk=pk)
    if request.method == "POST" and row.service is not None:
        until = now + timedelta(seconds=rules.order_lapses_s)
        Order.objects.filter(replica=row.replica, done_at=None).update(done_at=now, outcome="replaced")
        Order.objects.create(service=row.service, replica=row.replica, act=Ordered.KEEP, by=user, at=now, until=until)
        hurry(row.service.name)
        messages.success(request, _("已保留。"))
        return redirect("advice")
    says = [
        words.told(row, words.labels(user), user).text,
        _("保留之后 %(n)s 分钟内不会因为空闲或让位被收回；要更久，请申请白名单。")
        % {"n": round(rules.left_alone_s / 60)},
    ]
    return _ask(request, _("保留%(who)s") % {"who": row.service.label if row.service else ""}, says, _("保留"))


def _ask(request: HttpRequest, title: str, says: list[str], done: str) -> HttpResponse:
    context: dict[str, Any] = {
        "title": title,
        "says": [line for line in says if line],
        "done": done,
        "back": reverse("advice"),
        "crumbs": [(pgettext("several", "建议"), reverse("advice"))],
    }
    return render(request, "confirm.html", context)


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user

"""Hosts: list, one host, and its buttons. Each button asks first, with the consequence in numbers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.accounts.access import Act, allowed, may
from console.fleet.models import ForeignUse, Host
from console.hosts import rows
from console.hosts.forms import ForeignForm, MaintenanceForm
from console.wire import hurry
from scheduler.world import Phase

#: What the form proposes; a person changes it.
USUAL_MAINTENANCE = timedelta(hours=2)


@allowed(Act.SEE_HOSTS)
def hosts(request: HttpRequest) -> HttpResponse:
    lines = rows.lines(Host.objects.all())
    context = {
        "lines": lines,
        "cards": sum(line.cards for line in lines),
        "quiet": sum(line.standing.tone == "bad" for line in lines),
    }
    return render(request, "hosts/hosts.html", context)


@allowed(Act.SEE_HOSTS)
def host(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Host, pk=pk)
    (line,), seats = rows.lines(Host.objects.filter(pk=row.pk)), rows.seats(row)
    rules, now = state.policy(), timezone.now()
    by_card = rows.by_card(seats)
    return render(
        request,
        "hosts/host.html",
        {
            "host": row,
            "line": line,
            "cards": [(card, by_card[card.pk]) for card in row.cards.select_related("pool")],
            "seats": seats,
            "late": row.maintenance_at is not None and row.maintenance_at < now and bool(seats),
            "gone": max(0, row.maintenance_of - len(seats)),
            "waiting": sum(one.owed and one.phase is Phase.READY for one in seats),
            "foreign": row.foreign_uses.filter(ends_at__gt=now).select_related("card"),
            "now": now,
            "operates": may(request.user, Act.OPERATE_HOSTS),
            "may_be_gone": line.age_s is None or line.age_s > rules.lost_s,
            "skewed": abs(row.skew_s) > SKEW_SHOWN_S,
        },
    )


SKEW_SHOWN_S = 1.0  # wants expire by the host's clock: control warns from the same


#: Does it and says what was done; None: the host is not any more as it was shown.
Deed = Callable[[Host], str | None]


def _asks(request: HttpRequest, pk: int, template: str, act: Deed, more: dict[str, Any] | None = None) -> HttpResponse:
    """A page that says what will happen, and on POST the deed."""
    row = get_object_or_404(Host, pk=pk)
    if request.method == "POST":
        done = act(row)
        if done is None:
            messages.warning(request, _("%s 已经不是刚才的样子，什么也没有改") % row)
        else:
            messages.success(request, done)
        return redirect("host", pk=pk)
    seats = rows.seats(row)
    context = {"host": row, "replicas": len(seats), "calls": rows.in_flight(seats), "seats": seats, **(more or {})}
    return render(request, template, context)


@allowed(Act.OPERATE_HOSTS)
def cordon(request: HttpRequest, pk: int) -> HttpResponse:
    def act(row: Host) -> str | None:
        wanted = request.POST.get("cordoned") == "1"
        if not Host.objects.filter(pk=row.pk, cordoned=not wanted).update(
            cordoned=wanted, maintenance_at=None, maintenance_of=0
        ):
            return None
        return (_("%s 已停止调度，新实例不再上来") if wanted else _("%s 已恢复调度")) % row

    return _asks(request, pk, "hosts/cordon.html", act)


@allowed(Act.OPERATE_HOSTS)
def maintenance(request: HttpRequest, pk: int) -> HttpResponse:
    """Nothing new comes, and every replica leaves: replaced first where that is owed, cut at the deadline only."""
    start = timezone.localtime(timezone.now() + USUAL_MAINTENANCE)
    form = MaintenanceForm(request.POST or None, initial={"until": start})
    if request.method == "POST" and not form.is_valid():
        return render(request, "hosts/maintenance.html", _plan(get_object_or_404(Host, pk=pk), form))

    def act(row: Host) -> str | None:
        until, copies = form.cleaned_data["until"], len(rows.seats(row))
        if not empty(row, until, copies):
            return None
        hurry()
        return _("%(host)s 进入维护：请 %(n)d 个实例离开，最迟 %(until)s") % {
            "host": row,
            "n": copies,
            "until": f"{timezone.localtime(until):%m-%d %H:%M}",
        }

    return _asks(request, pk, "hosts/maintenance.html", act, _owed(pk) | {"form": form})


def _plan(row: Host, form: MaintenanceForm) -> dict[str, Any]:
    seats = rows.seats(row)
    context = {"host": row, "form": form, "replicas": len(seats), "calls": rows.in_flight(seats), "seats": seats}
    return context | _owed(row.pk)


def _owed(pk: int) -> dict[str, Any]:
    """How many of its copies wait for a replacement before they leave."""
    return {"owed": sum(one.owed for one in rows.seats(get_object_or_404(Host, pk=pk)))}


@allowed(Act.OPERATE_HOSTS)
def maintenance_end(request: HttpRequest, pk: int) -> HttpResponse:
    """Called off, or done: the host takes new copies again; what still drains goes back to work."""

    def act(row: Host) -> str | None:
        planned = Host.objects.filter(pk=row.pk, maintenance_at__isnull=False)
        if not planned.update(maintenance_at=None, maintenance_of=0, cordoned=False):
            return None
        hurry()
        return _("%s 结束维护，恢复调度") % row

    return _asks(request, pk, "hosts/maintenance_end.html", act)


def empty(row: Host, until: datetime, copies: int) -> bool:
    """Cordon the host and have it empty by then: the planner moves each copy (scheduler.maintenance).

    A new deadline may replace an earlier one. False: the host is gone.
    """
    there = Host.objects.filter(pk=row.pk, declared_gone=False)
    return there.update(cordoned=True, maintenance_at=until, maintenance_of=copies) == 1


@allowed(Act.OPERATE_HOSTS)
def storage(request: HttpRequest, pk: int) -> HttpResponse:
    """Where the host reads weights from: load estimates go by it."""

    def act(row: Host) -> str | None:
        wanted = request.POST.get("storage")
        if wanted not in Host.Storage.values or wanted == row.storage:
            return None
        if not Host.objects.filter(pk=row.pk, storage=row.storage).update(storage=wanted):
            return None
        return _("%(host)s 的权重在%(storage)s") % {"host": row, "storage": Host.Storage(wanted).label}

    return _asks(request, pk, "hosts/storage.html", act)


@allowed(Act.OPERATE_HOSTS)
def gone(request: HttpRequest, pk: int) -> HttpResponse:
    """A lost host is declared gone, or back. Only while it is silent: what reports is not gone."""

    def act(row: Host) -> str | None:
        wanted = request.POST.get("gone") == "1"
        silent = timezone.now() - timedelta(seconds=state.policy().lost_s)
        here = Host.objects.filter(pk=row.pk, declared_gone=not wanted)
        if wanted:
            here = here.exclude(seen_at__gte=silent)
        if not here.update(declared_gone=wanted):
            return None
        return (_("已宣告 %s 不再回来") if wanted else _("%s 重新算在内")) % row

    return _asks(request, pk, "hosts/gone.html", act)


@allowed(Act.OPERATE_HOSTS)
def foreign(request: HttpRequest, pk: int) -> HttpResponse:
    """Enter a foreign use of a card or of the whole host."""
    row = get_object_or_404(Host, pk=pk)
    now = timezone.localtime()
    start = {"starts_at": now, "ends_at": now + timedelta(hours=8)}
    form = ForeignForm(row, request.POST or None, initial=start)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("已记入日历，到时新实例不再上来"))
        return redirect("host", pk=pk)
    return render(request, "hosts/foreign.html", {"host": row, "form": form})


@allowed(Act.OPERATE_HOSTS)
def foreign_end(request: HttpRequest, pk: int, use: int) -> HttpResponse:
    """Strike a foreign use out of the calendar."""
    row = get_object_or_404(ForeignUse.objects.select_related("host", "card"), pk=use, host=pk)
    if request.method == "POST":
        row.delete()
        messages.success(request, _("已从日历里划掉"))
        return redirect("host", pk=pk)
    return render(request, "hosts/foreign_end.html", {"host": row.host, "use": row})

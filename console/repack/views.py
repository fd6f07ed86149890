"""The repack page and its buttons. What a move does stands in its line: the buttons need no second question."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from console import state
from console.accounts.access import Act, allowed, may
from console.fleet.models import Pool
from console.jobs.models import Job
from console.repack import page as shown
from console.repack import proposals, searches
from console.repack.models import Move, Proposal
from scheduler import repack_cpsat


@allowed(Act.SEE_REPACK)
def page(request: HttpRequest) -> HttpResponse:
    rules = state.policy()
    context = {
        "pools": shown.pool_lines(),
        "open": shown.open_proposals(),
        "history": shown.history(),
        "exact": repack_cpsat.available(),
        "begins": _clock(rules.repack_from_min),
        "ends": _clock(rules.repack_until_min),
        "operates": may(request.user, Act.REPACK),
    }
    return render(request, "repack/page.html", context)


def _clock(minute: int) -> str:
    return f"{minute // 60:02d}:{minute % 60:02d}"


@allowed(Act.REPACK)
@require_POST
def search(request: HttpRequest, pk: int) -> HttpResponse:
    pool = get_object_or_404(Pool, pk=pk)
    if searches.ask(pool, request.user.pk):
        messages.success(request, _("正在为 %s 找方案，几秒后写在这一页。") % pool)
    else:
        messages.warning(request, _("已经在为 %s 找方案。") % pool)
    return redirect("repack")


@allowed(Act.REPACK)
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    job = get_object_or_404(Job, pk=pk, kind=searches.KIND)
    if searches.cancel(job.pk):
        messages.success(request, _("已请它停下；已经找到的方案留着。"))
    return redirect("repack")


@allowed(Act.REPACK)
@require_POST
def approve(request: HttpRequest, pk: int) -> HttpResponse:
    return _decide(request, pk, Move.Status.APPROVED)


@allowed(Act.REPACK)
@require_POST
def skip(request: HttpRequest, pk: int) -> HttpResponse:
    return _decide(request, pk, Move.Status.SKIPPED)


def _decide(request: HttpRequest, pk: int, status: Move.Status) -> HttpResponse:
    move = get_object_or_404(Move, pk=pk)
    if proposals.decide(move, status, request.user, timezone.now()):  # type: ignore[arg-type]
        said = _("第 %d 步已批准，到整理时段再做。") if status is Move.Status.APPROVED else _("第 %d 步已略过。")
        messages.success(request, said % move.number)
    else:
        messages.warning(request, _("第 %d 步已经不是刚才的样子，什么也没有改。") % move.number)
    return redirect("repack")


@allowed(Act.REPACK)
@require_POST
def approve_all(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Proposal, pk=pk)
    now = timezone.now()
    done = sum(proposals.decide(move, Move.Status.APPROVED, request.user, now) for move in row.moves.all())  # type: ignore[arg-type]
    messages.success(request, _("已批准 %d 步，到整理时段按次序做，一步失败就停。") % done)
    return redirect("repack")

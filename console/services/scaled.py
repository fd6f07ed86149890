"""How far a service is scaled and why, in sentences: what a copy carries, what is needed now, what was done last."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from console import state
from console.catalog.models import Scaling, Service
from console.looks import known_of
from scheduler import looks
from scheduler import world as core
from scheduler.policy import Policy
from scheduler.scaling import carriers
from scheduler.signals import capacity

AT = "%m-%d %H:%M"


def lines(service: Service, rules: Policy) -> list[str]:
    """Nothing for a service of one copy, or one that nobody looked at yet. One query."""
    row = Scaling.objects.filter(service=service).first() if service.max_replicas > 1 else None
    if row is None:
        return []
    rules, now = rules.of_service(service.name), time.time()
    known = known_of(row)
    asked = replace(state.claim_only(service, rules), max_num_seqs=service.max_num_seqs, scaling=known)
    each = capacity(asked, rules, now)
    learned = any(day.best >= each for day in known.days)
    values = {"calls": f"{each:.1f}", "pct": rules.scale_load_pct}
    text = _("一个实例在目标时间内承载约 %(calls)s 个并发调用（学得），按 %(pct)s%% 计。")
    first = _("一个实例在目标时间内承载约 %(calls)s 个并发调用（初始值），按 %(pct)s%% 计。")
    return [(text if learned else first) % values, *_now(asked, known, rules, now), *_past(row, rules)]


def _now(asked: core.Service, known: looks.Scaling, rules: Policy, now: float) -> list[str]:
    """The minute that runs: what is in hand, and how many copies carry it."""
    if not known.minutes or now - known.looked_at > looks.OLD_S:
        return []
    minute = known.minutes[-1]
    calls = (minute.running + minute.waiting) / minute.looks
    needed = max(1, carriers(calls, asked, rules, now))
    values = {"running": f"{minute.running / minute.looks:.1f}", "waiting": f"{minute.waiting / minute.looks:.1f}"}
    return [
        _("这一分钟平均处理 %(running)s 个、排队 %(waiting)s 个，要 %(needed)s 个实例。") % {**values, "needed": needed}
    ]


def _past(row: Scaling, rules: Policy) -> list[str]:
    found = []
    if row.raised_at is not None:
        raised = timezone.localtime(row.raised_at).strftime(AT)
        values = {"at": raised, "to": row.raised_to, "waiting": row.raised_waiting}
        found.append(_("%(at)s 扩到 %(to)s 个实例，当时排队 %(waiting)s 个。") % values)
    if row.came_from_at is not None and row.came_from:
        went = timezone.localtime(row.came_from_at)
        until = went + timedelta(seconds=rules.scale_memory_s)
        values = {"at": went.strftime(AT), "from": row.came_from, "until": until.strftime(AT)}
        found.append(_("%(at)s 缩容前有 %(from)s 个实例；%(until)s 之前再扩，一步回到它附近。") % values)
    return found

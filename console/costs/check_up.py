"""The check-up page: symptoms in words, with what would end each, as a button or a link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.access import Act, allowed, may, own, tenant_of
from console.accounts.models import User
from console.catalog.models import Service
from console.costs.views import person
from console.filters import ago, gib, yuan
from console.money.models import Symptom
from scheduler.symptoms import Cure, Kind

SHOWN = 200  # open ones; more would not be read
NAMED = 8  # services of one symptom
PAST = 20

TITLES: Mapping[Kind, Any] = {
    Kind.FULL_IDLE: gettext_lazy("显存满，请求少"),
    Kind.FIRST_CALL: gettext_lazy("每天第一个调用慢"),
    Kind.HOLD_CAP: gettext_lazy("调用总在同一时长超时"),
    Kind.LOAD_FAILED: gettext_lazy("装载失败后再没起来"),
    Kind.SWAPPING: gettext_lazy("来回换入换出"),
    Kind.NEIGHBOUR: gettext_lazy("忙的慢，旁边的闲"),
}
#: The figures of each kind, as one sentence.
SAYS: Mapping[Kind, Any] = {
    Kind.FULL_IDLE: gettext_lazy(
        "%(cards)s 张卡显存平均用了 %(used_pct)s%%，芯片负载只有 %(util_pct)s%%。"
        "%(services)s 个业务醒着却很少被调用，改为闲时休眠可还 %(gain_gib)s GiB。"
    ),
    Kind.FIRST_CALL: gettext_lazy(
        "近七日里有 %(days)s 天（共 %(of_days)s 天）第一个调用在等装载，平均等 %(wait_s)s 秒。"
    ),
    Kind.HOLD_CAP: gettext_lazy("近一日 %(calls)s 个调用里有 %(capped)s 个等满 %(cap_s)s 秒被拒。"),
    Kind.LOAD_FAILED: gettext_lazy(
        "%(failed)s前装载失败（%(fault)s），失败 %(failures)s 次，现在没有可用的实例，%(calls)s 个调用在等。"
    ),
    Kind.SWAPPING: gettext_lazy("近一小时 %(calls)s 个调用引起 %(loads)s 次装载，另有 %(waits)s 次因防抖而等或被拒。"),
    Kind.NEIGHBOUR: gettext_lazy(
        "P99 %(p99_ms)s 毫秒，目标 %(target_ms)s 毫秒，%(waiting)s 个在排队；"
        "同卡的邻居 %(idle)s没有调用，占着 %(held_gib)s GiB。"
    ),
}
#: What is added where it is known.
MORE: Mapping[str, Any] = {
    "hour": gettext_lazy("通常在 %(hour)s 点。"),
    "load_s": gettext_lazy("实际装载要 %(load_s)s 秒。"),
    "slot_fen_h": gettext_lazy("多留一个位子每小时 %(slot)s 元。"),
    "tier_fen_h": gettext_lazy("升一档每小时 %(tier)s 元。"),
}
CURES: Mapping[Cure, Any] = {
    Cure.WARM: gettext_lazy("改为闲时休眠"),
    Cure.AHEAD: gettext_lazy("保留到…"),
    Cure.LONGER_HOLD: gettext_lazy("延长挂起时间"),
    Cure.RETRY: gettext_lazy("再装载一次"),
    Cure.SLOT: gettext_lazy("多留一个实例"),
    Cure.TIER_UP: gettext_lazy("升一档"),
    Cure.DRAIN: gettext_lazy("请邻居让出"),
    Cure.REPLICA: gettext_lazy("加一个实例"),
}


@dataclass(frozen=True, slots=True)
class Remedy:
    word: str
    url: str
    of: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One symptom as printed."""

    title: str
    about: str
    url: str
    text: str
    others: list[str]
    remedies: list[Remedy]
    since: datetime
    closed_at: datetime | None


def _edit(service: str, replica: int | None) -> tuple[Act, str]:
    return Act.EDIT_SERVICE, reverse("service-edit", args=[service])


def _keep(service: str, replica: int | None) -> tuple[Act, str]:
    return Act.FILE_REQUESTS, reverse("service-whitelist", args=[service])


def _preload(service: str, replica: int | None) -> tuple[Act, str]:
    return Act.ORDER, reverse("service-preload", args=[service])


def _drain(service: str, replica: int | None) -> tuple[Act, str]:
    return Act.ORDER, reverse("service-replica", args=[service, replica or 0, "drain"])


#: Where each cure is done: who may, and the address.
WAYS: Mapping[Cure, Callable[[str, int | None], tuple[Act, str]]] = {
    Cure.WARM: _edit,
    Cure.AHEAD: _keep,
    Cure.LONGER_HOLD: _edit,
    Cure.RETRY: _preload,
    Cure.SLOT: _edit,
    Cure.TIER_UP: _edit,
    Cure.DRAIN: _drain,
    Cure.REPLICA: _preload,
}


@allowed(Act.SEE_CHECK_UP)
def page(request: HttpRequest) -> HttpResponse:
    user = person(request)
    labels = dict(own(Service.objects.all(), user).values_list("name", "label"))
    rows = seen_by(user)
    context = {
        "open": [line(row, user, labels) for row in rows.filter(closed_at=None)[:SHOWN]],
        "past": [line(row, user, labels) for row in rows.exclude(closed_at=None).order_by("-closed_at")[:PAST]],
        "kinds": list(TITLES.values()),
    }
    return render(request, "costs/check_up.html", context)


def seen_by(user: User) -> Any:
    """Staff see all; a tenant's people those of its services."""
    rows = Symptom.objects.select_related("service__tenant", "pool")
    return rows if tenant_of(user) is None else own(rows, user, "service__tenant_id")


def line(row: Symptom, user: User, labels: Mapping[str, str]) -> Line:
    kind = Kind(row.kind)
    about, url = ("", "")
    if row.service is not None:
        about, url = row.service.label, reverse("service", args=[row.service.name])
    elif row.pool is not None:
        about = row.pool.label
    return Line(
        str(TITLES[kind]), about, url, text(row), others(row, labels), remedies(row, user, labels), row.opened_at,
        row.closed_at,
    )  # fmt: skip


def text(row: Symptom) -> str:
    """Its figures in a sentence or two."""
    numbers = dict(row.numbers)
    numbers["gain_gib"] = gib(numbers.get("gain_mib"))
    numbers["held_gib"] = gib(numbers.get("held_mib"))
    numbers["idle"] = ago(numbers.get("idle_s"))
    numbers["failed"] = ago(numbers.get("failed_s"))
    numbers["slot"], numbers["tier"] = yuan(numbers.get("slot_fen_h")), yuan(numbers.get("tier_fen_h"))
    said = [str(SAYS[Kind(row.kind)]) % numbers]
    said += [str(words) % numbers for key, words in MORE.items() if key in row.numbers]
    return " ".join(said)


def others(row: Symptom, labels: Mapping[str, str]) -> list[str]:
    """Whom it names besides; another company's service has a size and no name."""
    found = []
    for name, mib in row.others[:NAMED]:
        label = labels.get(name, _("其他公司的业务"))
        found.append(_("%(who)s %(gib)s GiB") % {"who": label, "gib": gib(mib)} if mib else label)
    if len(row.others) > NAMED:
        found.append(_("另有 %(n)d 个") % {"n": len(row.others) - NAMED})
    return found


def remedies(row: Symptom, user: User, labels: Mapping[str, str]) -> list[Remedy]:
    """Buttons for what the person may do; each leads to a page that first says what would happen."""
    own_name = row.service.name if row.service is not None else ""
    found = []
    for cure, service, replica in row.remedies[:NAMED]:
        name = service or own_name
        act, url = WAYS[Cure(cure)](name, replica) if name in labels else (None, "")
        if act is not None and may(user, act):
            found.append(Remedy(str(CURES[Cure(cure)]), url, labels[name] if service else ""))
    return found

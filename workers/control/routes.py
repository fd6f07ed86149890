"""What gateways act on: which replicas answer for a service, and what to tell those who wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from console.catalog.models import Service, metric_of
from console.fleet.models import Host
from console.money import seam
from console.same_rows import Standing
from console.unchanged import Unchanged
from scheduler import call_budget
from scheduler.admission import Admission, admission
from scheduler.call_budget import Barred
from scheduler.decision import Decision
from scheduler.estimate import loads_by_host
from scheduler.hold import COLD, LOADING, READY, Outlook, hold_cap_s, outlook, rest_of, serves
from scheduler.kv import tightened
from scheduler.policy import Policy
from scheduler.world import Replica, World
from scheduler.world import Service as CoreService
from workers.control import bounds, words

NOBODY = Barred()
_known: Unchanged[dict[str, Any]] = Unchanged()
#: Tuples with names: a thousand models, each with two others, take ten times as long.
ROWS = Standing(
    lambda: Service.objects.order_by("pk"),
    "pk", "name", "label", "tenant_id", "tenant__slug", "audience", "model__task", "model__kv_bytes_per_token",
    "p99_metric", "cards_per_replica", "max_prompt_tokens", "max_total_tokens", "long_from_tokens", "long_share_pct",
    "long_lane__tenant_id", "long_lane__name", "fallback__name",
)  # fmt: skip


AUDIENCES = Standing(lambda: Service.audience_tenants.through.objects.order_by(), "pk", "service_id", "tenant__slug")


def routed(world: World, policy: Policy, now: float) -> frozenset[int]:
    """Replicas that callers may be sent to: ready, wanted so, and heard of by their agent or by a gateway."""
    return frozenset(replica.id for replica in world.replicas.values() if serves(world, policy, replica, now))


class Routes:
    """Builds the blob and knows whether it changed. One per leader: revisions go up across holders by the token."""

    def __init__(self, token: int) -> None:
        self.token = token
        self.count = 0
        self.last: bytes = b""

    def next(
        self,
        version: int,
        services: dict[str, Any],
        hosts: dict[str, Any],
        now: float,
        again: bool,
        barred: Barred = NOBODY,
        limits: Mapping[str, Any] | None = None,
    ) -> tuple[int, bytes] | None:
        """(revision, body) when the content changed or `again`; else None."""
        said = {"version": version, "services": services, "hosts": hosts, "barred": barred, **(limits or {})}
        content = msgspec.json.encode(said)
        if content == self.last and not again:
            return None
        self.last = content
        self.count += 1
        rev = (self.token << 32) | self.count
        return rev, msgspec.json.encode({"rev": rev, "at": now, **said})


def barred(now: float) -> Barred:
    """Whose call budget is spent, and until when."""
    return call_budget.barred(seam.call_budgets(), now)


def hosts() -> dict[str, Any]:
    rows = Host.objects.exclude(door_url="").values_list("name", "door_url")
    return {name: {"door": url} for name, url in rows}


def services(
    world: World,
    policy: Policy,
    decisions: Sequence[Decision],
    advised: Mapping[str, str],
    on: frozenset[int],
    now: float,
) -> dict[str, Any]:
    """The blob's `services`: by name, everything a gateway tells or does."""
    replicas: dict[str, list[dict[str, Any]]] = defaultdict(list)
    notice: dict[str, float] = {}
    for replica_id in sorted(on):
        replica = world.replicas[replica_id]
        replicas[replica.service].append(
            {
                "id": replica.id,
                "host": world.cards[replica.cards[0]].host,
                **bounds.of_replica(world, policy, replica, now),
            }
        )
        if replica.drain_at is not None:
            notice[replica.service] = min(replica.drain_at, notice.get(replica.service, replica.drain_at))
    copies: dict[str, list[Replica]] = defaultdict(list)
    for replica in world.replicas.values():
        copies[replica.service].append(replica)
    ours: dict[str, list[Decision]] = defaultdict(list)
    for decision in decisions:
        ours[decision.service].append(decision)
    blob = {}
    tight, named, loads = tightened(decisions), _named(), loads_by_host(world)
    for row in ROWS.all():
        service, name = world.services[row.name], row.name
        plain = _plain(row, service, named.get(row.pk, ()), policy)
        if name not in copies and name not in ours and name not in advised:
            blob[name] = plain  # nobody has it, nobody waits for it
            continue
        served = name in replicas  # what `outlook` would ask of each copy once more
        view = Outlook(READY) if served else outlook(world, policy, service, ours[name], now, copies[name], loads)
        blob[name] = {
            **plain,
            **_view(_unmoved(view, world, name) if name in advised else view, advised.get(name, "")),
            "notice": name in notice,
            "notice_at": notice.get(name),
            **_room(admission(world, policy, service, copies[name], now, ours[name], loads) if served else None),
            **bounds.of_service(row, replicas[name], world, policy, tight=name in tight),
            "replicas": replicas[name],
        }
    return blob


def _plain(row: Any, service: CoreService, named: Sequence[str], policy: Policy) -> dict[str, Any]:
    """What is said of a service that has no copy and for which nothing is done. Shared: nobody may write into it."""
    caps = (hold_cap_s(policy, service), policy.of_service(service.name).hold_stream_s)
    return _known.of(row.pk, (row, named, caps), partial(_cold, row, named, caps))


def _cold(row: Any, named: Sequence[str], caps: tuple[float, float]) -> dict[str, Any]:
    return {
        "label": row.label,
        "tenant": row.tenant__slug,
        "audience": _audience(row, named),
        "engine_model": row.name,
        "task": row.model__task,
        **_view(Outlook(COLD), ""),
        "p99_metric": metric_of(row.p99_metric, row.model__task),
        "hold_cap_s": caps[0],
        "hold_stream_s": caps[1],
        "notice": False,
        "notice_at": None,
        **_room(None),
        **bounds.said_of(row),
        "fallback": row.fallback__name,
        "replicas": [],
    }


def _room(limit: Admission | None) -> dict[str, Any]:
    """How many calls all gateways together may have in hand, and when to come back who is one too many."""
    if limit is None:
        return {"room": None, "room_retry_s": None}
    return {"room": limit.calls, "room_retry_s": limit.retry_after_s}


def _unmoved(view: Outlook, world: World, service: str) -> Outlook:
    """Nothing loads until somebody lets it: never told as loading."""
    rest = rest_of(world, service)
    return view if rest is None else Outlook(rest)


def _named() -> dict[int, list[str]]:
    """Tenants that a service's audience names, by its id."""
    found: dict[int, list[str]] = defaultdict(list)
    for _link, pk, slug in AUDIENCES.all():
        found[pk].append(slug)
    return found


def _audience(row: Any, named: Sequence[str]) -> list[str]:
    if row.audience == Service.Audience.GROUP:
        return ["*"]
    return sorted({row.tenant__slug, *(named if row.audience == Service.Audience.NAMED else ())})


def _view(view: Outlook, advised: str) -> dict[str, Any]:
    refusal = words.refusal(view.refusal)
    if advised and view.state not in (READY, LOADING):
        refusal = words.advice(advised)
    return {
        "state": view.state,
        "stage": view.stage,
        "eta_s": _tenths(view.eta_s),
        "low_s": _tenths(view.low_s),
        "refusal": refusal,
    }


def _tenths(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)

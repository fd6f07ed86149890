"""Builders with keywords and sensible defaults, so that a table test stays on one line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler.draft import Draft
from scheduler.policy import Policy
from scheduler.world import (
    Card,
    Claim,
    Demand,
    Failure,
    Host,
    LoadTimes,
    Phase,
    Profile,
    Replica,
    Service,
    Tier,
    Want,
    World,
)

NOW = 1_000_000.0
#: Ready, draining and asleep replicas of the builders were loaded this long ago: past every minimum stay.
LONG = 10_000.0
#: A load takes 8 s beside reading: round numbers for the arithmetic of tests.
POLICY = Policy(load_init_s=6.0, load_warm_up_s=2.0)

WANT_OF = {
    Phase.STARTING: Want.READY,
    Phase.READY: Want.READY,
    Phase.DRAINING: Want.DRAINED,
    Phase.ASLEEP: Want.ASLEEP,
    Phase.STOPPED: Want.STOPPED,
    Phase.FAILED: Want.READY,
}


def a_card(id: str = "c1", host: str = "h1", total: int = 81920, reserved: int = 600, **more: Any) -> Card:
    """80 GB, nothing on it but the driver's reserve."""
    more.setdefault("unavailable_mib", reserved)
    more.setdefault("card_class", "A")
    more.setdefault("index", 0)
    return Card(id=id, host=host, total_mib=total, driver_reserved_mib=reserved, **more)


def a_host(name: str = "h1", **more: Any) -> Host:
    more.setdefault("seen_at", NOW)
    more.setdefault("memory_mib", 512 * 1024)
    return Host(name, **more)


def a_service(
    name: str = "s", weights: int = 8000, kv: int = 4000, headroom: int = 400, overhead: int = 600, **more: Any
) -> Service:
    """An on-demand one: cold, online, no minimum."""
    more.setdefault("tenant", "t")
    more.setdefault("profile", Profile.ONLINE)
    more.setdefault("tier", Tier.COLD)
    return Service(name=name, claim=Claim(weights, kv, headroom, overhead), **more)


def held(count: int = 1, streams: int = 0, since: float = NOW, **more: Any) -> Demand:
    return Demand(held=count, held_streams=streams, held_since=since, **more)


def a_replica(id: int = 1, service: str = "s", card: str = "c1", phase: Phase = Phase.READY, **more: Any) -> Replica:
    """Idle and long loaded, unless told otherwise."""
    more.setdefault("want", WANT_OF[phase])
    more.setdefault("kv_granted_mib", 4000)
    since = NOW if phase is Phase.STARTING else NOW - LONG
    more.setdefault("since", since)
    more.setdefault("want_since", since)
    if phase in (Phase.READY, Phase.DRAINING):
        more.setdefault("in_flight", 0)
        more.setdefault("loaded_at", NOW - LONG)
    return Replica(id=id, service=service, cards=(card,), phase=phase, **more)


def a_world(
    *things: Card | Host | Service | Replica,
    load_s: dict[tuple[str, str], Iterable[float]] | None = None,
    wake_s: dict[tuple[str, str], Iterable[float]] | None = None,
    **more: Any,
) -> World:
    """A world of these things; hosts that cards name are made up, one 80 GB card when no card is given."""
    cards = [t for t in things if isinstance(t, Card)] or [a_card()]
    hosts = {t.name: t for t in things if isinstance(t, Host)}
    for card in cards:
        hosts.setdefault(card.host, a_host(card.host))
    return World(
        hosts=hosts,
        cards={c.id: c for c in cards},
        services={t.name: t for t in things if isinstance(t, Service)},
        replicas={t.id: t for t in things if isinstance(t, Replica)},
        load_times={key: LoadTimes(tuple(s)) for key, s in (load_s or {}).items()},
        wake_times={key: LoadTimes(tuple(s)) for key, s in (wake_s or {}).items()},
        **more,
    )


def a_draft(*things: Card | Host | Service | Replica, policy: Policy = POLICY, now: float = NOW, **more: Any) -> Draft:
    return Draft(a_world(*things, **more), policy, now)


def a_failure(card: str = "c1", at: float = NOW, **more: Any) -> Failure:
    more.setdefault("code", "crashed")
    more.setdefault("message", "exit 1")
    return Failure(card=card, at=at, **more)


def acting(decisions):
    """What is done, refusals left out."""
    return [d for d in decisions if d.refusal is None]

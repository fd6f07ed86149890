"""One round of the loop: take in, look, plan, record. Everything here happens under the fence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from console import state
from console.weeks import Weeks
from console.wire import Gateways
from scheduler.call_budget import Barred
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.world import Want, World
from workers.control import bounds, ingest, lease, looks, routes, wants
from workers.control.holdings import Holdings
from workers.control.isolate import Isolation
from workers.control.record import Recorder, unroute
from workers.control.samples import Samples
from workers.messages import HostWant


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tick wants said, once it is committed."""

    world: World
    rules: Policy
    gateways: Gateways
    wants: list[HostWant]
    changed: set[str]  # hosts whose want is newer than what this leader last sent
    version: int
    services: dict[str, Any]
    hosts: dict[str, Any]
    barred: Barred
    limits: dict[str, Any]  # of batch calls by card, and how many gateways share every bound
    hurry: bool  # somebody waits for what is under way


@dataclass(slots=True)
class Tick:
    """A leader's memory between rounds; losing it costs one repeated message."""

    token: int
    recorder: Recorder
    routed: frozenset[int] | None = None
    sent: dict[str, int] = field(default_factory=dict)  # host → generation
    weeks: Weeks = field(default_factory=Weeks)
    holdings: Holdings = field(default_factory=Holdings)
    samples: Samples = field(default_factory=Samples)
    isolation: Isolation = field(default_factory=Isolation)

    def run(self, reports: Mapping[str, tuple[float, bytes]], gateways: Gateways, now: float) -> Outcome:
        # 1 take in
        rules = state.policy()
        ingest.ingest(reports, now, rules)
        ingest.take_calls(gateways, now)
        # 2 look
        week = self.weeks.at(now)
        seen = looks.take(state.world(now, gateways, rules=rules, week=week), rules, now)
        # 3 plan
        decisions = plan(seen, rules, now)
        # 4 record
        recorded = self.recorder.record(decisions, seen, now)
        after = state.world(now, gateways, rules=rules, week=week) if recorded.done else seen
        # 5 what it costs
        self.holdings.keep(after, rules, now)
        self.samples.keep(after, decisions, rules, now)
        # 6 batch beside online services
        caps = self.isolation.keep(after, decisions, rules, now, self.token)
        # 7 routes
        on = routes.routed(after, rules, now)
        if on != self.routed:
            version = lease.raise_route_version(self.token)
            unroute(version, on)
            self.routed = on
        else:
            version = lease.route_version()
            if _never_named(after, on):
                unroute(version, on)
        # 8 wants
        told = wants.whole(wants.live_hosts(now), rules, now)
        changed = {want.host for want in told if self.sent.get(want.host) != want.generation}
        self.sent.update({want.host: want.generation for want in told})
        return Outcome(
            world=after,
            rules=rules,
            gateways=gateways,
            wants=told,
            changed=changed,
            version=version,
            services=routes.services(after, rules, decisions, recorded.advised, on, now),
            hosts=routes.hosts(),
            barred=routes.barred(now),
            limits={"batch": bounds.batch(caps), "gateways": max(1, len(gateways.gateways))},
            hurry=any(service.demand.held for service in seen.services.values()),
        )


def _never_named(world: World, on: frozenset[int]) -> bool:
    """Does a copy drain that was told to before any routes named it? No change of the routes tells that it is gone."""
    return any(one.want is Want.DRAINED and not one.quiet and one.id not in on for one in world.replicas.values())

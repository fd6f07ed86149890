"""Random worlds for properties: small farms in which much is tight, broken, leaving or wished at once.

Hypothesis draws the sizes and a seed; the details come from the seed, which is forty times faster than drawing each.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from scheduler.world import Card, Demand, Phase, Profile, Replica, Service, Tier, Want, World
from tests.scheduler.build import NOW, a_card, a_failure, a_host, a_replica, a_service, a_world

AGES_S = [0.0, 1.0, 4.0, 20.0, 70.0, 299.0, 400.0, 1300.0, 1900.0]
WANTS = {
    Phase.STARTING: [Want.READY, Want.READY, Want.STOPPED],
    Phase.READY: [Want.READY],
    Phase.DRAINING: [Want.DRAINED, Want.ASLEEP, Want.STOPPED],
    Phase.ASLEEP: [Want.ASLEEP, Want.ASLEEP, Want.STOPPED],
    Phase.FAILED: [Want.READY, Want.READY, Want.STOPPED],
}
DRAINED_FOR = ["idle", "room", "surplus", "operator", "fault"]
NAMES = "abcdef"


def a_demand(dice: Random) -> Demand:
    waiting = dice.choice([0, 0, 1, 2])
    called = dice.choice([None, *AGES_S])
    return Demand(
        held=waiting,
        held_streams=dice.randint(0, waiting),
        held_since=NOW - dice.choice(AGES_S) if waiting else None,
        last_call_at=None if called is None else NOW - called,
        expected_until=dice.choice([None] * 5 + [NOW + 9]),
    )


def any_service(dice: Random, name: str, cards: int) -> Service:
    failures = tuple(a_failure(f"c{dice.randrange(cards)}", NOW - dice.choice(AGES_S)) for _ in range(2))
    return a_service(
        name,
        weights=dice.choice([500, 3000, 8000, 15000]),
        kv=dice.choice([0, 2000, 6000]),
        headroom=dice.choice([0, 400]),
        profile=dice.choice(list(Profile)),
        tier=dice.choice([Tier.COLD, Tier.COLD, Tier.WARM, Tier.HOT]),
        priority=dice.choice([10, 50, 50, 90]),
        min_replicas=dice.choice([0, 0, 0, 1, 2]),
        max_replicas=dice.randint(1, 3),
        tenant=dice.choice("tu"),
        apart_from=dice.choice([frozenset(), frozenset(), frozenset({"u"})]),
        whitelisted_until=dice.choice([None, None, NOW + 60, NOW - 60]),
        can_sleep=dice.random() < 0.7,
        demand=a_demand(dice),
        wished_at=dice.choice([None, None, None, NOW - 10]),
        failures=failures if dice.random() < 0.1 else (),
    )


def any_replica(dice: Random, id: int, service: Service, card: str) -> Replica:
    phase = dice.choice([Phase.READY, Phase.READY, *WANTS])
    want = dice.choice(WANTS[phase])
    notice = dice.choice([None, None, NOW - 1, NOW + 3, NOW + 200]) if phase is Phase.READY else None
    cap = service.claim.kv_cap_mib
    return a_replica(
        id,
        service.name,
        card,
        phase,
        want=want,
        kv_granted_mib=dice.choice([cap, cap * 9 // 10]),
        measured_mib=dice.choice([None, None, service.claim.weights_mib + 1000]),
        want_since=NOW - dice.choice(AGES_S),
        loaded_at=NOW - dice.choice(AGES_S),
        in_flight=dice.choice([0, 0, 0, 1, None]),
        quiet=phase is Phase.DRAINING and dice.random() < 0.5,
        drain_at=notice,
        reason=dice.choice(DRAINED_FOR if want is Want.DRAINED else ["idle", "room"] if notice else [""]),
        failures_here=dice.randint(1, 4),
        failed_at=NOW - dice.choice(AGES_S),
        fatal=dice.random() < 0.2,
        left_alone_until=dice.choice([None, None, NOW + 10]),
        external=dice.random() < 0.05,
    )


def any_card(dice: Random, index: int) -> Card:
    return a_card(
        f"c{index}",
        f"h{index % 3}",
        total=dice.choice([24576, 40960, 81920]),
        reserved=400,
        unavailable_mib=dice.choice([400, 400, 400, 5000, None]),
        healthy=dice.random() < 0.9,
        releasing_mib=dice.choice([0, 0, 3000]),
    )


def any_world(cards: int, services: int, density: int, seed: int) -> World:
    dice = Random(seed)
    there = [any_card(dice, i) for i in range(cards)]
    hosts = [a_host(h, seen_at=NOW - dice.choice([0.0, 1.0, 1.0, 30.0, 90.0])) for h in ("h0", "h1", "h2")]
    wanted = [any_service(dice, name, cards) for name in NAMES[:services]]
    seats = [(s, c) for s in wanted for c in there if dice.randrange(10) < density]
    on = [any_replica(dice, i, s, c.id) for i, (s, c) in enumerate(seats, 1)]
    learned = {("a", "h0"): [dice.uniform(1, 60)] * 3} if dice.random() < 0.5 else {}
    return a_world(*there, *hosts, *wanted, *on, load_s=learned)


def worlds() -> st.SearchStrategy[World]:
    return st.builds(any_world, st.integers(1, 5), st.integers(1, 6), st.integers(0, 6), st.integers(0, 2**32))

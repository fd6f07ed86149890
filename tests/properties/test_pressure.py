"""What holds of every card under pressure, by random worlds and random histories of growth."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.decision import Code, Reason, Verb
from scheduler.lifecycle import legal
from scheduler.placement import Placement, place
from scheduler.planner import plan
from scheduler.policy import Policy
from scheduler.pressed import no_newcomers, short_mib, under_pressure
from scheduler.world import Eviction, Phase, Profile, Want, World
from tests.plays.farm import Farm
from tests.properties.worlds import any_world
from tests.scheduler.build import NOW, POLICY, a_card, a_replica, a_service, a_world

SAME = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(SAME, max_examples=150)
SOME = settings(SAME, max_examples=20)


def pressed_world(cards: int, services: int, density: int, seed: int) -> World:
    """A random world in which most cards are close to full by measurement, and some copies are above their claim."""
    dice = Random(seed)
    world = any_world(cards, services, density, seed)
    there = {}
    for card in world.cards.values():
        used = card.total_mib * dice.choice([5, 5, 88, 93, 95, 98, 100]) // 100
        unknown = dice.random() < 0.1
        there[card.id] = replace(
            card,
            unavailable_mib=None if unknown else used,
            pressed_samples=dice.choice([0, 2, 2]) if used > 30000 else 0,
        )
    on = {
        r.id: replace(
            r,
            measured_mib=dice.choice([None, r.measured_mib, 4000, 9000, 20000]),
            reason=dice.choice([r.reason, "pressure"]) if r.want is Want.DRAINED else r.reason,
        )
        for r in world.replicas.values()
    }
    kept = NOW + 60 if dice.random() < 0.4 else NOW - 60
    services = {
        n: replace(s, whitelisted_until=kept, failures=(), profile=dice.choice([Profile.BATCH, *Profile]))
        for n, s in world.services.items()
    }
    names = sorted(services)
    went = tuple(
        Eviction(dice.choice(names), dice.choice(sorted(there)), NOW - dice.choice([1, 60, 700]), dice.random() < 0.7)
        for _ in range(dice.choice([0, 0, 1, 3]))
    )
    return replace(world, cards=there, services=services, replicas=on, evictions=went)


def worlds() -> st.SearchStrategy[World]:
    return st.builds(pressed_world, st.integers(1, 4), st.integers(1, 6), st.integers(1, 8), st.integers(0, 2**32))


def evicting(world: World):
    decisions = plan(world, POLICY, NOW)
    return [d for d in decisions if d.reason is Reason.PRESSURE and d.refusal is None and "frees_mib" in d.numbers]


@MANY
@given(worlds())
def test_each_decision_is_legal_and_online_ones_are_never_evicted(world):
    for d in evicting(world):
        assert legal(d, world.replicas[d.replica])
        assert world.services[d.service].profile is not Profile.ONLINE


@MANY
@given(worlds())
def test_only_cards_under_pressure_lose_anybody(world):
    for d in evicting(world):
        assert under_pressure(world.cards[d.numbers["card"]], POLICY)
        assert d.numbers["card"] in world.replicas[d.replica].cards


@MANY
@given(worlds())
def test_nothing_starts_or_wakes_on_a_card_under_pressure_nor_where_it_was_evicted_from(world):
    apart = {(e.service, e.card) for e in world.evictions if e.at + POLICY.evicted_apart_s > NOW}
    for d in plan(world, POLICY, NOW):
        if d.refusal is not None or d.verb not in (Verb.START, Verb.WAKE):
            continue
        old = world.replicas.get(d.replica) if d.replica is not None else None
        if d.verb is Verb.START or old.phase is Phase.ASLEEP:
            for card in d.cards or old.cards:
                assert no_newcomers(world.cards[card], POLICY) is None
                assert old is not None or (d.service, card) not in apart


@MANY
@given(worlds())
def test_each_pressure_is_relieved_on_paper_or_an_alert_says_how_much_is_missing(world):
    decisions = plan(world, POLICY, NOW)
    alerts = {d.cards[0]: d for d in decisions if d.refusal is not None and d.refusal.code is Code.NO_VICTIM}
    for card in world.cards.values():
        heard = NOW - world.hosts[card.host].seen_at <= POLICY.silent_s
        ours = any(card.id in r.cards and r.phase is not Phase.FAILED for r in world.replicas.values())
        if not (under_pressure(card, POLICY) and heard and ours):
            assert card.id not in alerts
            continue
        mine = [d for d in evicting(world) if d.numbers["card"] == card.id]
        going = sum(r.measured_mib or 20000 for r in world.replicas.values() if card.id in r.cards and leaves(r))
        left = card.unavailable_mib - card.releasing_mib - going - sum(d.numbers["frees_mib"] for d in mine)
        if card.id in alerts:
            assert alerts[card.id].refusal.numbers["short_mib"] > 0
        else:
            assert short_mib(card, POLICY, left) <= 0


def leaves(replica) -> bool:
    return replica.want is not Want.READY and replica.phase in (Phase.DRAINING, Phase.STARTING, Phase.ASLEEP)


@MANY
@given(worlds())
def test_a_whitelisted_one_is_moved_only_last_and_where_another_card_takes_it_now(world):
    evicted = evicting(world)
    for d in evicted:
        service = world.services[d.service]
        if (service.whitelisted_until or 0) <= NOW:
            continue
        going = {e.replica for e in evicted}
        without = replace(world, replicas={i: r for i, r in world.replicas.items() if i not in going})
        found = place(without, POLICY, service, NOW)
        assert isinstance(found, Placement)
        assert found.cards != world.replicas[d.replica].cards


@MANY
@given(worlds())
def test_the_order_of_mappings_does_not_matter(world):
    turned = replace(
        world,
        replicas=dict(reversed(world.replicas.items())),
        cards=dict(reversed(world.cards.items())),
        services=dict(reversed(world.services.items())),
    )
    assert plan(world, POLICY, NOW) == plan(turned, POLICY, NOW)


QUICK = Policy(idle_unload_s=86400, evicted_apart_s=120, rebuild_within_s=300)
GROWTHS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 9000), st.integers(0, 180), st.integers(0, 2)), min_size=1, max_size=6
)


def a_farm() -> Farm:
    names = "abcdef"
    profiles = [Profile.ONLINE, Profile.LOWFREQ, Profile.BATCH] * 2
    services = [a_service(n, 24000, 2000, profile=p) for n, p in zip(names, profiles, strict=True)]
    seats = [a_replica(i, n, f"c{(i + 2) // 3}", kv_granted_mib=2000) for i, n in enumerate(names, 1)]
    cards = [a_card(f"c{i}", f"h{i}", total=90000) for i in (1, 2, 3)]
    farm = Farm(a_world(*cards, *services, *seats), policy=QUICK)
    farm.grown = {i: 26600 for i in range(1, 7)}
    return farm


def grow(farm: Farm, growths) -> None:
    """Each grows by so much at so many MiB a second, with so many calls in flight."""
    for replica, amount, rate, calls in growths:
        farm.calls[replica] = calls
        start = farm.grown[replica]
        for second in range(25):
            farm.grown[replica] = start + min(amount, rate * second)
            farm.step()


@SOME
@given(GROWTHS)
def test_a_history_of_growth_never_evicts_an_online_one_and_ends_in_relief_or_in_an_alert(growths):
    farm = a_farm()
    grow(farm, growths)
    for _ in range(60):
        last = farm.step()
    for d in farm.did("a") + farm.did("d"):
        assert d.reason is not Reason.PRESSURE
    alerts = {d.cards[0] for d in last if d.refusal is not None and d.refusal.code is Code.NO_VICTIM}
    pressed = {c.id for c in farm.world.cards.values() if under_pressure(c, QUICK)}
    assert pressed <= alerts, farm.phases()


@SOME
@given(GROWTHS)
def test_nobody_is_put_back_on_its_card_soon_nor_evicted_twice_from_it_meanwhile(growths):
    farm = a_farm()
    grow(farm, growths)
    for _ in range(60):
        farm.step()
    last: dict[tuple[str, str], float] = {}
    for at, d in farm.journal:
        if d.refusal is not None:
            continue
        if d.reason is Reason.PRESSURE and "frees_mib" in d.numbers:
            key = (d.service, d.numbers["card"])
            assert at - last.get(key, -9e9) >= QUICK.evicted_apart_s
            last[key] = at
        if d.verb is Verb.START:
            assert at - last.get((d.service, d.cards[0]), -9e9) >= QUICK.evicted_apart_s


@SOME
@given(GROWTHS)
def test_once_growth_ends_the_plan_becomes_empty_and_all_that_fits_is_there(growths):
    farm = a_farm()
    grow(farm, growths)
    farm.calls.clear()
    quiet = 0
    for _ in range(600):
        acts = [d for d in farm.step() if d.refusal is None]
        quiet = 0 if acts else quiet + 1
    assert quiet > 200, farm.journal[-4:]

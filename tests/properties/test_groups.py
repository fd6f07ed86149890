"""Copies over several cards in random worlds: all on one host or none, and every rule of a card on each of them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.decision import Code, Reason, Verb
from scheduler.draft import Draft, moving
from scheduler.memory import awake_count, book_limit_pct, kv_sums, room_mib, within_oversell
from scheduler.planner import plan
from scheduler.world import Demand, Phase, Tier, Want, World
from tests.properties.worlds import any_world, worlds
from tests.scheduler.build import LONG, NOW, POLICY, acting

MANY = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


def wanted(world: World, count: int, islands: int) -> tuple[World, set[str]]:
    """Services without a copy need so many cards, and somebody waits for each; cards lie in so many islands."""
    seated = {replica.service for replica in world.replicas.values()}
    teams = {name for name in world.services if name not in seated}
    services = {
        name: replace(one, cards_per_replica=count, demand=Demand(held=1, held_since=NOW), min_replicas=0)
        if name in teams
        else one
        for name, one in world.services.items()
    }
    cards = {id: replace(c, group=f"n{n % islands}") for n, (id, c) in enumerate(sorted(world.cards.items()))}
    return replace(world, services=services, cards=cards), teams


@MANY
@given(worlds(), st.integers(2, 3), st.integers(1, 3))
def test_as_many_cards_as_it_needs_all_on_one_host(world, count, islands):
    world, teams = wanted(world, count, islands)
    for d in acting(plan(world, POLICY, NOW)):
        if d.verb is Verb.START and d.service in teams:
            assert len(set(d.cards)) == count
            assert len({world.cards[card].host for card in d.cards}) == 1
            assert d.replica is None


@MANY
@given(worlds(), st.integers(2, 3))
def test_the_rules_hold_on_each_of_its_cards(world, count):
    world, teams = wanted(world, count, 2)
    before = Draft(world, POLICY, NOW)
    decisions = plan(world, POLICY, NOW)
    draft = Draft(world, POLICY, NOW)
    for d in acting(decisions):
        assert draft.do(d), d
    for d in (d for d in acting(decisions) if d.verb is Verb.START and d.service in teams):
        for card in d.cards:
            book = draft.book(card)
            assert world.cards[card].healthy
            assert room_mib(book) >= 0
            assert awake_count(book) <= POLICY.max_replicas_per_card
            assert within_oversell(*kv_sums(book), book_limit_pct(book))
            assert not any(moving(r) for r in before.on_card(card)), "one load at a time on a card"


@MANY
@given(worlds(), st.integers(2, 3))
def test_every_team_that_waits_starts_or_is_told_why_not(world, count):
    world, teams = wanted(world, count, 2)
    decisions = plan(world, POLICY, NOW)
    for name in teams:
        mine = [d for d in decisions if d.service == name]
        assert (
            len([d for d in mine if d.refuses_wish is not None])
            + len([d for d in mine if d.verb is Verb.START and d.refusal is None])
            == 1
        )


def settled(world: World) -> World:
    """Two hosts of small cards on which all are ready and long idle: any of them may go for a caller."""
    copies = {
        id: replace(
            r, phase=Phase.READY, want=Want.READY, in_flight=0, drain_at=None, loaded_at=NOW - LONG, reason="",
            last_call_at=NOW - LONG, left_alone_until=None, external=False, measured_mib=None,
        )
        for id, r in world.replicas.items()
    }  # fmt: skip
    cards = {
        id: replace(c, host=f"h{n // 3}", healthy=True, unavailable_mib=400, releasing_mib=0, total_mib=24576)
        for n, (id, c) in enumerate(sorted(world.cards.items()))
    }
    hosts = {name: replace(host, seen_at=NOW) for name, host in world.hosts.items()}
    free = {"priority": 50, "whitelisted_until": None, "demand": Demand(), "tier": Tier.COLD, "failures": ()}
    services = {name: replace(one, **free, min_replicas=0) for name, one in world.services.items()}
    return replace(world, replicas=copies, cards=cards, hosts=hosts, services=services)


@settings(MANY, max_examples=300)
@given(st.builds(any_world, st.integers(3, 6), st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32)))
def test_room_for_a_team_is_made_on_enough_cards_of_one_host_or_not_at_all(world):
    world, teams = wanted(settled(world), 2, 2)
    decisions = plan(world, POLICY, NOW)
    for name in teams:
        made = [d for d in acting(decisions) if d.reason is Reason.ROOM and d.numbers.get("room_for") == name]
        hosts = {world.cards[card].host for d in made for card in world.replicas[d.replica].cards}
        assert len(hosts) <= 1
        if made:
            (told,) = [d.refusal for d in decisions if d.service == name and d.refuses_wish is not None]
            assert told.code is Code.NOT_NOW, "who is sent away is sent away for somebody who will come"

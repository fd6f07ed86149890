"""Copies over several cards: all on one host, the best interconnect group first, all or nothing; moved as one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler.decision import Code, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import load_estimate
from scheduler.memory import room_mib
from scheduler.placement import Placement, place
from scheduler.planner import plan
from scheduler.sleep import host_room_mib, may_sleep
from scheduler.world import Act, Failure, Order, Phase, Profile, Quota, Tier, Want
from tests.scheduler.build import (
    LONG,
    NOW,
    POLICY,
    a_card,
    a_draft,
    a_host,
    a_replica,
    a_service,
    a_world,
    acting,
    held,
)
from tests.scheduler.cases import cases


def large(cards: int = 4, **more):
    """A model of 240 GB over four cards."""
    more.setdefault("weights", 60_000)
    more.setdefault("kv", 8000)
    return a_service("large", cards_per_replica=cards, **more)


def islands(host: str = "h1", groups: str = "aaaabbbb", **more):
    """Cards of one host: a letter is an island, a dot is none. Ids in the order of their place."""
    return [
        a_card(f"{host}-{i}", host, index=i, group="" if letter == "." else letter, **more)
        for i, letter in enumerate(groups)
    ]


def on(cards, service: str = "large", id: int = 1, phase: Phase = Phase.READY, **more):
    return replace(a_replica(id, service, cards[0], phase, kv_granted_mib=8000, **more), cards=tuple(cards))


def placed(*things, service=None, **more) -> Placement | Refusal:
    service = service or large()
    return place(a_world(service, *things, **more), POLICY, service, NOW)


def test_four_cards_of_one_host_and_one_island():
    found = placed(*islands())
    assert found.cards == ("h1-0", "h1-1", "h1-2", "h1-3")
    assert found.numbers["islands"] == 1


@cases(
    ("groups", "cards"),
    [
        ("abbbba", "h1-1 h1-2 h1-3 h1-4"),  # the one island that holds all
        ("....bbbb", "h1-4 h1-5 h1-6 h1-7"),  # joined by links before joined by nobody knows what
        ("aabbb...", "h1-0 h1-2 h1-3 h1-4"),  # over as few islands as it takes
        ("....", "h1-0 h1-1 h1-2 h1-3"),
    ],
)
def test_the_best_interconnect_group_first(groups, cards):
    assert placed(*islands(groups=groups)).cards == tuple(cards.split())


def test_an_island_that_is_whole_on_another_host_is_better():
    assert {c.split("-")[0] for c in placed(*islands("h1", "aabb"), *islands("h2", "cccc")).cards} == {"h2"}


def test_never_over_two_hosts():
    found = placed(*islands("h1", "aa"), *islands("h2", "bbb"))
    assert found == Refusal(Code.TOO_FEW_CARDS, {"cards_needed": 4, "most_on_a_host": 3})


def test_all_or_nothing_and_the_refusal_counts():
    full = [replace(card, unavailable_mib=70_000) for card in islands(groups="aa")]
    found = placed(*full, *[replace(c, id=f"free{c.id}") for c in islands(groups="aaa")])
    assert found.code is Code.SHORT_OF_MEMORY
    assert (found.numbers["cards_needed"], found.numbers["cards_that_fit"], found.numbers["host"]) == (4, 3, "h1")


def test_the_tightest_card_decides_the_grant_of_all():
    cards = islands(groups="aaaa")
    cards[2] = replace(cards[2], unavailable_mib=600 + 6500)
    found = placed(*cards)
    room = 81920 - 600 - 6500 - 6554
    assert found.kv_granted_mib == room - large().claim.fixed_mib < 8000


def test_a_card_that_cannot_live_with_the_common_grant_steps_out():
    """Its neighbours' caps leave it no oversell: another card takes its place."""
    cards = islands(groups="aaaaa")
    cards[0] = replace(cards[0], unavailable_mib=600 + 6500)  # grants 7,266 of 8,000: over by 10 %
    tight = a_service("tight", weights=500, kv=5000, headroom=0, overhead=500)
    beside = a_replica(9, "tight", "h1-1", kv_granted_mib=4000)  # over by 25 %: fine beside a full grant only
    service = large(kv=8000)
    found = place(a_world(service, tight, beside, *cards), POLICY, service, NOW)
    assert isinstance(found, Placement)
    assert len(found.cards) == 4


def test_filters_are_asked_of_each_card():
    cards = islands(groups="aaaaa")
    cards[1] = replace(cards[1], cordoned=True)
    assert placed(*cards).cards == ("h1-0", "h1-2", "h1-3", "h1-4")


def test_not_a_whole_host_by_default():
    """The other cards, and what is left of its own, serve others."""
    small = a_service("small", demand=held())
    world = a_world(
        large(weights=30_000), small, *islands(groups="aaaa"), on(["h1-0", "h1-1", "h1-2", "h1-3"], last_call_at=NOW)
    )
    (start,) = acting(plan(world, POLICY, NOW))
    assert (start.verb, start.service, len(start.cards)) == (Verb.START, "small", 1)


def test_books_are_charged_on_every_card():
    service = large()
    draft = a_draft(service, *islands(groups="aaaaa"))
    before = {card: room_mib(draft.book(card)) for card in draft.world.cards}
    draft.do(acting(plan(replace(draft.world, services={"large": held_large()}), POLICY, NOW))[0])
    after = {card: room_mib(draft.book(card)) for card in draft.world.cards}
    taken = [before[card] - after[card] for card in sorted(before)]
    assert taken == [service.claim.fixed_mib + 8000] * 4 + [0]


def held_large(**more):
    return large(demand=held(), **more)


def test_a_caller_starts_all_four_as_one_replica():
    (start,) = acting(plan(a_world(held_large(), *islands()), POLICY, NOW))
    assert start.cards == ("h1-0", "h1-1", "h1-2", "h1-3")
    assert start.kv_granted_mib == 8000


def test_it_waits_until_all_of_its_cards_can_load():
    small = a_service("small")
    loading = a_replica(5, "small", "h1-2", Phase.STARTING)
    decisions = plan(a_world(held_large(weights=40_000), small, *islands(groups="aaaa"), loading), POLICY, NOW)
    (waits,) = [d for d in decisions if d.service == "large"]
    assert waits.refusal.code is Code.LOAD_IN_FLIGHT
    assert waits.refusal.numbers["on_cards"] == "h1-0,h1-1,h1-2,h1-3"


def test_while_it_waits_its_room_is_kept_on_all_cards():
    small, other = a_service("small"), a_service("zother", weights=30_000, demand=held())
    loading = a_replica(5, "small", "h1-2", Phase.STARTING)
    large_one = held_large(weights=40_000)
    decisions = plan(a_world(large_one, small, other, *islands(groups="aaaa"), loading), POLICY, NOW)
    (refused,) = [d for d in decisions if d.service == "zother"]
    assert refused.refusal is not None


def full_host(count: int = 4):
    cards = islands(groups="a" * count)
    idle = a_service("idle", weights=50_000)
    copies = [replace(a_replica(10 + i, f"idle{i}", card.id, kv_granted_mib=4000)) for i, card in enumerate(cards)]
    services = [replace(idle, name=f"idle{i}") for i in range(count)]
    return cards, services, copies


def test_room_is_made_on_as_many_cards_as_it_needs():
    cards, services, copies = full_host(6)
    decisions = plan(a_world(held_large(), *cards, *services, *copies), POLICY, NOW)
    drains = [d for d in decisions if d.reason is Reason.ROOM]
    assert len(drains) == 4
    assert all(d.not_before is not None for d in drains)
    (refused,) = [d for d in decisions if d.service == "large"]
    assert refused.refusal.code is Code.NOT_NOW


def test_all_or_nothing_when_room_is_made():
    """One neighbour may not go: nobody is sent away for a copy that could not start."""
    cards, services, copies = full_host(4)
    services[3] = replace(services[3], whitelisted_until=NOW + 1000)
    decisions = plan(a_world(held_large(), *cards, *services, *copies), POLICY, NOW)
    assert [d for d in decisions if d.reason is Reason.ROOM] == []
    (refused,) = [d for d in decisions if d.service == "large"]
    assert refused.refusal.code is Code.NO_CAPACITY


def test_cards_with_room_are_not_emptied():
    cards, services, copies = full_host(6)
    decisions = plan(a_world(held_large(), *cards, *services[:3], *copies[:3]), POLICY, NOW)
    assert len([d for d in decisions if d.reason is Reason.ROOM]) == 1


def test_a_sleeper_wakes_on_all_cards_or_not():
    sleeper = on(["h1-0", "h1-1"], phase=Phase.ASLEEP)
    world = a_world(held_large(cards=2), sleeper, *islands(groups="aaaa"))
    (wake,) = acting(plan(world, POLICY, NOW))
    assert (wake.verb, wake.replica) == (Verb.WAKE, 1)
    full = a_service("full", weights=60_000, tier=Tier.HOT)
    blocked = replace(world, services={**world.services, "full": full})
    blocked = replace(blocked, replicas={**world.replicas, 2: a_replica(2, "full", "h1-1", kv_granted_mib=4000)})
    (elsewhere,) = [d for d in acting(plan(blocked, POLICY, NOW)) if d.service == "large" and d.verb is Verb.START]
    assert elsewhere.cards == ("h1-2", "h1-3")


def test_an_order_to_wake_asks_every_card():
    sleeper = on(["h1-0", "h1-1"], phase=Phase.ASLEEP)
    cards = islands(groups="aa")
    cards[1] = replace(cards[1], cordoned=True)
    order = Order(1, Act.WAKE, "large", NOW + 100, replica=1)
    (answer,) = plan(a_world(large(2), sleeper, *cards, orders=(order,)), POLICY, NOW)
    assert answer.refusal.code is Code.CORDONED
    assert answer.refusal.numbers["card"] == "h1-1"


def test_a_failed_one_is_tried_again_on_the_same_cards():
    failed = on(["h1-0", "h1-1"], phase=Phase.FAILED, failures_here=1, failed_at=NOW - 1)
    (again,) = acting(plan(a_world(large(2), failed, *islands(groups="aa")), POLICY, NOW))
    assert (again.verb, again.replica, again.cards) == (Verb.START, 1, ("h1-0", "h1-1"))


def test_one_broken_card_ends_it_as_a_whole():
    failed = on(["h1-0", "h1-1"], phase=Phase.FAILED, failures_here=1, failed_at=NOW - 1)
    cards = islands(groups="aa")
    cards[1] = replace(cards[1], healthy=False)
    (stop,) = acting(plan(a_world(large(2), failed, *cards), POLICY, NOW))
    assert (stop.verb, stop.reason, stop.replica) == (Verb.STOP, Reason.FAULT, 1)


def test_after_a_failure_none_of_its_cards_is_tried_again():
    failure = Failure("h1-0", NOW - 1, "crashed", "", beside=("h1-1",))
    service = large(2, failures=(failure,))
    assert placed(*islands(groups="aaaa"), service=service).cards == ("h1-2", "h1-3")


def test_a_lost_host_rebuilds_it_whole_elsewhere():
    dead = a_host("h1", seen_at=NOW - 1000)
    world = a_world(large(), dead, on(["h1-0", "h1-1", "h1-2", "h1-3"]), *islands(), *islands("h2"))
    (start,) = acting(plan(world, POLICY, NOW))
    assert start.reason is Reason.REBUILD
    assert {c.split("-")[0] for c in start.cards} == {"h2"}
    assert len(start.cards) == 4


@cases("count", [2, 3, 5])
def test_varied_sizes(count):
    found = placed(*islands(groups="a" * 8), service=large(count))
    assert found.cards == tuple(f"h1-{i}" for i in range(count))


def test_it_is_drained_and_stopped_once():
    idle = on(["h1-0", "h1-1", "h1-2", "h1-3"], last_call_at=NOW - LONG)
    full = [a_service(f"f{i}", weights=1, kv=1) for i in range(1)]
    world = a_world(large(), *full, idle, *islands(groups="aaaa"))
    (notice,) = acting(plan(world, POLICY, NOW))
    assert (notice.verb, notice.reason, notice.replica) == (Verb.DRAIN, Reason.IDLE, 1)
    drained = replace(idle, want=Want.DRAINED, phase=Phase.DRAINING, quiet=True, reason="idle", want_since=NOW)
    (stop,) = acting(plan(replace(world, replicas={1: drained}), POLICY, NOW))
    assert (stop.verb, stop.replica) == (Verb.STOP, 1)


def test_a_load_reads_the_weights_of_all_cards():
    world = a_world(large(), a_host("h1", bandwidth_mib_s=2000), *islands())
    estimate = load_estimate(world, POLICY, world.services["large"], "h1")
    assert estimate.seconds == pytest.approx(240_000 / 2000 + 8)


def test_asleep_it_takes_the_host_memory_of_all():
    ready = on(["h1-0", "h1-1", "h1-2", "h1-3"])
    service = large(tier=Tier.WARM)
    small = a_draft(service, ready, a_host("h1", memory_mib=250 * 1024), *islands())
    roomy = a_draft(service, ready, a_host("h1", memory_mib=512 * 1024), *islands())
    assert not may_sleep(small, ready)
    assert may_sleep(roomy, ready)
    asleep = a_draft(service, replace(ready, phase=Phase.ASLEEP, want=Want.ASLEEP), a_host("h1", memory_mib=512 * 1024))
    asleep = Draft(replace(asleep.world, cards={c.id: c for c in islands()}), POLICY, NOW)
    assert host_room_mib(asleep, asleep.world.hosts["h1"]) == 512 * 1024 - 512 * 1024 * 20 // 100 - 240_000


@cases(("quota", "fits"), [(4 * 69_000, True), (4 * 69_000 - 1, False)])
def test_a_quota_counts_all_cards(quota, fits):
    found = placed(*islands(), quotas={("t", "default"): Quota(quota, 0)})
    assert isinstance(found, Placement) is fits


def test_pressure_on_one_of_its_cards_takes_it_from_all():
    cards = islands(groups="aaaa")
    cards[0] = replace(cards[0], unavailable_mib=80_000, pressed_samples=2)
    batch = large(profile=Profile.BATCH)
    grown = on([c.id for c in cards], measured_mib=79_000)
    (drain,) = acting(plan(a_world(batch, grown, *cards), POLICY, NOW))
    assert (drain.verb, drain.reason, drain.replica) == (Verb.DRAIN, Reason.PRESSURE, 1)


def test_ties_go_to_the_first_ids_and_a_plan_is_reproducible():
    cards = islands(groups="aaaaaaaa")
    first = placed(*cards)
    again = placed(*reversed(cards))
    assert first.cards == again.cards == ("h1-0", "h1-1", "h1-2", "h1-3")


def test_a_world_of_many_hosts_takes_the_island_with_the_best_fit():
    """Two equal islands: the fuller one, so that the empty one stays whole."""
    beside = [a_replica(20 + i, f"n{i}", f"h1-{i}", kv_granted_mib=1000) for i in range(4, 8)]
    services = [a_service(f"n{i}", weights=3000, kv=1000, profile=Profile.LOWFREQ) for i in range(4, 8)]
    found = placed(*islands(), *beside, *services, service=large(weights=20_000, kv=2000))
    assert found.cards == ("h1-4", "h1-5", "h1-6", "h1-7")

"""What pools are for, who may enter which, and N-1: who would be homeless."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduler import placement
from scheduler.decision import Code, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.kept import why_kept
from scheduler.memory import start_grant
from scheduler.n_minus_1 import homeless_share
from scheduler.placement import place
from scheduler.planner import plan
from scheduler.pools import may_enter, resident_only
from scheduler.scores import Offer, field_of, near, price
from scheduler.world import Phase, Pool, Tier
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases

PURPOSES = {p: Pool(p, p) for p in ("resident", "ondemand", "elastic", "pilot")}


def named(*pools: str, **more):
    return a_service(pools=frozenset(pools), **more)


def everywhere():
    return [a_card(p, f"h-{p}", pool=p) for p in PURPOSES]


@cases(
    ("service", "pools"),
    [
        (a_service(), "ondemand"),
        (named("ondemand"), "ondemand"),
        (named("pilot"), "pilot"),
        (named("elastic"), "elastic"),
        (named("resident"), "resident"),
        (named("resident", "ondemand"), "ondemand"),  # it would take the room of those who pay to stay
        (named("resident", "ondemand", tier=Tier.HOT), "resident ondemand"),
        (named("resident", "ondemand", min_replicas=1), "resident ondemand"),
        (named("resident", "ondemand", whitelisted_until=NOW + 1), "resident ondemand"),
        (named("resident", "ondemand", whitelisted_until=NOW), "ondemand"),
        (named("resident", "ondemand", first_token_s=0.5), "resident ondemand"),
        (a_service(tier=Tier.HOT), "ondemand"),  # always kept, yet not asked to be there
        (named("gone"), ""),
    ],
)
def test_who_may_enter_which(service, pools):
    draft = a_draft(service, *everywhere(), pools=PURPOSES)
    assert {name for name, pool in PURPOSES.items() if may_enter(draft, service, pool)} == set(pools.split())


def test_a_pool_of_certain_companies_takes_no_others():
    draft = a_draft(a_service(), pools={"default": Pool("default", tenants=frozenset({"other"}))})
    assert not may_enter(draft, draft.services["s"], draft.world.pools["default"])


def test_a_refusal_says_what_the_pool_is_for():
    found = place(a_world(a_service(), a_card("c1", pool="pilot"), pools=PURPOSES), POLICY, a_service(), NOW)
    assert found == Refusal(Code.WRONG_POOL, {"card": "c1", "pool": "pilot", "purpose": "pilot", "cards": 1})


def test_a_resident_service_is_ready_before_anybody_calls():
    service = named("resident")
    (start,) = acting(plan(a_world(service, *everywhere(), pools=PURPOSES), POLICY, NOW))
    assert (start.verb, start.reason, start.cards) == (Verb.START, Reason.MINIMUM, ("resident",))


@cases("service", [a_service(), named("ondemand"), named("resident", "ondemand"), named("gone")])
def test_any_other_waits_for_its_call(service):
    world = a_world(service, *everywhere(), pools=PURPOSES)
    assert plan(world, POLICY, NOW) == []
    assert not resident_only(a_draft(service, pools=PURPOSES), service)


# Elastic


def test_the_first_copy_is_not_lent_a_card_and_the_second_is():
    service = a_service(max_replicas=2, demand=held())
    only = a_card("e1", "h2", pool="elastic")
    assert place(a_world(service, only, pools=PURPOSES), POLICY, service, NOW).code is Code.WRONG_POOL
    world = a_world(service, only, a_card("o1", pool="ondemand"), a_replica(1, card="o1"), pools=PURPOSES)
    assert place(world, POLICY, service, NOW).cards == ("e1",)


def test_a_minimum_is_no_loan():
    service = a_service(min_replicas=2, max_replicas=3)
    world = a_world(service, a_card("e1", "h2", pool="elastic"), a_card("o1", pool="ondemand"), a_replica(1, card="o1"))
    draft = Draft(replace(world, pools=PURPOSES), POLICY, NOW)
    assert not may_enter(draft, service, PURPOSES["elastic"])


@cases("price_fen", [0, 10_000])
def test_elastic_cards_are_taken_last(price_fen):
    """However cheap, and however well they fit."""
    service = a_service(max_replicas=3)
    cards = [a_card("e1", "h1", pool="elastic"), a_card("o1", "h2", pool="ondemand", price_fen_h=price_fen)]
    world = a_world(service, *cards, a_card("o2", "h3", pool="ondemand"), a_replica(1, card="o2"), pools=PURPOSES)
    assert place(world, POLICY, service, NOW).cards == ("o1",)


def test_what_is_lent_is_given_back_first():
    service = a_service(max_replicas=1)
    ready = [a_replica(1, card="o1", last_call_at=NOW - 900), a_replica(2, card="e1", last_call_at=NOW)]
    cards = [a_card("o1", "h1", pool="ondemand"), a_card("e1", "h2", pool="elastic")]
    (drain,) = acting(plan(a_world(service, *cards, *ready, pools=PURPOSES), POLICY, NOW))
    assert (drain.reason, drain.replica) == (Reason.SURPLUS, 2)


def test_an_idle_copy_on_a_lent_card_is_not_kept_because_the_card_is_half_empty():
    cards = [a_card("o1", "h1", pool="ondemand"), a_card("e1", "h2", pool="elastic")]
    others = [a_service("x"), a_service("s")]
    draft = a_draft(*others, *cards, a_replica(1, card="o1"), a_replica(2, card="e1"), pools=PURPOSES)
    assert why_kept(draft, draft.replicas[1]) == "half_empty"
    assert why_kept(draft, draft.replicas[2]) is None


# Old cards


@cases(
    ("service", "old"),
    [
        (a_service(weights=20_000, first_token_s=0.8), False),
        (a_service(weights=20_000, first_token_s=5.0), True),
        (a_service(weights=20_000), True),
        (a_service(weights=4000, first_token_s=0.8), True),
        (a_service(weights=9000, cards_per_replica=2, first_token_s=0.8), False),
    ],
)
def test_a_large_model_that_must_answer_fast_never_runs_on_an_old_card(service, old):
    cards = [a_card(f"old{i}", compute_cap=7.5) for i in range(2)]
    found = place(a_world(service, *cards), POLICY, service, NOW)
    assert isinstance(found, Refusal) is not old
    if not old:
        assert found.code is Code.WRONG_CLASS


def test_small_models_mind_the_price_most():
    dear, cheap = a_card("dear", price_fen_h=400), a_card("cheap", price_fen_h=100)
    draft = a_draft(dear, cheap)
    offers = [Offer(card, draft.book(card.id), 4000) for card in (dear, cheap)]
    small, large = a_service(weights=2000), a_service(weights=30_000)
    field = field_of(draft, small, offers)
    assert price(draft, small, offers[1], field) == 2 * price(draft, large, offers[1], field) == pytest.approx(1.5)
    assert price(draft, small, offers[0], field) == 0


# Weights at hand


@cases(("phase", "value"), [(Phase.ASLEEP, 1.0), (Phase.READY, 1.0), (Phase.STARTING, 1.0), (Phase.FAILED, 0.0)])
def test_a_host_that_has_the_weights_in_memory_is_nearer(phase, value):
    cards = [a_card("c1", "h1"), a_card("c2", "h1"), a_card("c3", "h2")]
    draft = a_draft(a_service(), *cards, a_replica(1, card="c1", phase=phase))
    offers = [Offer(card, draft.book(card.id), 4000) for card in cards[1:]]
    field = field_of(draft, a_service(), offers)
    assert [near(draft, a_service(), o, field) for o in offers] == [value, 0.0]


def test_on_its_own_disk_is_half_as_near():
    draft = a_draft(a_host("h1", weights=frozenset({"s"})), a_card())
    there = Offer(draft.world.cards["c1"], draft.book("c1"), 4000)
    field = field_of(draft, a_service(), [there])
    assert near(draft, a_service(), there, field) == 0.5
    assert near(draft, a_service("x"), there, field) == 0.0


# N-1


def homeless(*things, card: str = "c1", service=None):
    draft = a_draft(*things)
    service = service or a_service("new")
    grant = start_grant(draft.book(card), service)
    return homeless_share(draft, service, Offer(draft.world.cards[card], draft.book(card), grant))


def test_nobody_is_homeless_where_the_others_have_room():
    assert homeless(a_service("s"), a_replica(), a_card("c1"), a_card("c2")) == 0


def test_alone_in_the_pool_everybody_is():
    assert homeless(a_service("s"), a_replica(), a_card("c1")) == 1
    assert homeless(a_service("s"), a_replica(), a_card("c1"), a_card("c2", pool="other")) == 1


def test_room_for_one_of_two():
    full = a_card("c2", unavailable_mib=81920 - 6554 - 14_000)
    assert homeless(a_service("s"), a_replica(), a_card("c1"), full) == 0.5


def test_who_has_another_copy_still_serves():
    full = a_card("c2", unavailable_mib=81920 - 6554 - 26_000)
    both = [a_replica(1, card="c1"), a_replica(2, card="c2")]
    assert homeless(a_service("s"), *both, a_card("c1"), full) == 0


@cases("state", [{"healthy": False}, {"cordoned": True}, {"unavailable_mib": None}])
def test_a_card_that_takes_nobody_is_no_home(state):
    assert homeless(a_service("s"), a_replica(), a_card("c1"), replace(a_card("c2"), **state)) == 1


@cases(("weight", "chosen"), [(0.0, "alone"), (10.0, "c1")])
def test_a_card_whose_death_would_leave_it_homeless_costs(weight, chosen):
    """The only card of its pool is the cheapest, and nobody there could take over."""
    cards = [a_card("alone", "h3", pool="p"), a_card("c1", "h1", price_fen_h=400), a_card("c2", "h2", price_fen_h=400)]
    world = a_world(a_service("new"), *cards)
    found = place(world, replace(POLICY, score_n1=weight), world.services["new"], NOW)
    assert found.cards == (chosen,)
    assert found.numbers["score_n1"] == 0


def test_among_equals_the_first_is_asked_and_no_other(monkeypatch):
    """Three hundred empty cards are alike: what would be homeless is worked out once."""
    asked = []
    monkeypatch.setattr(placement, "homeless_share", lambda draft, service, offer: asked.append(offer.card.id) or 0.0)
    cards = [a_card(f"c{i}", f"h{i}") for i in range(9)]
    world = a_world(a_service("new"), *cards)
    assert place(world, POLICY, world.services["new"], NOW).cards == ("c0",)
    assert asked == ["c0"]


@cases("shares", [(1.0, 0.0, 0.0), (1.0, 1.0, 0.5), (0.5, 0.5, 0.5), (1.0, 0.4, 0.5)])
def test_whoever_is_asked_last_the_best_of_all_is_taken(monkeypatch, shares):
    monkeypatch.setattr(placement, "homeless_share", lambda draft, service, offer: shares[int(offer.card.id[1])])
    cards = [a_card(f"c{i}", f"h{i}") for i in range(3)]
    world = a_world(a_service("new"), *cards)
    best = min(range(3), key=lambda i: (shares[i], i))
    assert place(world, POLICY, world.services["new"], NOW).cards == (f"c{best}",)

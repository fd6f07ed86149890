"""What a draft keeps for the length of one plan must be what it would have worked out anew."""

from __future__ import annotations

import pytest

from scheduler.decision import Decision, Reason, Verb
from scheduler.fragmentation import kind_of
from scheduler.memory import book_limit_pct, kv_sums, least_start_mib, limit_pct, room_mib, with_seats
from scheduler.placement import place
from scheduler.scores import Offer, field_of, fragmentation
from scheduler.turns import rest_s, waits_for
from scheduler.wishes import ordered, wishes
from scheduler.world import Act, Order, Phase, Profile, Tier
from tests.scheduler.build import NOW, POLICY, a_card, a_draft, a_host, a_replica, a_service


def test_the_mix_is_every_claim_in_order():
    services = [a_service("a", weights=30000), a_service("b", weights=1000), a_service("c", weights=9000)]
    card = a_card()
    draft = a_draft(a_host(), card, *services)
    limit = POLICY.oversell_mixed_pct
    assert list(draft.mixes()[kind_of(card)].sizes_mib) == sorted(
        least_start_mib(service, limit) for service in services
    )
    assert draft.mixes()[kind_of(card)] is draft.mixes()[kind_of(card)]


def asked_of(draft):
    """(a table, the cards it asked about so far)."""
    asked = []
    return draft.table(lambda draft, card: asked.append(card) or len(asked)), asked


def test_a_card_is_asked_once_until_something_changes_on_its_host():
    cards = [a_card("c1", "h1"), a_card("c2", "h1"), a_card("c3", "h2")]
    draft = a_draft(a_host("h1"), a_host("h2"), *cards, a_service("s"))
    table, asked = asked_of(draft)
    assert [table["c1"], table["c2"], table["c3"], table["c1"]] == [1, 2, 3, 1]
    assert draft.do(Decision(Verb.START, "s", Reason.HOLD, cards=("c1",), kv_granted_mib=4000))
    assert [table["c3"], table["c2"], table["c1"]] == [3, 4, 5]
    assert asked == ["c1", "c2", "c3", "c2", "c1"]


def test_a_card_is_asked_again_once_a_service_on_it_has_changed_elsewhere():
    """Whether a copy may go depends on its sisters."""
    cards = [a_card(f"c{i}", f"h{i}") for i in (1, 2, 3)]
    copies = [a_replica(1, "s", "c1"), a_replica(2, "s", "c2"), a_replica(3, "other", "c3")]
    draft = a_draft(*(a_host(f"h{i}") for i in (1, 2, 3)), *cards, a_service("s"), a_service("other"), *copies)
    table, _ = asked_of(draft)
    before = [table[c] for c in ("c1", "c2", "c3")]
    assert draft.do(Decision(Verb.DRAIN, "s", Reason.OPERATOR, 1))
    assert [table[c] > was for c, was in zip(("c1", "c2", "c3"), before, strict=True)] == [True, True, False]


def test_a_promise_and_a_place_in_the_queue_are_changes_too():
    draft = a_draft(a_host(), a_card("c1"), a_card("c2"), a_service("s"))
    table, asked = asked_of(draft)
    for change in (lambda: draft.promise([draft.phantom("s", ("c1",), 1000)]), lambda: draft.queue("c1", 5.0)):
        before = table["c1"], table["c2"]
        change()
        assert table["c1"] > before[0]
        assert table["c2"] == before[1]
    assert asked == ["c1", "c2", "c1", "c1"]


def test_a_fact_is_looked_for_once():
    draft, asked = a_draft(a_card()), []

    def found(draft):
        asked.append(draft)
        return "yes"

    assert [draft.fact(found), draft.fact(found)] == ["yes", "yes"]
    assert asked == [draft]


def test_fragmentation_counts_a_claim_that_just_fits_before_and_not_after():
    """A claim of exactly the room fits; one that needs exactly what is left still does."""
    service = a_service("new", weights=1000, kv=0)
    draft = a_draft(a_host(), a_card())
    room = room_mib(draft.book("c1")) or 0
    fixed = service.claim.fixed_mib
    sizes = {"fills": room, "stays": room - fixed, "over": room + 1, "lost": room - fixed + 1}
    others = [a_service(n, weights=mib, kv=0, headroom=0, overhead=0) for n, mib in sizes.items()]
    draft = a_draft(a_host(), a_card(), *others)
    there = Offer(draft.world.cards["c1"], draft.book("c1"), 0)
    left = room - fixed  # before, one of four did not fit into the room; after, three do not fit into what is left
    assert fragmentation(draft, service, there, field_of(draft, service, [there])) == pytest.approx(
        (room / 4 - left * 3 / 4) / 81920
    )


def test_sums_of_a_book_are_those_of_its_own_seats():
    batch, online = a_service("b", profile=Profile.BATCH), a_service("o")
    draft = a_draft(a_host(), a_card(), batch, online, a_replica(1, "o", kv_granted_mib=3000))
    book = draft.book("c1")
    more = with_seats(book, [a_replica(2, "b", kv_granted_mib=2000)], draft.services)
    assert kv_sums(book) == (4000, 3000)
    assert kv_sums(more) == (8000, 5000)
    assert (room_mib(book) or 0) - (room_mib(more) or 0) == batch.claim.fixed_mib + 2000
    assert book_limit_pct(book) == limit_pct([online], POLICY)
    assert book_limit_pct(more) == limit_pct([online, batch], POLICY)
    assert book_limit_pct(book) != book_limit_pct(more)


def test_the_rest_of_a_move_is_worked_out_again_once_the_replica_changed():
    draft = a_draft(a_host(), a_card(), a_service(), a_replica(1, phase=Phase.ASLEEP))
    first = rest_s(draft, draft.replicas[1])
    assert rest_s(draft, draft.replicas[1]) is first
    assert draft.do(Decision(Verb.WAKE, "s", Reason.HOLD, 1))
    assert rest_s(draft, draft.replicas[1]) != first


def test_a_load_that_this_plan_begins_is_seen_on_the_whole_host():
    cards = [a_card(f"c{i}") for i in range(POLICY.max_loads_per_host + 1)]
    names = [f"s{i}" for i in range(len(cards))]
    draft = a_draft(a_host(), *cards, *(a_service(name) for name in names))
    assert draft.loading_on("h1") == []
    for card, name in list(zip(cards, names, strict=True))[:-1]:
        assert waits_for(draft, card) is None
        assert draft.do(Decision(Verb.START, name, Reason.HOLD, cards=(card.id,), kv_granted_mib=4000))
    assert len(draft.loading_on("h1")) == POLICY.max_loads_per_host
    assert waits_for(draft, cards[-1]) is not None


def test_only_who_is_asked_for_is_looked_at():
    hot, cold = a_service("hot", tier=Tier.HOT), a_service("cold")
    order = Order(1, Act.PRELOAD, "cold", NOW + 60, count=2)
    assert [w.service.name for w in wishes(a_draft(a_host(), a_card(), hot, cold))] == ["hot"]
    draft = a_draft(a_host(), a_card(), hot, cold, orders=(order,))
    assert {w.service.name for w in wishes(draft)} == {"hot", "cold"}
    assert (ordered(draft, cold), ordered(draft, hot)) == (2, 0)
    assert draft.orders_of("cold") == [order]
    assert draft.orders_of("hot") == []


def test_the_dearest_card_is_found_among_cards_of_one_host_too():
    """One card a host and price stands for all of them."""
    cards = [a_card("a", price_fen_h=900), a_card("b", price_fen_h=300), a_card("c", price_fen_h=300)]
    placed = place(a_draft(a_host(), *cards, a_service()), POLICY, a_service(), NOW)
    assert placed.cards == ("b",)

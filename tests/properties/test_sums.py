"""The planner's short ways against the long ones: numbers and ledgers, sieves and lists, bounds and all."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision import Refusal
from scheduler.draft import Draft
from scheduler.filters import LASTING, awake_limit
from scheduler.growth import growth
from scheduler.memory import after_leaving, start_grant, wake_fits
from scheduler.placement import nearest, nearest_of, openings, verdicts
from scheduler.potential import falls_asleep, parts_of, potential_of
from scheduler.ranking import ranking
from scheduler.room import _cheapest, _rooms, _soonest, make_room
from scheduler.scores import NAMES, field_of, scored, weigh
from scheduler.sieve import Sieve
from scheduler.sums import room_now, start_of, sums_of, sums_on, wake_of
from scheduler.victims import candidates, victims
from scheduler.ways import Ask, Rooms
from scheduler.where import AnyOpen, Only, left, now
from scheduler.world import Card, Phase, Pool, Quota, Swap, World
from tests.properties.test_plan import MANY
from tests.properties.worlds import any_world
from tests.scheduler.build import NOW, POLICY


def a_farm(seed: int) -> World:
    """A random world with pools, tenants apart, swaps of late, and services of different shapes."""
    dice = Random(seed)
    world = any_world(dice.randint(1, 6), dice.randint(2, 6), dice.randint(1, 7), seed)
    names = sorted(world.services)
    pools = {"default": Pool("default"), "res": Pool("res", dice.choice(["resident", "ondemand"]))}
    if dice.random() < 0.5:
        pools["res"] = replace(pools["res"], tenants=frozenset("t"))
    return replace(
        world,
        pools=pools,
        cards={i: replace(c, pool=dice.choice(["default", "default", "res"])) for i, c in world.cards.items()},
        services={
            n: replace(s, pools=dice.choice([frozenset(), frozenset({"res"})]), one_request_mib=dice.choice([0, 3000]))
            for n, s in world.services.items()
        },
        swaps=tuple(Swap(dice.choice(names), dice.choice(names), NOW - dice.choice([9, 290])) for _ in range(3)),
        quotas=dice.choice([{}, {("t", pool): Quota(dice.choice([9000, 90000]), 0) for pool in pools}]),
    )


farms = st.builds(a_farm, st.integers(0, 2**32))


@MANY
@given(farms)
def test_a_start_fits_the_sums_where_the_ledger_grants_it(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for card in draft.cards():
        book = after_leaving(draft.book(card.id), ())
        sums = sums_of(book)
        for service in world.services.values():
            roomy = awake_limit(draft, service, card, world.hosts[card.host]) is None
            granted = roomy and not isinstance(start_grant(book, service), Refusal)
            assert granted == (sums is not None and start_of(service, POLICY).fits(sums)), (card.id, service.name)
            granted = roomy and not isinstance(start_grant(draft.book(card.id), service), Refusal)
            assert granted == start_of(service, POLICY).fits(sums_on(draft)[card.id]), (card.id, service.name)


@MANY
@given(farms)
def test_a_wake_fits_the_sums_where_the_ledger_lets_it(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for replica in world.replicas.values():
        if replica.phase is Phase.ASLEEP:
            book = after_leaving(draft.book(replica.cards[0]), ())
            sums, service = sums_of(book), world.services[replica.service]
            lets = wake_fits(book, replica, service) is None
            assert lets == (sums is not None and wake_of(replica, service, POLICY).fits(sums))


@MANY
@given(farms)
def test_who_goes_leaves_the_sums_as_it_leaves_the_ledger(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for card in draft.cards():
        way = parts_of(draft, card.id)
        if way is None:
            continue
        gone = {r.id for r in potential_of(draft, card.id).leaving} | {c.replica.id for c in candidates(draft, card.id)}
        asleep = {i for i in gone if falls_asleep(draft, draft.replicas[i])}
        book = draft.book(card.id)
        assert way.sums.without(way.stopped[i] for i in gone) == sums_of(after_leaving(book, gone))
        assert way.sums.without(way.asleep[i] for i in gone) == sums_of(after_leaving(book, gone - asleep, asleep))


@MANY
@given(farms)
def test_nobody_is_left_out_who_could_make_the_room(world: World) -> None:
    """Whom a bound passes over has not enough to give; all others are as without it."""
    draft = Draft(world, POLICY, NOW)
    for card in draft.cards():
        held = draft.book(card.id).held
        for service in world.services.values():
            everybody = victims(draft, card.id, service)
            total = sum(held[v.replica.id] for v in everybody)
            assert victims(draft, card.id, service, total) == everybody
            if not world.quotas:
                assert victims(draft, card.id, service, total + 1) == []


@MANY
@given(farms)
def test_offers_weigh_what_their_scores_say_one_by_one(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for service in world.services.values():
        offers = [v.offer for v in openings(draft, service).fitting if v.offer is not None]
        if offers:
            field = field_of(draft, service, offers)
            each = [scored(draft, service, offer, field) for offer in offers]
            assert weigh(draft, service, offers) == [tuple(of.values()) for of in each]
            assert all(list(of) == NAMES for of in each)


@MANY
@given(farms)
def test_a_sieve_answers_as_the_list_of_filters(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for service in world.services.values():
        sieve = Sieve(draft, service)
        for card in draft.cards():
            host = world.hosts[card.host]
            asked = ((i, q(draft, service, card, host)) for i, q in enumerate(LASTING))
            first = next(((i, refusal) for i, refusal in asked if refusal is not None), None)
            assert sieve.refusal(card, host) == first, (card.id, service.name)
        refused = {card.id for card in draft.cards() if sieve.refusal(card, world.hosts[card.host]) is not None}
        assert [card.id for card in sieve.open()] == [card.id for card in draft.cards() if card.id not in refused]


@MANY
@given(farms)
def test_openings_are_the_cards_that_say_so_one_by_one(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for service in world.services.values():
        answers, there = verdicts(draft, service), openings(draft, service)
        assert there.fitting == [v for v in answers if v.offer is not None]
        at_once = [v for v in there.fitting if v.refusal is None]
        assert openings(draft, service, now=True).fitting == (at_once or there.fitting)
        if not there.fitting:
            assert nearest(draft, service, there.sieve) == nearest_of(draft, service, answers)


def asks(world: World, draft: Draft) -> list[tuple[Ask, list[list[Card]]]]:
    """Each service for any one card, and for two cards of one host."""
    alone = [(Ask(service), [draft.cards()]) for service in world.services.values()]
    hosts = [[c for c in draft.cards() if c.host == host] for host in sorted(world.hosts)]
    pairs = [there for there in hosts if len(there) > 1]
    return alone + [(Ask(replace(s, cards_per_replica=2)), pairs) for s in world.services.values()]


def each_way(draft: Draft, ask: Ask, places: list[list[Card]], may_take: bool, resting: bool) -> list[Rooms]:
    """All ways there are, one after the other."""
    tried = places if ask.need > 1 else [[card] for card in places[0]]
    takes = start_of(ask.service, POLICY)
    rooms = [_rooms(draft, ask, cards, takes, may_take, resting=resting) for cards in tried]
    return [room for room in rooms if room is not None]


@MANY
@given(farms, st.booleans())
def test_the_cheapest_room_is_the_cheapest_of_all(world: World, may_take: bool) -> None:
    draft = Draft(world, POLICY, NOW)
    for ask, places in asks(world, draft):
        found = each_way(draft, ask, places, may_take, resting=False)
        best = _cheapest(draft, ask, Only(places), may_take)
        assert (best and best.cost) == min((r.cost for r in found), default=None)
        assert best is None or best in found


@MANY
@given(farms)
def test_the_soonest_room_is_the_soonest_of_all(world: World) -> None:
    draft = Draft(world, POLICY, NOW)
    for ask, places in asks(world, draft):
        if _cheapest(draft, ask, Only(places), True) is not None:
            continue  # it is asked only where none can be made now
        found = each_way(draft, ask, places, may_take=True, resting=True)
        best = _soonest(draft, ask, Only(places))
        assert (best and (best.rest_s, best.cost)) == min(((r.rest_s, r.cost) for r in found), default=None)
        assert best is None or best in found


@MANY
@given(farms, st.integers(-5000, 90000))
def test_all_that_are_open_are_found_by_their_numbers_as_one_by_one(world: World, least: int) -> None:
    draft = Draft(world, POLICY, NOW)
    for service in world.services.values():
        sieve = Sieve(draft, service)
        those, each = AnyOpen(sieve), Only([sieve.open()])
        for number in (left, now):
            assert those.having(draft, number, least) == each.having(draft, number, least)
        assert list(those.later(draft, least)) == list(each.later(draft, least))


@MANY
@given(farms)
def test_what_a_draft_keeps_is_what_a_new_one_finds(world: World) -> None:
    """After a stage has decided and promised, every kept answer is still the answer."""
    draft = Draft(world, POLICY, NOW)
    for service in world.services.values():
        openings(draft, service)
        verdicts(draft, service)
        make_room(draft, Ask(service), Only([draft.cards()]), may_take=False)
    growth(draft, POLICY, NOW)
    kept = _answers(draft)
    draft._tables.clear()
    draft._of_books.clear()
    draft._there.clear()
    draft.rankings.clear()
    assert kept == _answers(draft)


def _answers(draft: Draft) -> list[object]:
    cards = [card.id for card in draft.cards()]
    of_cards = [(potential_of(draft, card), parts_of(draft, card), candidates(draft, card)) for card in cards]
    there = {s.name: openings(draft, s) for s in draft.services.values()}
    of_services = [(o.sieve.open(), o.fitting, verdicts(draft, o.sieve.service)) for o in there.values()]
    return [of_cards, of_services, [list(ranking(draft, number).down(draft)) for number in (room_now, now, left)]]

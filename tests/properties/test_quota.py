"""Quotas over random worlds and random days: never beyond by a new start, never refused within, lent and got back."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from scheduler.decision import Code, Reason, Verb
from scheduler.draft import Draft
from scheduler.facts import counting
from scheduler.lending import plannable_mib, promised_mib, shares
from scheduler.memory import held_mib
from scheduler.planner import plan
from scheduler.quota import used_mib
from scheduler.world import Phase, Quota, World
from tests.plays.farm import Farm
from tests.properties.test_all_stages import MANY, charged, loads
from tests.properties.test_plan import SOME
from tests.properties.wild import quotas as any_quotas
from tests.properties.wild import wild_world
from tests.scheduler.build import NOW, POLICY, a_card, a_service, a_world, acting

STAY_S = 60
QUICK = replace(POLICY, min_loaded_s=STAY_S)


def limited(cards: int, services: int, density: int, seed: int) -> World:
    return replace(wild_world(cards, services, density, seed), quotas=any_quotas(Random(seed + 2)))


limited_worlds = st.builds(limited, st.integers(1, 6), st.integers(1, 6), st.integers(0, 6), st.integers(0, 2**32))


@MANY
@given(limited_worlds)
def test_no_start_or_wake_brings_a_tenant_beyond_its_quota(world):
    decisions = plan(world, POLICY, NOW)
    draft = charged(world, decisions)
    for decision, cards in loads(world, decisions):
        key = world.services[decision.service].tenant, world.cards[cards[0]].pool
        if key in world.quotas:
            assert used_mib(draft, *key) <= world.quotas[key].limit_mib, decision


def plainly(draft: Draft, tenant: str, pool: str) -> int:
    there = draft.fact(counting)
    cards = (card for card in draft.world.cards.values() if card.pool == pool and card.id in there)
    seats = (seat for card in cards for seat in draft.book(card.id).seats if seat.service is not None)
    return sum(held_mib(seat.replica, seat.service, POLICY) for seat in seats if seat.service.tenant == tenant)


@MANY
@given(limited_worlds)
def test_the_sums_are_kept_up_with_every_decision_and_promise(world):
    draft = Draft(world, POLICY, NOW)
    decisions = acting(plan(world, POLICY, NOW))
    for decision in decisions:
        draft.do(decision)
        if decision.cards:
            draft.promise([draft.phantom(decision.service, decision.cards, 1000)])
        for tenant, pool in world.quotas:
            assert used_mib(draft, tenant, pool) == plainly(draft, tenant, pool)


@MANY
@given(limited_worlds)
def test_nobody_is_refused_for_a_quota_that_has_room(world):
    """Within guarantee and borrowable no quota is the reason, and the numbers of a refusal are true."""
    for d in plan(world, POLICY, NOW):
        if d.refusal is None or d.refusal.code is not Code.QUOTA_EXCEEDED:
            continue
        numbers = d.refusal.numbers
        quota = world.quotas[world.services[d.service].tenant, numbers["pool"]]
        assert (numbers["guaranteed_mib"], numbers["borrowable_mib"]) == (quota.guaranteed_mib, quota.borrowable_mib)
        assert numbers["holds_mib"] + numbers["asked_mib"] - quota.limit_mib == numbers["needed_mib"] > 0


@MANY
@given(limited_worlds)
def test_what_is_lent_is_what_is_borrowed_beyond_what_nobody_was_promised(world):
    found = shares(world, POLICY)
    draft = Draft(world, POLICY, NOW)
    for pool in {share.pool for share in found}:
        there = [share for share in found if share.pool == pool]
        lent, borrowed = sum(s.lent_mib for s in there), sum(s.borrowed_mib for s in there)
        free = max(0, plannable_mib(world, POLICY, pool) - promised_mib(world.quotas, pool))
        assert lent <= max(0, borrowed - free)
        assert all(s.lent_mib <= s.unused_mib and s.used_mib >= used_mib(draft, s.tenant, pool) for s in there)
        if len(draft.fact(counting)) == len(world.cards):  # else: copies that count no more hold memory yet
            assert all(s.used_mib == used_mib(draft, s.tenant, pool) for s in there)


def a_day(seed: int) -> tuple[Farm, list[str]]:
    """Two companies on few cards, the lender of lower priority; the borrower's calls never leave it idle for long."""
    dice = Random(seed)
    cards = [a_card(f"c{i}", f"h{i % 2}", total=24576) for i in range(dice.randint(1, 3))]
    borrowers = [a_service(f"b{i}", tenant="u", priority=dice.choice([50, 90])) for i in range(len(cards))]
    lender = a_service("l", tenant="t", priority=dice.choice([10, 50, 90]))
    quotas = {("t", "default"): Quota(20000 * len(cards), 0), ("u", "default"): Quota(0, 80000)}
    world = a_world(*cards, *borrowers, lender, quotas=quotas)
    return Farm(world, policy=QUICK), [s.name for s in borrowers]


@SOME
@given(st.integers(0, 2**32))
def test_a_guarantee_is_lent_when_idle_and_got_back_in_bounded_time_without_a_cut(seed):
    farm, borrowers = a_day(seed)
    for name in borrowers:
        farm.call(name)
        farm.until(lambda f, name=name: bool(f.ready(name)), 60)
    farm.step(STAY_S)
    lent = {share.tenant: share.lent_mib for share in shares(farm.world, QUICK)}
    assert lent["t"] > 0, "lent: the borrowers have filled the pool"
    farm.calls = {r.id: 1 for r in farm.world.replicas.values()}  # long answers on all of them
    farm.call("l", stream=True)
    farm.step(1)
    leaving = [r for r in farm.world.replicas.values() if r.phase is Phase.DRAINING]
    assert [r.reason for r in leaving] == [Reason.ROOM], "one copy is as much as it needs"
    for _ in range(20):
        farm.step(1)
    assert farm.world.replicas[leaving[0].id].phase is Phase.DRAINING, "nobody is cut"
    farm.calls.clear()
    farm.until(lambda f: bool(f.ready("l")), 60)
    gone = [d for name in borrowers for d in farm.did(name) if d.verb not in (Verb.START, Verb.WAKE)]
    assert all(d.reason is Reason.ROOM and not d.force for d in gone)


def test_the_plan_without_quotas_is_what_it_was():
    """No quota, no right: the same decisions as with one that binds nobody."""
    for seed in range(40):
        world = replace(wild_world(4, 5, 5, seed), quotas={})
        elsewhere = replace(world, quotas={("nobody", "nowhere"): Quota(1, 1)})
        assert plan(world, POLICY, NOW) == plan(elsewhere, POLICY, NOW)

"""Repack over random worlds: no move breaks a rule, none cuts a call, and what is stranded never grows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler import repack_cpsat
from scheduler.decision import Reason, Verb
from scheduler.draft import Draft
from scheduler.memory import awake_count, book_limit_pct, kv_sums, room_mib, within_oversell
from scheduler.move import Move
from scheduler.planner import plan
from scheduler.repack import propose
from scheduler.sketch import Proposal, moved
from scheduler.world import Phase, Want, World
from tests.properties.worlds import worlds
from tests.scheduler.build import NOW, POLICY

SAME = settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
MANY = settings(SAME, max_examples=150)
FEW = settings(SAME, max_examples=12)
#: Everything is worth a move, and the search is short: what is looked for are rules that break.
EAGER = replace(POLICY, repack_gain_mib=1, repack_starts=2, repack_search_s=3)


def eager(world: World) -> Proposal:
    return propose(world, EAGER, NOW, "default")


def domains(draft: Draft, service: str) -> set[str]:
    ready = [r for r in draft.staying(service) if r.cards[0] in draft.world.cards]
    return {draft.world.cards[r.cards[0]].host for r in ready}


def check_move(world: World, step) -> World:
    """The rules, asked by themselves: not of the filters that let the move through. Returns the world after it."""
    before = Draft(world, EAGER, NOW)
    old, service = world.replicas[step.replica], world.services[step.service]
    assert old.phase is Phase.READY
    assert old.want is Want.READY
    assert not old.external
    assert service.whitelisted_until is None or service.whitelisted_until <= NOW
    assert step.kv_granted_mib >= old.kv_granted_mib
    # make-before-break: for a while both hold their memory
    both = {**world.replicas, -1: replace(old, id=-1, cards=step.target, kv_granted_mib=step.kv_granted_mib)}
    while_both = Draft(replace(world, replicas=both), EAGER, NOW)
    for card_id in step.target:
        card = world.cards[card_id]
        assert card.healthy
        assert not card.cordoned
        assert NOW - world.hosts[card.host].seen_at <= EAGER.silent_s
        others = [r for r in before.on_card(card_id) if r.id != old.id]
        assert service.name not in {r.service for r in others}
        for other in (world.services[r.service] for r in others):
            assert other.tenant not in service.apart_from
            assert service.tenant not in other.apart_from
        book = while_both.book(card_id)
        assert room_mib(replace(book, external_mib=before.book(card_id).external_mib)) >= 0
        assert awake_count(book) <= EAGER.max_replicas_per_card
        assert within_oversell(*kv_sums(book), book_limit_pct(book))
    after = moved(world, EAGER, old, step.target, step.kv_granted_mib)
    if service.min_replicas >= 2 and len(domains(before, service.name)) >= 2:
        assert len(domains(Draft(after, EAGER, NOW), service.name)) >= 2
    return after


@MANY
@given(worlds())
def test_no_move_breaks_a_rule(world):
    proposal = eager(world)
    assert len(proposal.steps) <= EAGER.repack_max_moves
    assert len({s.replica for s in proposal.steps}) == len(proposal.steps)
    for step in proposal.steps:
        world = check_move(world, step)


@MANY
@given(worlds())
def test_it_strands_less_or_empties_a_card_or_proposes_nothing(world):
    proposal = eager(world)
    assert proposal.after.stranded_mib <= proposal.before.stranded_mib + 1e-6
    if proposal.steps:
        less = proposal.after.stranded_mib < proposal.before.stranded_mib
        assert less or proposal.empty_after > proposal.empty_before
    else:
        assert (proposal.after, proposal.empty_after) == (proposal.before, proposal.empty_before)


@MANY
@given(worlds())
def test_the_same_world_has_the_same_proposal(world):
    turned = replace(world, replicas=dict(reversed(world.replicas.items())), cards=dict(reversed(world.cards.items())))
    assert eager(world).steps == eager(turned).steps


@FEW
@given(worlds())
def test_what_the_solver_finds_breaks_no_rule_either_and_is_never_worse(world):
    first = eager(world)
    search = repack_cpsat.Search(world, EAGER, NOW, first)
    for _ in search.run():
        pass
    better = search.better()
    if better is None:
        return
    assert better.after.stranded_mib < first.after.stranded_mib
    assert len(better.steps) <= EAGER.repack_max_moves
    for step in better.steps:
        world = check_move(world, step)


def with_moves(world: World, under_way: bool) -> World:
    """The proposal taken up; or, of each of its moves, a copy that is ready already."""
    steps = eager(world).steps
    moves = [Move(n, 1, n, s.replica, s.service, s.target) for n, s in enumerate(steps, 1)]
    if under_way:
        moves = [replace(m, copy=1000 + m.number) for m in moves]
        copies = {
            m.copy: replace(world.replicas[m.replica], id=m.copy, cards=m.cards, reason="repack", drain_at=None)
            for m in moves
        }
        world = replace(world, replicas={**world.replicas, **copies})
    return replace(world, moves=tuple(moves), site_minute=POLICY.repack_from_min)


@MANY
@given(worlds(), st.booleans())
def test_a_plan_never_cuts_a_call_for_a_move(world, under_way):
    world = with_moves(world, under_way)
    for d in (d for d in plan(world, EAGER, NOW) if d.refusal is None and d.reason is Reason.REPACK):
        assert not d.force
        if d.verb is Verb.DRAIN:
            (move,) = [m for m in world.moves if m.id == d.move]
            copy = world.replicas[move.copy]
            assert (copy.phase, copy.want) == (Phase.READY, Want.READY)
        elif d.verb in (Verb.STOP, Verb.SLEEP):
            old = world.replicas[d.replica]
            assert old.quiet or old.phase is Phase.FAILED


@MANY
@given(worlds())
def test_at_most_one_move_begins_and_only_while_nobody_waits(world):
    world = with_moves(world, under_way=False)
    begun = [d for d in plan(world, EAGER, NOW) if d.refusal is None and d.reason is Reason.REPACK]
    assert len([d for d in begun if d.verb is Verb.START]) <= 1
    if any(s.demand.held for s in world.services.values()):
        assert begun == []

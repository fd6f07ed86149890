"""A host is emptied by a time: replacements first where they are owed, calls cut at the deadline and not before."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Reason, Verb
from scheduler.estimate import drain_bound_s
from scheduler.planner import plan
from scheduler.world import Phase, Tier, Want, World
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_host, a_replica, a_service, a_world
from tests.scheduler.cases import cases

FAR = NOW + 7200.0


def leaving(name: str = "h1", by: float = FAR) -> object:
    return a_host(name, leave_by=by, cordoned=True)


def three_hosts(*things: object, by: float = FAR) -> World:
    """h1 is being emptied; h2 and h3 have room."""
    cards = [a_card(f"c{i}", f"h{i}") for i in (1, 2, 3)]
    return a_world(*cards, leaving(by=by), a_host("h2"), a_host("h3"), *things)


def acts(world: World, now: float = NOW) -> list[tuple[Verb, int | None, bool]]:
    return [(d.verb, d.replica, d.force) for d in plan(world, POLICY, now) if d.reason is Reason.MAINTENANCE]


@cases(
    ("service", "goes"),
    [
        (a_service(), True),
        (a_service(tier=Tier.WARM), True),
        (a_service(min_replicas=1), False),
        (a_service(tier=Tier.HOT), False),
        (a_service(min_replicas=2, max_replicas=4), False),
    ],
)
def test_who_is_owed_a_ready_copy_waits_for_its_replacement(service, goes):
    world = three_hosts(service, a_replica())
    assert acts(world) == ([(Verb.DRAIN, 1, False)] if goes else [])
    starts = [d for d in plan(world, POLICY, NOW) if d.verb is Verb.START]
    assert all(d.cards[0] != "c1" for d in starts)
    assert bool(starts) is not goes, "the replacement is started at once"


def test_it_goes_when_the_replacement_is_ready():
    world = three_hosts(a_service(min_replicas=1, max_replicas=1), a_replica(), a_replica(2, card="c2"))
    assert acts(world) == [(Verb.DRAIN, 1, False)]


@cases(("third", "goes"), [(False, False), (True, True)])
def test_two_hosts_stay_two_hosts(third, goes):
    copies = [a_replica(1, card="c1"), a_replica(2, card="c2")] + ([a_replica(3, card="c3")] if third else [])
    world = three_hosts(a_service(min_replicas=2, max_replicas=4), *copies)
    assert ((Verb.DRAIN, 1, False) in acts(world)) is goes


def test_shortly_before_the_deadline_it_goes_without_one():
    service = a_service(min_replicas=1, generation_s=10.0)
    bound = drain_bound_s(POLICY, service)
    cards = [a_card("c1", "h1"), a_card("c2", "h2", total=4000)]
    world = a_world(*cards, leaving(by=NOW + bound + 60), service, a_replica(in_flight=2))
    assert acts(world) == [], "nowhere to go, and time is left"
    later = replace(world, hosts={n: replace(h, seen_at=NOW + 60) for n, h in world.hosts.items()})
    assert acts(later, NOW + 60) == [(Verb.DRAIN, 1, False)]


@cases(
    ("quiet", "now", "found"),
    [
        (True, NOW, [(Verb.STOP, 1, False)]),
        (False, NOW, []),
        (False, FAR - 1, []),
        (False, FAR, [(Verb.STOP, 1, True)]),
        (True, FAR, [(Verb.STOP, 1, False)]),
    ],
)
def test_calls_are_cut_at_the_deadline_and_not_before(quiet, now, found):
    going = a_replica(phase=Phase.DRAINING, reason="maintenance", quiet=quiet, in_flight=0 if quiet else 3)
    world = three_hosts(a_service(), going)
    world = replace(world, hosts={n: replace(h, seen_at=now) for n, h in world.hosts.items()})
    assert acts(world, now) == found


@cases("phase", [Phase.STARTING, Phase.ASLEEP, Phase.FAILED])
def test_what_does_not_serve_is_stopped_at_once(phase):
    world = three_hosts(a_service(tier=Tier.WARM), a_replica(phase=phase))
    assert (Verb.STOP, 1, False) in acts(world)


def test_others_and_imported_engines_are_left_alone():
    copies = [a_replica(1, card="c1", external=True), a_replica(2, "other", card="c2")]
    assert acts(three_hosts(a_service(), a_service("other"), *copies)) == []


def test_nobody_hears_of_it_on_a_silent_host():
    world = three_hosts(a_service(), a_replica())
    silent = replace(world.hosts["h1"], seen_at=NOW - POLICY.silent_s - 1)
    assert acts(replace(world, hosts={**world.hosts, "h1": silent})) == []


def test_what_still_drains_goes_back_to_work_when_it_is_called_off():
    going = a_replica(phase=Phase.DRAINING, reason="maintenance", in_flight=1)
    world = three_hosts(a_service(), going)
    back = replace(world, hosts={**world.hosts, "h1": a_host("h1")})
    assert [(d.verb, d.reason) for d in plan(back, POLICY, NOW) if d.replica == 1] == [(Verb.WAKE, Reason.UNNEEDED)]
    assert not [d for d in plan(world, POLICY, NOW) if d.verb is Verb.WAKE]


def test_a_caller_does_not_fetch_back_what_leaves():
    going = a_replica(phase=Phase.DRAINING, reason="maintenance", in_flight=1)
    world = three_hosts(a_service(), going)
    farm = Farm(world, calls={1: 1})
    farm.call("s")
    farm.step()
    assert [(d.verb, d.cards[0] == "c1") for d in farm.did("s")] == [(Verb.START, False)]


@cases("least", [0, 1, 2])
@cases("copies", [1, 2, 3])
def test_a_host_becomes_empty_and_nobody_is_without(least, copies):
    """Several services at once: the host empties in time, and who is owed copies never has fewer ready."""
    services = [a_service(f"s{i}", min_replicas=least, max_replicas=4) for i in range(copies)]
    here = [a_replica(i + 1, f"s{i}", "c1") for i in range(copies)]
    there = [a_replica(i + 11, f"s{i}", "c2") for i in range(copies)] if least == 2 else []
    farm = Farm(three_hosts(*services, *here, *there))

    def empty(_: Farm) -> bool:
        for service in services:
            assert len(farm.ready(service.name)) >= least, farm.phases()
        return not [r for r in farm.world.replicas.values() if "c1" in r.cards and r.want is not Want.STOPPED]

    assert farm.until(empty, step_s=3) < 600
    assert not [d for _, d in farm.journal if d.force]

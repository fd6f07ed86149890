"""How many calls are let in: what the copies, and those that come in time, can serve within the hold."""

from __future__ import annotations

from scheduler.admission import Admission, admission
from scheduler.decision import Code, Decision, Reason, Refusal, Verb
from scheduler.looks import Day, Scaling
from scheduler.policy import Policy
from scheduler.world import Phase, Profile
from tests.scheduler.build import NOW, a_card, a_host, a_replica, a_service, a_world
from tests.scheduler.cases import cases

POLICY = Policy()


def told(*replicas, load_s: float | None = None, policy: Policy = POLICY, **service) -> Admission | None:
    """Capacity 8, a hold of 15 s and answers of 3 s unless told otherwise."""
    service = dict(max_replicas=8, generation_s=3.0, max_num_seqs=16) | service
    asked = a_service("s", **service)
    hosts = [a_card(f"c{n}", host=f"h{n}") for n in range(9)]
    loads = {("s", f"h{n}"): [load_s] * 3 for n in range(9)} if load_s is not None else {}
    world = a_world(asked, *hosts, *replicas, load_s=loads)
    return admission(world, policy, asked, replicas, NOW)


def ready(count: int):
    return [a_replica(n, "s", card=f"c{n}") for n in range(count)]


def coming(number: int, since: float = NOW):
    return a_replica(number, "s", card=f"c{number}", phase=Phase.STARTING, since=since, want_since=since)


@cases(("copies", "calls"), [(1, 48), (2, 96), (3, 140), (8, 380)])
def test_what_is_ready_serves_within_the_hold(copies, calls):
    """8 at once and 8 more each 3 s for 15 s: 48 a copy; told in two digits."""
    assert told(*ready(copies)).calls == calls


@cases(
    ("fields", "calls"),
    [
        ({"generation_s": 15.0}, 33),  # 16, and the queue of 17 the autoscaler must see, at least
        ({"generation_s": 1.0}, 120),
        ({"hold_cap_s": 30.0}, 88),
        ({"scaling": Scaling(days=(Day(int(NOW) // 86400, 12.0),))}, 72),
    ],
)
def test_it_follows_from_answers_hold_and_capacity(fields, calls):
    assert told(*ready(1), **fields).calls == calls


@cases(("load_s", "more"), [(3.0, 32), (12.0, 8), (15.0, 0), (45.0, 0)])
def test_a_copy_on_its_way_counts_from_its_arrival(load_s, more):
    assert told(*ready(1), coming(5), load_s=load_s).calls == 48 + more


def test_who_is_one_too_many_comes_back_with_the_first_new_copy():
    assert told(*ready(1), coming(5), load_s=42.0).retry_after_s == 42
    assert told(*ready(1), coming(5, NOW - 30), coming(6), load_s=42.0).retry_after_s == 12
    assert told(*ready(8)).retry_after_s == 3, "nothing comes: when an answer has ended"


def test_nor_must_the_new_copy_have_begun_to_load():
    """Room is being made for it: 7 s, then its load."""
    wait = Refusal(Code.NOT_NOW, {"host": "h5", "wait_s": 7.0, "wait_low_s": 7.0})
    asked = a_service("s", max_replicas=8, generation_s=3.0)
    copies = ready(1)
    world = a_world(
        asked, *[a_card(f"c{n}", host=f"h{n}") for n in range(9)], *copies, load_s={("s", "h5"): [40.0] * 3}
    )
    planned = [Decision(Verb.START, "s", Reason.QUEUE, refusal=wait)]
    assert admission(world, POLICY, asked, copies, NOW, planned).retry_after_s == 47


@cases("fields", [{"max_replicas": 1}, {"profile": Profile.BATCH}, {"generation_s": None}, {"generation_s": 0.0}])
def test_no_limit_where_nothing_scales_or_nobody_knows(fields):
    assert told(*ready(1), **fields) is None


def test_no_limit_while_nothing_is_ready():
    """Then the gateway's hold has its own."""
    assert told(coming(1)) is None
    assert told(a_replica(1, "s", card="c1", phase=Phase.DRAINING)) is None


def test_a_copy_on_a_silent_host_serves_nobody():
    asked = a_service("s", max_replicas=8, generation_s=3.0)
    copies = [a_replica(1, "s", card="c1"), a_replica(2, "s", card="c2")]
    world = a_world(asked, a_card("c1", host="h1"), a_card("c2", host="h2"), a_host("h2", seen_at=NOW - 20), *copies)
    assert admission(world, POLICY, asked, copies, NOW).calls == 48

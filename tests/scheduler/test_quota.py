"""Quotas: who is refused by which numbers, what is lent, and who gives back what others were promised."""

from __future__ import annotations

from dataclasses import replace

from scheduler.decision import Code, Reason, Verb
from scheduler.lending import plannable_mib, shares, short_mib
from scheduler.planner import plan
from scheduler.world import Phase, Profile, Quota
from tests.scheduler.build import NOW, POLICY, a_card, a_host, a_replica, a_service, a_world, acting, held
from tests.scheduler.cases import cases

SMALL = a_card(total=24576)  # 22,009 MiB to plan with: one service of 13,000 MiB, and a half
ASKS = a_service("s", tenant="t", demand=held(), priority=10)
BUSY = [a_service("b", tenant="u", priority=90), a_replica(1, "b", in_flight=2)]
WHOLE, NONE = Quota(13000, 0), Quota(0, 0)


def planned(*things, **quotas):
    return plan(a_world(*things, quotas={(tenant, "default"): q for tenant, q in quotas.items()}), POLICY, NOW)


def drains(*things, **quotas):
    decisions = acting(planned(*things, **quotas))
    return [(d.replica, d.not_before) for d in decisions if d.verb is Verb.DRAIN and d.reason is Reason.ROOM]


def test_a_refusal_says_what_is_used_promised_and_needed():
    mine = [a_service("mine", tenant="t"), a_replica(1, "mine", in_flight=1)]
    (refused,) = [d.refusal for d in planned(ASKS, *mine, t=Quota(10000, 12000)) if d.refusal]
    assert refused.code is Code.QUOTA_EXCEEDED
    assert (refused.numbers["holds_mib"], refused.numbers["asked_mib"]) == (13000, 13000)
    numbers = {"guaranteed_mib": 10000, "borrowable_mib": 12000, "needed_mib": 4000, "pool": "default", "tenant": "t"}
    assert numbers.items() <= refused.numbers.items()


@cases(("pool", "starts"), [("default", 0), ("other", 1)])
def test_each_pool_has_its_own(pool, starts):
    world = a_world(ASKS, a_card(pool=pool), quotas={("t", "default"): Quota(12999, 0)})
    assert len(acting(plan(world, POLICY, NOW))) == starts


@cases(("quota", "verbs"), [(Quota(13000, 0), [Verb.WAKE]), (Quota(0, 12999), []), (Quota(1300, 11700), [Verb.WAKE])])
def test_a_wake_takes_what_is_beyond_the_residue(quota, verbs):
    asleep = a_replica(1, phase=Phase.ASLEEP)
    assert [d.verb for d in acting(planned(ASKS, asleep, t=quota))] == verbs


@cases(
    ("quotas", "going"),
    [
        ({}, []),
        ({"t": WHOLE}, [(1, None)]),
        ({"t": WHOLE, "u": Quota(8000, 9000)}, [(1, None)]),
        ({"t": WHOLE, "u": WHOLE}, []),  # both within theirs: priority decides
        ({"t": Quota(12999, 9000)}, []),  # partly borrowed: no claim to others'
    ],
)
def test_what_was_promised_comes_back_from_who_borrowed_it(quotas, going):
    assert drains(SMALL, ASKS, *BUSY, **quotas) == going


@cases("kept", [{"whitelisted_until": NOW + 9}, {"min_replicas": 1}, {"first_token_s": 0.5}])
def test_who_is_kept_is_kept_from_the_lender_too(kept):
    borrower = a_service("b", tenant="u", priority=90, **kept)
    assert drains(SMALL, ASKS, borrower, BUSY[1], t=WHOLE) == []


def test_nobody_gives_back_more_than_it_borrowed():
    asks = a_service("s", weights=35000, tenant="t", demand=held(), priority=10)
    others = [a_service(n, tenant="u", priority=90) for n in "bcdef"]
    busy = [a_replica(i, s.name, in_flight=1) for i, s in enumerate(others[:4], 1)]
    assert len(drains(a_card(total=66000), asks, *others, *busy, t=Quota(60000, 0))) == 3
    assert drains(a_card(total=66000), asks, *others, *busy, t=Quota(60000, 0), u=Quota(39000, 20000)) == []


@cases(("quotas", "going"), [({}, [1]), ({"u": WHOLE}, []), ({"u": WHOLE, "t": WHOLE}, [1]), ({"u": NONE}, [1])])
def test_who_borrows_takes_nothing_that_is_used_within_a_guarantee(quotas, going):
    asks = a_service("s", tenant="t", demand=held(), priority=99)
    assert [replica for replica, _ in drains(SMALL, asks, *BUSY, **quotas)] == going


def test_what_is_promised_and_idle_is_lent():
    asks = a_service("s", tenant="t", demand=held(), priority=90)
    idle = [a_service("b", tenant="u", priority=50), a_replica(1, "b")]
    assert drains(SMALL, asks, *idle, u=WHOLE) == [(1, NOW + POLICY.grace_room_s)]


def test_shares_say_who_lends_and_who_borrows():
    services = [a_service(n, tenant=n, profile=Profile.ONLINE) for n in "abc"]
    quotas = {("a", "default"): Quota(20000, 0), ("b", "default"): Quota(1000, 50000), ("x", "default"): Quota(0, 5)}
    world = a_world(SMALL, *services, a_replica(1, "b"), a_replica(2, "c"), quotas=quotas)
    found = {s.tenant: (s.used_mib, s.borrowed_mib, s.lent_mib) for s in shares(world, POLICY)}
    free = 22009 - 21000
    assert found == {"a": (0, 0, 20000), "b": (13000, 12000, 0), "c": (13000, 13000, 0), "x": (0, 0, 0)}
    assert shares(a_world(SMALL, *services, a_replica(1, "b"), quotas=quotas), POLICY)[0].lent_mib == 12000 - free


def test_no_more_is_promised_than_there_is():
    world = a_world(SMALL, a_card("c2", total=24576, pool="other"), quotas={("u", "default"): Quota(20000, 9)})
    assert plannable_mib(world, POLICY, "default") == 22009
    assert [short_mib(world, POLICY, "t", "default", mib) for mib in (2009, 2010)] == [0, 1]
    assert short_mib(world, POLICY, "u", "default", 22009) == 0
    assert plannable_mib(replace(world, hosts={}), POLICY, "default") == 0, "its host is gone"


MINE = a_service("mine", tenant="t")


@cases(
    ("mine", "copy", "going"),
    [
        (MINE, {}, [(1, NOW + POLICY.grace_room_s)]),
        (MINE, {"phase": Phase.ASLEEP, "residue_mib": 9000}, []),  # stopped, which is no drain
        (MINE, {"in_flight": 2}, []),
        (a_service("mine", tenant="t", min_replicas=1), {}, []),
        (a_service("mine", tenant="t", whitelisted_until=NOW + 9), {}, []),
        (a_service("mine", tenant="u"), {}, []),
        (MINE, {"loaded_at": NOW - 9}, []),
    ],
)
def test_at_its_quota_a_company_makes_room_for_itself(mine, copy, going):
    asks = a_service("s", tenant="t", demand=held())
    things = [asks, mine, a_replica(1, "mine", **copy)]
    assert drains(*things, t=Quota(13000, 12999)) == (going if mine.tenant == "t" else [])


def test_who_waits_for_its_own_is_told_so_and_what_goes_is_not_taken_back():
    asks = a_service("s", tenant="t", demand=held())
    under_notice = a_replica(1, "mine", drain_at=NOW + 3, reason="room")
    decisions = planned(asks, MINE, under_notice, t=Quota(13000, 0))
    assert acting(decisions) == []
    (waits,) = [d.refusal for d in decisions if d.refusal]
    assert (waits.code, waits.numbers["leaving"]) == (Code.NOT_NOW, "mine")
    back = acting(planned(MINE, under_notice, t=Quota(13000, 0)))
    assert [(d.verb, d.reason) for d in back] == [(Verb.WAKE, Reason.UNNEEDED)], "nobody waits any more"


def test_as_few_of_its_own_go_as_it_takes():
    asks = a_service("s", weights=20000, tenant="t", demand=held())
    small = [a_service(n, weights=1000, tenant="t", priority=10) for n in "ab"]
    copies = [a_replica(1, "a"), a_replica(2, "b"), a_replica(3, "mine")]
    assert [r for r, _ in drains(asks, *small, MINE, *copies, t=Quota(37000, 0))] == [3]


@cases("gone", [{"seen_at": NOW - 100}, {"leave_by": NOW + 900, "cordoned": True}])
def test_what_a_lost_or_leaving_host_has_is_had_elsewhere_within_the_same_quota(gone):
    service = a_service("s", tenant="t", min_replicas=1)
    world = [a_host("h1", **gone), a_card("c1", "h1"), a_card("c2", "h2"), service, a_replica(1, "s", "c1")]
    starts = [d.cards for d in acting(planned(*world, t=WHOLE)) if d.verb is Verb.START]
    assert starts == [("c2",)]

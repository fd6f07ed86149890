"""Quotas over hours: lent at night, back in the morning, lent again; a company at its limit trades its own copies."""

from __future__ import annotations

from scheduler.decision import Code, Reason, Verb
from scheduler.lending import shares
from scheduler.policy import Policy
from scheduler.world import Phase, Quota
from tests.plays.farm import Farm
from tests.scheduler.build import a_card, a_service, a_world

QUICK = Policy(load_init_s=6.0, load_warm_up_s=2.0, min_loaded_s=60, idle_unload_s=300, grace_s=30)
CARDS = [a_card(f"c{i}", f"h{i}", total=24576) for i in range(2)]  # each has room for one copy of 13,000 MiB


def lent(farm: Farm) -> dict[str, int]:
    return {share.tenant: share.lent_mib for share in shares(farm.world, farm.policy)}


def cut(farm: Farm) -> list[object]:
    return [d for _, d in farm.journal if d.refusal is None and d.force]


def test_lent_at_night_back_in_the_morning_and_lent_again():
    services = [a_service(n, tenant="night", priority=90) for n in ("n1", "n2")] + [a_service("day", tenant="day")]
    quotas = {("day", "default"): Quota(26000, 0), ("night", "default"): Quota(15000, 30000)}
    farm = Farm(a_world(*CARDS, *services, quotas=quotas), policy=QUICK)
    for name in ("n1", "n2"):
        farm.call(name)
        farm.until(lambda f, name=name: bool(f.ready(name)), 60)
    assert lent(farm)["day"] > 0
    for _ in range(70):
        farm.step()
    farm.calls = {r.id: 3 for r in farm.world.replicas.values()}
    farm.call("day", stream=True)
    farm.step()
    (leaving,) = [r for r in farm.world.replicas.values() if r.phase is Phase.DRAINING]
    for _ in range(40):
        farm.step()
    assert farm.world.replicas[leaving.id].phase is Phase.DRAINING, "its answers are finished first"
    farm.calls.pop(leaving.id)
    farm.until(lambda f: bool(f.ready("day")), 60)
    farm.calls = {r.id: 1 for r in farm.world.replicas.values()}
    farm.call(leaving.service)
    for _ in range(120):
        farm.step()
    assert farm.ready("day"), "who borrows takes nothing that is used within a guarantee"
    assert set(farm.refusals(leaving.service)) <= {Code.NO_CAPACITY, Code.ANTI_SWAP, Code.NOT_NOW}
    farm.calls.clear()
    farm.until(lambda f: bool(f.ready(leaving.service)), 400)
    assert lent(farm)["day"] > 0, "idle again, and lent again"
    assert cut(farm) == []


def test_two_who_have_what_they_were_promised_leave_each_other_alone():
    """Three services of two companies that call all the time, and room for two: nobody swaps without end."""
    services = [a_service("a", tenant="t"), a_service("b", tenant="u"), a_service("c", tenant="u", priority=90)]
    quotas = {("t", "default"): Quota(15000, 0), ("u", "default"): Quota(15000, 15000)}
    farm = Farm(a_world(*CARDS, *services, quotas=quotas), policy=QUICK)
    for second in range(1800):
        for service in services:
            if second % 7 == 0 and not farm.world.services[service.name].demand.held:
                farm.call(service.name)
        farm.calls = {r.id: 1 for r in farm.world.replicas.values() if r.phase is Phase.READY}
        farm.step()
    starts = {s.name: len(farm.did(s.name, Verb.START)) for s in services}
    assert starts["a"] == 1, "within its guarantee and in use it is never taken"
    assert starts["b"] + starts["c"] <= 3, starts


def test_a_company_at_its_limit_trades_its_own_copies():
    services = [a_service("old", tenant="t"), a_service("new", tenant="t"), a_service("other", tenant="u")]
    farm = Farm(a_world(*CARDS, *services, quotas={("t", "default"): Quota(13000, 0)}), policy=QUICK)
    farm.call("old")
    farm.until(lambda f: bool(f.ready("old")), 60)
    for _ in range(70):
        farm.step()
    farm.call("new")
    farm.until(lambda f: bool(f.ready("new")), 60)
    went = farm.did("old", Verb.DRAIN)
    assert [d.reason for d in went] == [Reason.ROOM, Reason.ROOM], "a notice, then the drain"
    assert went[0].numbers["room_for"] == "new"
    farm.calls = {r.id: 1 for r in farm.ready("new")}
    farm.call("old")
    farm.step()
    assert farm.refusals("old")[-1] == Code.QUOTA_EXCEEDED, "in use it is not taken from an equal"
    assert cut(farm) == []

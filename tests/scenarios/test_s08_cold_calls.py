"""S08: cold calls of three sizes; who can be answered inside the hold is, who cannot is told when that is certain."""

from __future__ import annotations

import pytest

from scheduler.decision import Verb
from scheduler.hold import hold_cap_s, tell_plain_now
from tests.plays.farm import Farm
from tests.scheduler.build import NOW, POLICY, a_card, a_service, a_world

GIB = 1024
SMALL = a_service("small", 8 * GIB, 2 * GIB)
LARGE = a_service("large", 28 * GIB, 4 * GIB)
VERY_LARGE = a_service("very-large", 60 * GIB, 6 * GIB)
SIZES = [SMALL, LARGE, VERY_LARGE]
LOAD_S = {"small": 10.0, "large": 25.0, "very-large": 60.0}


def a_farm(*, learned: bool) -> Farm:
    times = {(s.name, h): [LOAD_S[s.name]] * 3 for s in SIZES for h in ("h1", "h2")} if learned else {}
    return Farm(a_world(a_card("c1", "h1"), a_card("c2", "h2"), *SIZES, load_s=times), load_s=LOAD_S)


def told_first(farm: Farm, service: str):
    return farm.told[service][0][1]


@pytest.mark.parametrize("service", [SMALL, LARGE], ids=lambda s: s.name)
@pytest.mark.parametrize("learned", [False, True], ids=["rough", "learned"])
def test_small_and_large_are_answered_within_their_hold(service, learned):
    farm = a_farm(learned=learned)
    farm.call(service.name)
    took = farm.until(lambda f: service.name in f.answered)
    assert took == LOAD_S[service.name]
    assert took <= hold_cap_s(POLICY, service)
    assert not any(outlook.plain_now for _, outlook in farm.told[service.name])


def test_the_caps_go_by_size():
    assert [hold_cap_s(POLICY, s) for s in SIZES] == [15, 30, 30]


def test_while_the_estimate_is_rough_the_very_large_ones_caller_waits_to_its_cap():
    farm = a_farm(learned=False)
    farm.call("very-large")
    farm.until(lambda f: f.now - NOW >= 30)
    assert all(not o.plain_now and o.low_s is None for _, o in farm.told["very-large"])
    at_cap = farm.told["very-large"][-1][1]
    assert at_cap.state == "loading"
    assert at_cap.eta_s > 30


def test_once_learned_the_plain_caller_is_told_at_once_with_an_estimate():
    farm = a_farm(learned=True)
    farm.call("very-large")
    farm.step()
    first = told_first(farm, "very-large")
    assert first.plain_now
    assert first.eta_s == 60
    assert tell_plain_now(hold_cap_s(POLICY, VERY_LARGE), first.low_s)


@pytest.mark.parametrize("learned", [False, True], ids=["rough", "learned"])
def test_a_stream_is_answered_after_60_s(learned):
    farm = a_farm(learned=learned)
    farm.call("very-large", stream=True)
    assert farm.until(lambda f: "very-large" in f.answered) == 60
    assert POLICY.hold_stream_s >= 60


@pytest.mark.parametrize("learned", [False, True], ids=["rough", "learned"])
def test_the_load_goes_on_after_the_caller_left_and_a_retry_finds_it_ready(learned):
    farm = a_farm(learned=learned)
    farm.call("very-large")
    farm.step()
    retry_after_s = told_first(farm, "very-large").eta_s
    farm.hang_up("very-large")
    farm.until(lambda f: bool(f.ready("very-large")))
    assert farm.now - NOW <= max(60.0, retry_after_s)
    assert farm.did("very-large", Verb.STOP) == []
    farm.call("very-large")
    assert farm.until(lambda f: "very-large" in f.answered) <= 1


def test_a_waited_for_load_goes_before_one_nobody_waits_for():
    wished = a_service("wished", 4 * GIB, 1 * GIB, wished_at=NOW)
    farm = Farm(a_world(a_card("c1"), wished, VERY_LARGE), load_s=LOAD_S)
    farm.call("very-large")
    first, *_ = farm.step()
    assert first.service == "very-large"
    assert farm.refusals("wished") == ["load_in_flight"]


def test_all_waiters_share_one_load():
    farm = a_farm(learned=True)
    for _ in range(50):
        farm.call("small", stream=True)
        farm.step(0.1)
    farm.until(lambda f: "small" in f.answered)
    assert len(farm.did("small", Verb.START)) == 1


def test_the_estimate_told_falls_as_time_passes():
    farm = a_farm(learned=True)
    farm.call("very-large", stream=True)
    farm.until(lambda f: "very-large" in f.answered)
    promised = [at + outlook.eta_s for at, outlook in farm.told["very-large"]]
    assert max(promised) - min(promised) <= 3
    assert {o.stage for _, o in farm.told["very-large"]} == {"weights", "warmup"}

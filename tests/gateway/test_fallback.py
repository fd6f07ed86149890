"""A service that is down answers through the one its owner named, through the real gateway process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.farm import Farm, on, until
from tests.gateway.test_holds_live import Caller

DOWN: dict[str, Any] = {
    "refusal": {"code": "load_failed", "zh": "装载失败", "en": "loading failed", "retry_after_s": 120.0},
}


def down(farm: Farm, name: str = "svc", **more: Any) -> None:
    farm.routed(name, **{**DOWN, "fallback": "stand-in", **more})


@pytest.fixture
def standing(farm: Farm) -> Farm:
    farm.routed("stand-in", **{**on(1), "engine_model": "small"})
    return farm


def test_the_stand_in_answers_with_a_header_that_says_so(standing: Farm) -> None:
    down(standing)
    answer = standing.call("svc", headers={"X-Request-Id": "fb-1"})
    assert (answer.status_code, answer.headers["x-gongka-fallback"]) == (200, "stand-in")
    assert "word4" in answer.text
    assert standing.door.engines[1].calls[-1]["model"] == "small"
    record = standing.record("fb-1")
    assert (record["service"], record["called"], record["outcome"]) == ("stand-in", "svc", "ok")


def test_a_stream_has_the_header_too(standing: Farm) -> None:
    down(standing)
    caller = Caller(standing, "svc", stream=True).done()
    assert (caller.status, caller.headers["x-gongka-fallback"]) == (200, "stand-in")
    assert caller.text.count("word") == 5


def test_a_stream_that_was_told_loading_hears_it_in_a_comment_line(standing: Farm) -> None:
    standing.routed("svc", state="loading", stage="weights", eta_s=40.0, fallback="stand-in")
    caller = Caller(standing, "svc", stream=True)
    until(lambda: ": gongka loading" in caller.text)
    down(standing)
    caller.done()
    assert ": gongka fallback=stand-in\n\n" in caller.text
    assert caller.text.count("word") == 5


def test_a_stand_in_that_is_cold_is_waited_for(farm: Farm) -> None:
    farm.routed("stand-in")
    down(farm)
    caller = Caller(farm, "svc")
    until(lambda: farm.held("stand-in"))
    until(lambda: "stand-in" in farm.nudges())
    farm.publish(stand_in=on(1))
    caller.done()
    assert (caller.status, caller.headers["x-gongka-fallback"]) == (200, "stand-in")


@pytest.mark.parametrize(
    "stand_in",
    [
        None,
        {"tenant": "beta", **on(1)},
        {"task": "embedding", **on(1)},
    ],
)
def test_without_one_that_may_answer_the_true_reason_is_told(farm: Farm, stand_in: dict[str, Any] | None) -> None:
    farm.publish(stand_in=stand_in)
    down(farm)
    answer = farm.call("svc")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "load_failed")
    assert answer.headers["retry-after"] == "120"
    assert "x-gongka-fallback" not in answer.headers


def test_one_of_another_company_answers_those_whom_it_is_open_to(farm: Farm) -> None:
    farm.publish(stand_in={"tenant": "beta", "audience": ["alpha"], **on(1)})
    down(farm)
    assert farm.call("svc").headers["x-gongka-fallback"] == "stand-in"


def test_a_key_for_one_service_is_answered_as_its_owner_decided(standing: Farm) -> None:
    standing.database.key(standing.alpha, "gk_one", services=["svc"])
    until(lambda: standing.call("nil", key="gk_one").status_code == 404)
    down(standing)
    assert standing.call("svc", key="gk_one").headers["x-gongka-fallback"] == "stand-in"
    assert standing.call("stand-in", key="gk_one").status_code == 404


def test_what_stands_in_has_no_stand_in_of_its_own(farm: Farm) -> None:
    farm.routed("third", **on(1))
    down(farm, "stand-in", fallback="third")
    down(farm)
    answer = farm.call("svc")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "load_failed")


def test_a_service_that_names_itself_tells_the_truth(farm: Farm) -> None:
    down(farm, fallback="svc")
    assert farm.call("svc").json()["error"]["code"] == "load_failed"


@pytest.mark.parametrize("code", ["no_capacity", "awaiting_approval", "quota_exceeded"])
def test_other_refusals_are_no_fault_and_are_told(standing: Farm, code: str) -> None:
    refusal = {**DOWN["refusal"], "code": code}
    standing.routed("svc", refusal=refusal, fallback="stand-in")
    answer = standing.call("svc")
    assert answer.json()["error"]["code"] == code
    assert "x-gongka-fallback" not in answer.headers


def test_once_it_is_ready_again_it_answers_itself(standing: Farm) -> None:
    standing.routed("svc", **{**on(2), "fallback": "stand-in"})
    answer = standing.call("svc")
    assert answer.status_code == 200
    assert "x-gongka-fallback" not in answer.headers

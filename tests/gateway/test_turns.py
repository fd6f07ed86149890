"""Calls that wait for their turn at a ready service, calls that are too long, and where long ones go."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from console.gateway.body import parse
from console.gateway.call import Call
from console.gateway.counts import Counts
from console.gateway.routes import BatchCap, Blob, Replica, Service
from console.gateway.snapshot import Key
from console.gateway.turns import Bound, batch_most, bound, lane, share
from tests.gateway.farm import Farm, on, until

SLOW = 0.15  # seconds between chunks of five


def a_call(tokens: int = 100, *, long: bool = False) -> Call:
    key = Key(1, "t", frozenset(), False, None)
    return Call("id", "/v1/chat/completions", key, "s", "t", parse(b'{"model":"s"}'), False, False, None, "ready",
                tokens=tokens, long=long)  # fmt: skip


# The rule


@pytest.mark.parametrize(
    ("total", "gateways", "mine"), [(8, 1, 8), (8, 3, 3), (1, 4, 1), (0, 4, 0), (5, 0, 5), (4, 4, 1)]
)
def test_a_bound_is_shared_and_rounded_up(total: int, gateways: int, mine: int) -> None:
    assert share(total, gateways) == mine


def test_shares_together_exceed_a_bound_by_less_than_a_call_a_gateway() -> None:
    for total in range(40):
        for gateways in range(1, 9):
            assert total <= share(total, gateways) * gateways < total + gateways


def test_tokens_in_flight_are_bounded_and_an_empty_replica_takes_any_call() -> None:
    counts, blob = Counts(lambda replica: None), Blob()
    replica = Replica(1, "h", tokens=1000)
    assert bound(blob, counts, replica, a_call(5000)) is None
    with counts.granted(1, 900):
        assert bound(blob, counts, replica, a_call(100)) is None
        assert bound(blob, counts, replica, a_call(101)) is Bound.TOKENS
        assert bound(blob, counts, Replica(1, "h"), a_call(10**6)) is None, "no bound known"
        assert bound(Blob(gateways=2), counts, replica, a_call(1)) is Bound.TOKENS
    assert counts.tokens_of(1) == 0


def test_batch_calls_of_a_card_count_together_whichever_replica_has_them() -> None:
    counts = Counts(lambda replica: None)
    blob = Blob(batch={"c1": BatchCap(2, "neighbour")})
    one, other, elsewhere = Replica(1, "h", batch=("c1",)), Replica(2, "h", batch=("c1",)), Replica(3, "h")
    with counts.granted(1, 5, one.batch), counts.granted(2, 5, other.batch):
        assert bound(blob, counts, one, a_call()) is Bound.BATCH
        assert bound(blob, counts, other, a_call()) is Bound.BATCH
        assert bound(blob, counts, elsewhere, a_call()) is None
        assert bound(Blob(), counts, one, a_call()) is None
    assert bound(blob, counts, one, a_call()) is None
    assert bound(Blob(batch={"c1": BatchCap(0)}), counts, one, a_call()) is Bound.BATCH


@pytest.mark.parametrize(("cap", "own", "most"), [(None, None, None), (3, None, 3), (None, 2, 2), (3, 2, 2), (1, 2, 1)])
def test_of_the_cards_limit_and_that_of_its_hours_the_lower_holds(cap, own, most) -> None:
    blob = Blob(batch={} if cap is None else {"c1": BatchCap(cap)})
    assert batch_most(blob, Replica(1, "h", batch=("c1",), batch_calls=own), "c1") == most


def test_outside_its_hours_a_service_counts_all_batch_on_the_card() -> None:
    counts, blob = Counts(lambda replica: None), Blob()
    free, late = Replica(1, "h", batch=("c1",)), Replica(2, "h", batch=("c1",), batch_calls=1)
    with counts.granted(1, 0, free.batch):
        assert bound(blob, counts, late, a_call()) is Bound.BATCH
        assert bound(blob, counts, free, a_call()) is None, "the hours of one are not those of the other"


def test_a_replica_over_two_cards_obeys_both() -> None:
    counts = Counts(lambda replica: None)
    blob = Blob(batch={"c1": BatchCap(9), "c2": BatchCap(1)})
    wide = Replica(1, "h", batch=("c1", "c2"))
    with counts.granted(1, 0, wide.batch):
        assert bound(blob, counts, wide, a_call()) is Bound.BATCH


def test_long_calls_and_others_keep_to_their_own() -> None:
    short, reserved = Replica(1, "h"), Replica(2, "h", long=True)
    both = Service("t", "m", replicas=(short, reserved))
    assert list(lane(both, a_call(long=True))) == [reserved]
    assert list(lane(both, a_call())) == [short]
    assert list(lane(Service("t", "m", replicas=(short,)), a_call(long=True))) == [short]
    assert list(lane(Service("t", "m", replicas=(reserved,)), a_call())) == [reserved]


# The running gateway


def limited(farm: Farm, calls: int, why: str = "day", name: str = "svc", **entry) -> None:
    """The service is routed to replica 1, whose card admits so many batch calls."""
    replica = {"id": 1, "host": "gpu-01", "batch": ["card-1"]}
    replicas = [replica | {"batch_calls": calls} if why == "day" else replica]
    farm.batch = {} if why == "day" else {"card-1": {"calls": calls, "why": why}}
    farm.routed(name, **{**on(1), "replicas": replicas, **entry})


@pytest.fixture(autouse=True)
def slow(farm: Farm):
    farm.door.engines[1].gap_s = SLOW
    farm.batch = {}
    yield
    farm.batch = {}


def most_at_once(farm: Farm, stop: threading.Event) -> list[int]:
    seen = [0]

    def watch() -> None:
        while not stop.is_set():
            seen[0] = max(seen[0], farm.door.engines[1].open)
            time.sleep(0.005)

    threading.Thread(target=watch, daemon=True).start()
    return seen


def call_all(farm: Farm, count: int, **more) -> list[httpx.Response]:
    with ThreadPoolExecutor(count) as pool:
        return [job.result() for job in [pool.submit(farm.call, "svc", **more) for _ in range(count)]]


@pytest.mark.parametrize("stream", [False, True])
def test_batch_calls_over_the_limit_wait_and_all_are_answered(farm: Farm, stream: bool) -> None:
    limited(farm, 2)
    farm.door.engines[1].gap_s = 0.1
    stop = threading.Event()
    most = most_at_once(farm, stop)
    answers = call_all(farm, 7, stream=stream)
    stop.set()
    assert [a.status_code for a in answers] == [200] * 7
    assert all("word4" in a.text for a in answers)
    assert most[0] <= 2
    if stream:
        assert any("stage=turn" in a.text for a in answers)


def test_who_waits_for_a_turn_is_not_held_and_nobody_is_nudged(farm: Farm) -> None:
    limited(farm, 1)
    before = len(farm.nudges())
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(farm.call, "svc") for _ in range(3)]
        until(lambda: farm.registration()["services"].get("svc", {}).get("limited") == 2)
        assert farm.held("svc") == 0
        assert [job.result().status_code for job in jobs] == [200] * 3
    assert len(farm.nudges()) == before
    until(lambda: farm.registration()["services"]["svc"]["limited"] == 0)


@pytest.mark.parametrize(("why", "word"), [("pressure", "显存"), ("neighbour", "在线业务"), ("day", "时段")])
def test_past_its_cap_a_batch_call_is_told_why_and_when_to_come_back(farm: Farm, why: str, word: str) -> None:
    limited(farm, 0, why, hold_cap_s=0.3)
    answer = farm.call("svc")
    assert answer.status_code == 429
    error = answer.json()["error"]
    assert (error["code"], error["type"], error["reason"]) == ("batch_limited", "rate_limit_error", why)
    assert word in error["message"]
    assert int(answer.headers["retry-after"]) >= 1
    assert farm.door.engines[1].calls == []
    assert farm.expected("svc") == 0, "nobody has to load anything for it"


def test_a_raised_limit_lets_the_waiting_in_at_once(farm: Farm) -> None:
    limited(farm, 0, "pressure")
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(farm.call, "svc") for _ in range(3)]
        until(lambda: farm.registration()["services"].get("svc", {}).get("limited") == 3)
        limited(farm, 8)
        until(lambda: farm.door.engines[1].open == 3)
        assert [job.result().status_code for job in jobs] == [200] * 3


def test_a_waiting_call_whose_replica_goes_is_held_like_any_other(farm: Farm) -> None:
    limited(farm, 0)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(farm.call, "svc")
        until(lambda: farm.registration()["services"].get("svc", {}).get("limited") == 1)
        farm.routed("svc", state="loading", replicas=[])
        until(lambda: farm.held("svc") == 1)
        assert "svc" in farm.nudges()
        farm.routed("svc", **on(2))
        assert job.result().status_code == 200


def test_a_caller_that_hangs_up_leaves_the_queue(farm: Farm) -> None:
    limited(farm, 0)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{farm.url}/v1/chat/completions",
            headers=farm.headers(),
            json={"model": "svc", "messages": []},
            timeout=0.7,
        )
    until(lambda: farm.registration()["services"].get("svc", {}).get("limited") == 0)


def test_online_calls_beside_it_are_not_limited(farm: Farm) -> None:
    limited(farm, 0)
    farm.routed("desk", **on(2))
    assert farm.call("desk").status_code == 200


def test_several_gateways_share_the_limit(farm: Farm) -> None:
    farm.gateways = 4
    try:
        limited(farm, 8)
        farm.door.engines[1].gap_s = 0.1
        stop = threading.Event()
        most = most_at_once(farm, stop)
        assert [a.status_code for a in call_all(farm, 6)] == [200] * 6
        stop.set()
        assert most[0] == 2
    finally:
        farm.gateways = 1


# Tokens in flight


def test_tokens_in_flight_stay_below_what_the_kv_holds(farm: Farm) -> None:
    farm.routed("svc", **{**on(1), "replicas": [{"id": 1, "host": "gpu-01", "tokens": 1000}]})
    farm.door.engines[1].gap_s = 0.1
    stop = threading.Event()
    most = most_at_once(farm, stop)
    answers = call_all(farm, 5, path="completions", prompt=list(range(400)), max_tokens=50)
    stop.set()
    assert [a.status_code for a in answers] == [200] * 5
    assert most[0] == 2


def test_who_waits_for_tokens_is_told_apart_from_batch(farm: Farm) -> None:
    """It shows a want of capacity, so control hears of it; yet nothing has to be loaded, so nobody is nudged."""
    farm.routed("svc", **{**on(1), "replicas": [{"id": 1, "host": "gpu-01", "tokens": 500}]})
    before = len(farm.nudges())
    with ThreadPoolExecutor(2) as pool:
        ids = {"path": "completions", "prompt": list(range(450)), "max_tokens": 9}
        jobs = [pool.submit(farm.call, "svc", **ids) for _ in range(2)]
        until(lambda: farm.registration()["services"].get("svc", {}).get("queued") == 1)
        assert (farm.held("svc"), farm.registration()["services"]["svc"]["limited"]) == (0, 0)
        assert [job.result().status_code for job in jobs] == [200, 200]
    assert len(farm.nudges()) == before


def test_one_call_larger_than_the_kv_is_for_the_engine_to_judge(farm: Farm) -> None:
    farm.door.engines[1].gap_s = 0.0
    farm.routed("svc", **{**on(1), "replicas": [{"id": 1, "host": "gpu-01", "tokens": 10}]})
    assert farm.call("svc", path="completions", prompt=list(range(400))).status_code == 200


def test_another_replica_with_room_is_taken_first(farm: Farm) -> None:
    replicas = [{"id": id, "host": "gpu-01", "tokens": 500} for id in (1, 2)]
    farm.routed("svc", **{**on(1, 2), "replicas": replicas})
    farm.door.engines[2].gap_s = SLOW
    answers = call_all(farm, 2, path="completions", prompt=list(range(300)), max_tokens=9)
    assert [a.status_code for a in answers] == [200, 200]
    assert (len(farm.door.engines[1].calls), len(farm.door.engines[2].calls)) == (1, 1)


def test_past_the_cap_it_says_that_the_engine_is_full(farm: Farm) -> None:
    farm.routed("svc", **{**on(1), "hold_cap_s": 0.3, "replicas": [{"id": 1, "host": "gpu-01", "tokens": 500}]})
    ids = {"path": "completions", "prompt": list(range(450)), "max_tokens": 9}
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(farm.call, "svc", **ids)
        until(lambda: farm.door.engines[1].open == 1)
        second = farm.call("svc", **ids)
        assert first.result().status_code == 200
    assert (second.status_code, second.json()["error"]["code"]) == (429, "engine_full")
    assert "retry-after" in second.headers


# Too long


@pytest.mark.parametrize(("tokens", "status"), [(300, 200), (301, 400)])
def test_a_prompt_over_the_limit_is_refused_with_count_and_limit(farm: Farm, tokens: int, status: int) -> None:
    farm.door.engines[1].gap_s = 0.0
    farm.routed("svc", **on(1), max_prompt_tokens=300)
    answer = farm.call("svc", path="completions", prompt=list(range(tokens)), headers={"Accept-Language": "en"})
    assert answer.status_code == status
    if status == 400:
        error = answer.json()["error"]
        assert (error["code"], error["tokens"], error["limit"]) == ("context_length_exceeded", 301, 300)
        assert (error["estimated"], error["param"], error["type"]) == (False, "prompt", "invalid_request_error")
        assert "301 tokens" in error["message"]
        assert farm.door.engines[1].calls == []


def test_an_estimated_count_is_called_one(farm: Farm) -> None:
    farm.routed("svc", **on(1), max_prompt_tokens=300)
    answer = farm.call("svc", messages=[{"role": "user", "content": "长" * 2000}])
    error = answer.json()["error"]
    assert (answer.status_code, error["estimated"], error["param"]) == (400, True, "messages")
    assert "约" in error["message"]


def test_prompt_and_answer_together_have_a_limit_of_their_own(farm: Farm) -> None:
    farm.door.engines[1].gap_s = 0.0
    farm.routed("svc", **on(1), max_total_tokens=500)
    ids = {"path": "completions", "prompt": list(range(400))}
    assert farm.call("svc", **ids, max_tokens=100).status_code == 200
    assert farm.call("svc", **ids).status_code == 200, "an answer without a bound is not guessed at"
    error = farm.call("svc", **ids, max_tokens=101).json()["error"]
    assert (error["tokens"], error["limit"], error["estimated"]) == (501, 500, False)


def test_a_cold_service_is_not_loaded_for_a_call_it_would_refuse(farm: Farm) -> None:
    farm.routed("svc", max_prompt_tokens=10)
    before = len(farm.nudges())
    assert farm.call("svc", path="completions", prompt=list(range(11))).status_code == 400
    assert len(farm.nudges()) == before


def test_a_caller_can_ask_how_long_a_call_may_be(farm: Farm) -> None:
    farm.routed("svc", **on(1), max_prompt_tokens=300)
    entry = httpx.get(f"{farm.url}/v1/models/svc", headers=farm.headers()).json()
    assert (entry["max_prompt_tokens"], entry["max_total_tokens"]) == (300, None)


def test_a_batch_service_outside_its_hours_says_when_to_come_back(farm: Farm) -> None:
    """Cold, and nobody will load it: told at once."""
    refusal = {"code": "batch_limited", "retry_after_s": 3600, "zh": "不在时段", "en": "outside its hours"}
    farm.routed("svc", refusal=refusal)
    answer = farm.call("svc")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "batch_limited")
    assert answer.headers["retry-after"] == "3600"


# Long lanes


def test_long_calls_go_to_the_service_that_is_named_for_them(farm: Farm) -> None:
    for engine in farm.door.engines.values():
        engine.gap_s = 0.0
    farm.routed("svc", **on(1), long_from=1000, long_lane="svc-long")
    farm.routed("svc_long", **on(2), engine_model="long-engine")
    short = farm.call("svc", path="completions", prompt=[1, 2, 3], max_tokens=9)
    long = farm.call("svc", path="completions", prompt=list(range(1500)), headers={"X-Request-Id": "long-one"})
    assert (short.status_code, long.status_code) == (200, 200)
    assert "x-gongka-lane" not in short.headers
    assert long.headers["x-gongka-lane"] == "svc-long"
    assert [c["model"] for c in farm.door.engines[2].calls] == ["long-engine"]
    record = farm.record("long-one")
    assert (record["service"], record["called"], record["replica"]) == ("svc-long", "svc", 2)


def test_a_cold_lane_is_held_for_and_loaded(farm: Farm) -> None:
    farm.routed("svc", **on(1), long_from=1000, long_lane="svc-long")
    farm.routed("svc_long")
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(farm.call, "svc", path="completions", prompt=list(range(1500)))
        until(lambda: farm.held("svc-long") == 1)
        farm.door.engines[2].gap_s = 0.0
        farm.routed("svc_long", **on(2))
        assert job.result().status_code == 200


def test_whoever_may_call_the_service_may_use_its_lane_and_nobody_else(farm: Farm) -> None:
    for engine in farm.door.engines.values():
        engine.gap_s = 0.0
    farm.routed("svc", **on(1), long_from=1000, long_lane="svc-long", audience=["beta"])
    farm.routed("svc_long", **on(2))
    ids = {"path": "completions", "prompt": list(range(1500)), "key": farm.OTHER}
    assert farm.call("svc", **ids).status_code == 200
    assert farm.call("svc-long", **ids).status_code == 404


def test_a_lane_that_is_gone_leaves_the_call_to_its_service(farm: Farm) -> None:
    farm.door.engines[1].gap_s = 0.0
    farm.routed("svc", **on(1), long_from=10, long_lane="nowhere")
    assert farm.call("svc", path="completions", prompt=list(range(99))).status_code == 200


def test_reserved_replicas_answer_long_calls_and_no_others(farm: Farm) -> None:
    for engine in farm.door.engines.values():
        engine.gap_s = 0.0
    replicas = [{"id": id, "host": "gpu-01", "long": id == 3} for id in (1, 2, 3)]
    farm.routed("svc", **{**on(1), "replicas": replicas}, long_from=1000)
    for _ in range(6):
        assert farm.call("svc", path="completions", prompt=[1], max_tokens=9).status_code == 200
        assert farm.call("svc", path="completions", prompt=list(range(1500))).status_code == 200
    counts = [len(farm.door.engines[id].calls) for id in (1, 2, 3)]
    assert counts[2] == 6
    assert counts[0] + counts[1] == 6
    assert all(len(c["prompt"]) == 1500 for c in farm.door.engines[3].calls)


def test_the_gateway_learns_what_engines_count(farm: Farm) -> None:
    """The door's engines count seven tokens a prompt whatever it is: soon the limit is judged by that rate."""
    farm.door.engines[1].gap_s = 0.0
    farm.routed("svc", **on(1), max_prompt_tokens=400)
    text = json.dumps("word " * 700)
    assert farm.call("svc", messages=[{"role": "user", "content": text}]).status_code == 400
    farm.routed("svc", **on(1), max_prompt_tokens=None)
    for _ in range(40):
        assert farm.call("svc", messages=[{"role": "user", "content": text}]).status_code == 200
    farm.routed("svc", **on(1), max_prompt_tokens=400)
    assert farm.call("svc", messages=[{"role": "user", "content": text}]).status_code == 200

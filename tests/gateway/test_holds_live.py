"""Calls of cold services, through the real gateway process; the test plays control."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import openai
import pytest

from tests.gateway.farm import PROMPT_S, Farm, on, until


class Caller(threading.Thread):
    """One call in a thread of its own; `answer` when it came, `first_s` until the first byte."""

    def __init__(self, farm: Farm, model: str, **more) -> None:
        super().__init__()
        self.farm, self.model, self.more = farm, model, more
        self.began = time.monotonic()
        self.first_s = self.took_s = 0.0
        self.status, self.text, self.headers = 0, "", httpx.Headers()
        self.start()

    def run(self) -> None:
        headers = self.farm.headers(self.more.pop("key", Farm.KEY), **self.more.pop("headers", {}))
        body = {"model": self.model, "messages": [{"role": "user", "content": "hi"}], **self.more}
        url = f"{self.farm.url}/v1/chat/completions"
        with httpx.stream("POST", url, json=body, headers=headers, timeout=60) as answer:
            self.status, self.headers = answer.status_code, answer.headers
            for text in answer.iter_text():
                self.first_s = self.first_s or time.monotonic() - self.began
                self.text += text
        self.took_s = time.monotonic() - self.began

    def done(self) -> Caller:
        self.join(60)
        assert not self.is_alive()
        return self

    @property
    def code(self) -> str:
        data = self.text.split("data: ")[-2] if self.text.startswith(":") else self.text
        return json.loads(data)["error"]["code"]


def ready_when_held(farm: Farm) -> None:
    """Routes `svc` as soon as a call waits for it."""

    def route() -> None:
        until(lambda: farm.held("svc"))
        farm.publish(svc=on(1))

    threading.Thread(target=route).start()


@contextmanager
def callers(farm: Farm, count: int, model: str, **more) -> Iterator[list[Caller]]:
    threads = [Caller(farm, model, **more) for _ in range(count)]
    yield threads
    for thread in threads:
        thread.done()


def test_one_load_serves_all_who_wait(farm: Farm) -> None:
    farm.routed("svc")
    before = len(farm.nudges())
    with callers(farm, 6, "svc") as plain, callers(farm, 4, "svc", stream=True) as streams:
        until(lambda: farm.held("svc") == 10)
        entry = farm.registration()["services"]["svc"]
        assert entry["held_streams"] == 4
        assert entry["held_since"] <= time.time()
        assert entry["last_call_at"] >= entry["held_since"] - 1
        assert set(farm.nudges()[before:]) == {"svc"}
        farm.publish(svc=on(1))
    for caller in plain:
        assert (caller.status, caller.headers["x-gongka-state"]) == (200, "cold")
        assert int(caller.headers["x-gongka-hold-ms"]) > 0
        assert "word4" in caller.text
    for caller in streams:
        assert caller.status == 200
        assert caller.text.startswith(": gongka loading stage=queued position=")
        assert "hold_ms=" in caller.text.strip().split("\n")[-1]
    until(lambda: farm.held("svc") == 0 and farm.quiet())


def test_the_registration_is_there_before_the_nudge(farm: Farm) -> None:
    """A watcher that reads the registration at each nudge always finds the hold."""
    farm.routed("svc")
    last = farm.redis.client.xrevrange("nudge", count=1)
    cursor = last[0][0] if last else "0-0"
    caller = Caller(farm, "svc", headers={"X-Gongka-Max-Wait": "5"})
    assert farm.redis.client.xread({"nudge": cursor}, block=5000)
    assert farm.held("svc") == 1
    farm.publish(svc=on(1))
    assert caller.done().status == 200


def test_a_stream_is_told_at_once_and_again(farm: Farm) -> None:
    farm.routed("svc", state="loading", stage="weights", eta_s=40.0, low_s=30.0)
    caller = Caller(farm, "svc", stream=True)
    until(lambda: caller.text.count(": gongka loading stage=weights eta_s=") >= 3)
    assert caller.first_s < PROMPT_S
    etas = [int(line.split("eta_s=")[1].split()[0]) for line in caller.text.split("\n") if "eta_s=" in line]
    assert etas == sorted(etas, reverse=True)
    assert 30 <= etas[0] <= 40
    farm.publish(svc=on(1))
    assert caller.done().text.count("word") == 5


def test_a_stock_client_reads_progress_when_it_opted_in(farm: Farm) -> None:
    farm.routed("svc", state="loading", stage="weights", eta_s=12.0)
    farm.database.key(farm.alpha, "gk_content", content=True)
    until(lambda: farm.call("nil", key="gk_content").status_code == 404)
    ready_when_held(farm)
    with openai.OpenAI(base_url=f"{farm.url}/v1", api_key="gk_content", max_retries=0) as client:
        chunks = client.chat.completions.create(model="svc", messages=[], stream=True)
        text = "".join(chunk.choices[0].delta.content for chunk in chunks)
    assert re.match("【合同审阅正在加载：读取权重，预计还需 \\d+ 秒，排在第 1 位】\n", text)
    assert text.rstrip().endswith("word4")


def test_progress_of_completions_has_their_shape(farm: Farm) -> None:
    farm.routed("svc", state="loading", stage="waking")
    ready_when_held(farm)
    headers = {"X-Gongka-Progress": "content", "Accept-Language": "en"}
    with openai.OpenAI(base_url=f"{farm.url}/v1", api_key=farm.KEY, max_retries=0, default_headers=headers) as client:
        texts = [c.choices[0].text for c in client.completions.create(model="svc", prompt="x", stream=True)]
    assert texts[0] == "[合同审阅 is loading: waking, position 1]\n"


def test_a_plain_call_is_refused_at_its_cap_and_the_load_goes_on(farm: Farm) -> None:
    farm.routed("svc", hold_cap_s=1, eta_s=20.0)
    answer = farm.call("svc")
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert (error["code"], 15 < error["eta_s"] < 20) == ("model_loading", True)
    assert 15 <= int(answer.headers["retry-after"]) <= 20
    assert until(lambda: farm.expected("svc")) > 15
    farm.routed("svc", **on(1))
    until(lambda: farm.expected("svc") == farm.held("svc") == 0)


def test_it_tells_at_once_what_would_not_fit_the_cap(farm: Farm) -> None:
    farm.routed("svc", hold_cap_s=15, eta_s=40.0, low_s=30.0)
    before = len(farm.nudges())
    caller = Caller(farm, "svc").done()
    assert (caller.status, caller.code) == (503, "model_loading")
    assert caller.took_s < PROMPT_S
    until(lambda: len(farm.nudges()) > before and farm.expected("svc") > 30)


def test_it_tells_as_soon_as_the_estimate_is_known(farm: Farm) -> None:
    farm.routed("svc", hold_cap_s=15)
    with callers(farm, 2, "svc") as plain, callers(farm, 1, "svc", stream=True) as streams:
        until(lambda: farm.held("svc") == 3)
        learned = time.monotonic()
        farm.publish(svc={"state": "loading", "stage": "weights", "eta_s": 25.0, "low_s": 20.0})
        for caller in plain:
            assert caller.done().code == "model_loading"
        assert time.monotonic() - learned < PROMPT_S
        until(lambda: farm.held("svc") == 1)
        farm.publish(svc=on(1))
    assert "word4" in streams[0].text


@pytest.mark.parametrize("stream", [False, True])
def test_the_callers_patience_may_be_shorter(farm: Farm, stream: bool) -> None:
    farm.routed("svc")
    caller = Caller(farm, "svc", stream=stream, headers={"X-Gongka-Max-Wait": "0.7"}).done()
    assert caller.code == "model_loading"
    assert 0.6 < caller.took_s < 5


@pytest.mark.parametrize(("code", "status"), [("no_capacity", 503), ("quota_exceeded", 429), ("not_managed", 503)])
def test_a_refusal_reaches_who_waits_within_a_second(farm: Farm, code: str, status: int) -> None:
    farm.routed("svc")
    with callers(farm, 3, "svc") as plain, callers(farm, 3, "svc", stream=True) as streams:
        until(lambda: farm.held("svc") == 6)
        refused = time.monotonic()
        refusal = {"code": code, "retry_after_s": 30, "zh": "没有空间", "en": "no room"}
        farm.publish(svc={"refusal": refusal})
        for caller in plain + streams:
            caller.done()
        assert time.monotonic() - refused < PROMPT_S
    assert {(c.status, c.code, c.headers["retry-after"]) for c in plain} == {(status, code, "30")}
    assert {(c.status, c.code) for c in streams} == {(200, code)}
    assert all(c.text.endswith("data: [DONE]\n\n") and "没有空间" in c.text for c in streams)
    until(lambda: farm.held("svc") == 0)


def test_an_old_refusal_is_told_soon_but_control_may_think_again(farm: Farm) -> None:
    refusal = {"code": "no_capacity", "retry_after_s": None, "zh": "没有空间", "en": "no room"}
    farm.routed("svc", refusal=refusal)
    caller = Caller(farm, "svc", stream=True).done()
    assert (caller.status, caller.code, caller.took_s < PROMPT_S) == (503, "no_capacity", True)
    caller = Caller(farm, "svc")
    until(lambda: farm.held("svc") == 1 or not caller.is_alive())
    farm.publish(svc=on(1))
    assert caller.done().status in (200, 503)


def test_a_caller_that_hangs_up_leaves_the_queue_at_once(farm: Farm) -> None:
    farm.routed("svc")
    id = uuid.uuid4().hex
    url, body = f"{farm.url}/v1/chat/completions", {"model": "svc", "messages": []}
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(url, json=body, headers=farm.headers(X_Request_Id=id), timeout=0.5)
    gone = time.monotonic()
    until(lambda: farm.held("svc") == 0)
    assert time.monotonic() - gone < PROMPT_S
    record = farm.record(id)
    assert (record["outcome"], record["state"], record["prompt_tokens"]) == ("abandoned", "cold", 0)
    assert record["hold_ms"] >= 400
    assert record["replica"] is None


def test_waiters_are_bounded(farm: Farm) -> None:
    farm.routed("svc")
    with callers(farm, 20, "svc") as waiting:
        until(lambda: farm.held("svc") == 20)
        answer = farm.call("svc")
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_waiting")
        assert answer.headers["retry-after"] == "30"
        farm.publish(svc=on(1))
    assert {caller.status for caller in waiting} == {200}


def test_waiting_tenants_take_turns(farm: Farm) -> None:
    farm.routed("svc", audience=["*"])
    waiting = []
    for n, key in enumerate([farm.KEY] * 4 + [farm.OTHER] * 2):
        waiting.append(Caller(farm, "svc", key=key, seed=n))
        until(lambda n=n: farm.held("svc") == n + 1)
    farm.publish(svc={"audience": ["*"], **on(1)})
    for caller in waiting:
        caller.done()
    assert [call["seed"] for call in farm.door.engines[1].calls] == [0, 4, 1, 5, 2, 3]


def test_a_service_closed_to_the_caller_while_it_waits(farm: Farm) -> None:
    farm.routed("svc", tenant="beta", audience=["alpha"])
    caller = Caller(farm, "svc")
    until(lambda: farm.held("svc") == 1)
    farm.publish(svc={"tenant": "beta", "audience": []})
    assert (caller.done().status, caller.code) == (404, "model_not_found")


def test_replicas_that_all_refuse_count_as_cold(farm: Farm) -> None:
    farm.door.engines[1].mode = "unknown"
    farm.routed("svc", **on(1))
    before = len(farm.nudges())
    caller = Caller(farm, "svc")
    until(lambda: farm.held("svc") == 1 and len(farm.nudges()) > before)
    farm.publish(svc=on(2))
    assert caller.done().status == 200


def test_a_call_under_notice_nudges(farm: Farm) -> None:
    farm.routed("svc", notice=True, **on(1))
    before = len(farm.nudges())
    called = time.time()
    assert farm.call("svc").status_code == 200
    until(lambda: farm.nudges()[before:] == ["svc"])
    until(lambda: farm.registration()["services"]["svc"]["last_call_at"] >= called - 0.01)


def test_a_drained_replica_is_acknowledged_and_finishes(farm: Farm) -> None:
    engine = farm.door.engines[1]
    engine.chunks, engine.gap_s = 20, 0.05
    farm.routed("svc", **on(1))
    caller = Caller(farm, "svc", stream=True)
    until(lambda: engine.open == 1)
    version = farm.publish(svc=on(2))
    taken = until(lambda: (r := farm.registration())["routes_version"] >= version and r)
    assert taken["in_flight"] == {"1": 1}
    assert farm.call("svc").status_code == 200
    assert len(engine.calls) == 1, "no new call after the acknowledgement"
    assert caller.done().text.count("word") == 20
    ended = time.monotonic()
    until(farm.quiet)
    assert time.monotonic() - ended < PROMPT_S

"""Calls of routed services, through the real gateway process."""

from __future__ import annotations

import json
import threading
import time
import uuid

import httpx
import openai
import pytest

from tests.gateway.farm import PROMPT_S, Farm, on, until


@pytest.fixture
def client(farm: Farm):
    with openai.OpenAI(base_url=f"{farm.url}/v1", api_key=farm.KEY, max_retries=0, timeout=60) as client:
        yield client


def chat(client: openai.OpenAI, model: str = "svc", **more):
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": "你好"}], **more)


def test_it_answers_a_stock_client(farm: Farm, client: openai.OpenAI) -> None:
    farm.routed("svc", **on(1))
    answer = chat(client)
    assert answer.choices[0].message.content.startswith("word0")
    sent = farm.door.engines[1].calls[0]
    assert sent == {"model": "engine-name", "messages": [{"role": "user", "content": "你好"}]}


def test_it_streams_to_a_stock_client_without_the_usage_it_asked_for(farm: Farm, client: openai.OpenAI) -> None:
    farm.routed("svc", **on(1))
    chunks = list(chat(client, stream=True))
    assert [chunk.choices[0].delta.content.strip() for chunk in chunks] == [f"word{n}" for n in range(5)]
    assert farm.door.engines[1].calls[0]["stream_options"] == {"include_usage": True}


def test_it_leaves_the_usage_chunk_to_who_asked(farm: Farm, client: openai.OpenAI) -> None:
    farm.routed("svc", **on(1))
    chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens == 5


def test_it_serves_completions(farm: Farm, client: openai.OpenAI) -> None:
    farm.routed("svc", **on(1))
    assert client.completions.create(model="svc", prompt="hi").choices[0].text.startswith("word0")
    assert len(list(client.completions.create(model="svc", prompt="hi", stream=True))) == 5


def test_it_records_usage(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    for stream in (False, True):
        id = uuid.uuid4().hex
        answer = farm.call("svc", stream=stream, headers={"X-Request-Id": id})
        assert answer.headers["x-request-id"] == id
        assert answer.headers["x-gongka-state"] == "ready"
        record = farm.record(id)
        assert record["outcome"] == "ok"
        assert (record["prompt_tokens"], record["generated_tokens"], record["estimated"]) == (7, 5, False)
        assert (record["service"], record["owner"], record["tenant"]) == ("svc", "alpha", "alpha")
        assert (record["key"], record["replica"], record["state"]) == (farm.key_id, 1, "ready")
        assert record["ttft_ms"] <= record["total_ms"] < 10_000
        assert "hi" not in json.dumps(list(record.values()))
    assert farm.door.engines[1].heads[0]["x-request-id"]


def test_it_makes_a_request_id_when_the_callers_is_unfit(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    answer = farm.call("svc", headers={"X-Request-Id": "a b\tc"})
    assert len(answer.headers["x-request-id"]) == 32


def test_it_refuses_bad_keys_in_the_callers_language(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    chinese = farm.call("svc", key="gk_wrong")
    english = farm.call("svc", key="gk_wrong", headers={"Accept-Language": "en-GB,zh;q=0.5"})
    assert (chinese.status_code, english.status_code) == (401, 401)
    assert chinese.json()["error"]["code"] == english.json()["error"]["code"] == "invalid_api_key"
    assert "吊销" in chinese.json()["error"]["message"]
    assert "revoked" in english.json()["error"]["message"]
    assert httpx.post(f"{farm.url}/v1/chat/completions", json={"model": "svc"}).status_code == 401


def test_it_forgets_a_revoked_key_within_two_seconds(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    farm.database.key(farm.alpha, "gk_short_life")
    until(lambda: farm.call("svc", key="gk_short_life").status_code == 200)
    farm.database.write("UPDATE accounts_apikey SET revoked_at = '2026-01-01 00:00:00' WHERE prefix = 'gk_short_lif'")
    revoked = time.monotonic()
    until(lambda: farm.call("svc", key="gk_short_life").status_code == 401)
    assert time.monotonic() - revoked < PROMPT_S


def test_it_refuses_an_expired_key(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    key = farm.database.key(farm.alpha, "gk_expiring")
    until(lambda: farm.call("svc", key="gk_expiring").status_code == 200)
    farm.database.write("UPDATE accounts_apikey SET expires_at = '2026-01-01 00:00:00' WHERE id = ?", key)
    until(lambda: farm.call("svc", key="gk_expiring").status_code == 401)


def test_it_writes_last_use_of_a_key(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    farm.call("svc")
    until(lambda: farm.database.read("SELECT last_used_at FROM accounts_apikey WHERE id = ?", farm.key_id)[0])


def test_a_service_outside_the_audience_is_like_none(farm: Farm) -> None:
    farm.routed("own", **on(1))
    farm.routed("named", audience=["beta"], **on(1))
    farm.routed("group", audience=["*"], **on(1))
    barred = farm.call("own", key=farm.OTHER)
    absent = farm.call("nil", key=farm.OTHER)
    assert barred.status_code == absent.status_code == 404
    assert barred.json()["error"]["code"] == "model_not_found"
    assert barred.text.replace("own", "nil") == absent.text
    assert barred.headers.keys() == absent.headers.keys()
    assert farm.call("named", key=farm.OTHER).status_code == farm.call("group", key=farm.OTHER).status_code == 200


def test_a_key_may_be_for_some_services_only(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    farm.routed("more", **on(1))
    farm.database.key(farm.alpha, "gk_narrow", services=["more"])
    until(lambda: farm.call("more", key="gk_narrow").status_code == 200)
    assert farm.call("svc", key="gk_narrow").status_code == 404


def test_it_lists_what_the_key_may_call(farm: Farm, client: openai.OpenAI) -> None:
    farm.routed("own", **on(1))
    farm.routed("slow", state="loading", stage="weights", eta_s=40.0)
    farm.routed("theirs", tenant="beta", **on(2))
    assert [model.id for model in client.models.list()] == ["own", "slow"]
    slow = client.models.retrieve("slow").to_dict()
    assert (slow["state"], slow["stage"]) == ("loading", "weights")
    assert 30 < slow["eta_s"] <= 40
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("theirs")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"{",
        b'{"messages": []}',
        b'{"model": 3}',
        b'{"model": "svc", "stream": "x"}',
        b"\xff",
        b"[" * 99999,
    ],
)
def test_it_refuses_bodies_it_cannot_read(farm: Farm, body: bytes) -> None:
    answer = httpx.post(f"{farm.url}/v1/chat/completions", content=body, headers=farm.headers())
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


def test_it_refuses_bodies_too_large(farm: Farm) -> None:
    answer = httpx.post(f"{farm.url}/v1/chat/completions", content=b" " * (33 * 2**20), headers=farm.headers())
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def test_it_knows_its_paths(farm: Farm) -> None:
    farm.routed("embed", task="embedding", **on(1))
    for method, path, status in [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 200),
        ("GET", "/metrics", 404),
        ("POST", "/invocations", 404),
        ("POST", "/v1/load_lora_adapter", 404),
        ("GET", "/v1/chat/completions", 405),
        ("POST", "/v1/models", 405),
    ]:
        assert httpx.request(method, farm.url + path, headers=farm.headers()).status_code == status, path
    assert farm.call("embed").json()["error"]["code"] == "wrong_task"


@pytest.mark.parametrize("mode", ["unknown", "unreachable", "leaving", "busy", "busy_event", "dead_event", "token"])
@pytest.mark.parametrize("stream", [False, True])
def test_it_goes_to_another_replica_before_the_first_byte(farm: Farm, mode: str, stream: bool) -> None:
    farm.door.engines[1].mode = mode
    farm.routed("svc", **on(1, 2))
    for _ in range(4):
        answer = farm.call("svc", stream=stream)
        assert answer.status_code == 200
        assert "word4" in answer.text
    until(farm.quiet)


def test_an_engines_own_error_keeps_its_status(farm: Farm) -> None:
    farm.door.engines[1].mode = "error"
    farm.routed("svc", **on(1))
    answer = farm.call("svc", stream=True)
    assert (answer.status_code, answer.json()["error"]["message"]) == (500, "something odd")
    farm.door.engines[1].mode = "busy_event"
    answer = farm.call("svc", stream=True)
    assert (answer.status_code, answer.json()["error"]["message"]) == (503, "busy")


def test_a_stream_cut_after_its_first_byte_says_so(farm: Farm, client: openai.OpenAI) -> None:
    farm.door.engines[1].mode = "cut"
    farm.routed("svc", **on(1))
    id = uuid.uuid4().hex
    raw = farm.call("svc", stream=True, headers={"X-Request-Id": id})
    assert raw.text.endswith("data: [DONE]\n\n")
    error = json.loads(raw.text.split("data: ")[-2])["error"]
    assert error["code"] == "drained"
    assert "half" not in raw.text
    record = farm.record(id)
    assert (record["outcome"], record["code"], record["estimated"]) == ("cut", "drained", True)
    assert record["generated_tokens"] == 5
    assert len(farm.door.engines[1].calls) == 1, "never replayed"
    with pytest.raises(openai.APIError, match="实例已停止"):
        list(chat(client, stream=True))
    until(farm.quiet)


def test_a_silent_stream_is_ended(farm: Farm) -> None:
    farm.door.engines[1].mode = "stall"
    farm.routed("svc", **on(1))
    text = farm.call("svc", stream=True).text
    assert '"code":"stalled"' in text
    until(lambda: farm.door.engines[1].aborted == 1)
    until(farm.quiet)


def test_a_replica_that_keeps_failing_is_left_alone_until_a_probe(farm: Farm) -> None:
    farm.door.engines[1].mode = "unreachable"
    farm.routed("svc", hold_cap_s=1, **on(1))
    answer = farm.call("svc")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "unreachable")
    for _ in range(4):
        farm.call("svc", headers={"X-Gongka-Max-Wait": "0"})
    farm.door.engines[1].mode = "ok"
    assert until(lambda: farm.call("svc").status_code == 200)


def test_it_tells_control_which_hosts_answer(farm: Farm) -> None:
    farm.routed("svc", **on(1))
    began = time.time()
    until(lambda: farm.registration()["reached"].get("gpu-01", 0) > began + 1)  # probes, while nobody calls
    farm.door.engines[1].mode = "unreachable"
    last = until(lambda: time.time() - (at := farm.registration()["reached"]["gpu-01"]) > 2 and at)
    farm.door.engines[1].mode = "ok"
    until(lambda: farm.registration()["reached"]["gpu-01"] > last + 1)


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_hangs_up_ends_its_upstream_call(farm: Farm, stream: bool) -> None:
    engine = farm.door.engines[1]
    engine.chunks, engine.gap_s = 1000, 0.05
    farm.routed("svc", **on(1))
    id = uuid.uuid4().hex
    with httpx.Client(headers=farm.headers(X_Request_Id=id)) as http:
        body = {"model": "svc", "messages": [], "stream": stream}
        if stream:
            with http.stream("POST", f"{farm.url}/v1/chat/completions", json=body) as answer:
                next(answer.iter_raw())
        else:
            with pytest.raises(httpx.ReadTimeout):
                http.post(f"{farm.url}/v1/chat/completions", json=body, timeout=0.5)
    gone = time.monotonic()
    until(lambda: engine.aborted == 1)
    assert time.monotonic() - gone < PROMPT_S
    until(farm.quiet)
    record = farm.record(id)
    assert (record["outcome"], record["estimated"]) == ("abandoned", True)
    assert record["generated_tokens"] > 0 if stream else record["generated_tokens"] == 0


def test_a_slow_reader_slows_its_own_upstream_only(farm: Farm) -> None:
    slow, quick = farm.door.engines[1], farm.door.engines[2]
    slow.chunks, slow.flood_kib = 2000, 64  # 125 MiB
    farm.routed("flood", **on(1))
    farm.routed("svc", **on(2))
    body = {"model": "flood", "messages": [], "stream": True}
    with httpx.stream("POST", f"{farm.url}/v1/chat/completions", json=body, headers=farm.headers()) as answer:
        reader = answer.iter_raw()  # kept: its end would be a hang-up
        next(reader)
        started = time.monotonic()
        assert farm.call("svc", stream=True).status_code == 200
        assert time.monotonic() - started < PROMPT_S
        assert slow.open == 1, "still writing: nobody read its 125 MiB for it"
    assert len(quick.calls) == 1
    until(farm.quiet)


def test_two_hundred_random_hangups_leave_nothing_behind(farm: Farm) -> None:
    import random

    for engine in farm.door.engines.values():
        engine.chunks, engine.gap_s = 20, 0.01
    farm.door.engines[3].mode = "cut"
    farm.routed("svc", **on(1, 2, 3))
    dice = random.Random(7)

    def caller(count: int) -> None:
        with httpx.Client(headers=farm.headers()) as http:
            for _ in range(count):
                body = {"model": "svc", "messages": [], "stream": dice.random() < 0.7}
                try:
                    limit = httpx.Timeout(30, read=dice.uniform(0.005, 0.3))
                    with http.stream("POST", f"{farm.url}/v1/chat/completions", json=body, timeout=limit) as answer:
                        for _, data in zip(range(dice.randrange(12)), answer.iter_raw(), strict=False):
                            assert data
                except httpx.TransportError:
                    continue

    threads = [threading.Thread(target=caller, args=(25,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    until(lambda: farm.quiet() and not farm.held("svc"))
    until(lambda: sum(engine.open for engine in farm.door.engines.values()) == 0)


def test_callers_read_when_their_model_was_to_be_unloaded(farm: Farm) -> None:
    farm.routed("svc", **{**on(1), "notice": True, "notice_at": 1_796_054_400.0})
    assert farm.call("svc").headers["x-gongka-notice"] == "2026-11-30T16:00:00Z"
    farm.routed("svc", **on(1))
    assert "x-gongka-notice" not in farm.call("svc").headers

"""The answers, key for key as vLLM 0.32 gives them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest

from tests.simulator.harness import HELLO, Engine, SimHost

CHAT_KEYS = [
    *("id", "object", "created", "model", "choices", "service_tier", "system_fingerprint", "usage"),
    *("prompt_logprobs", "prompt_token_ids", "prompt_text"),
    *("kv_transfer_params", "ec_transfer_params", "metrics"),
]
CHOICE_KEYS = ["index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids", "routed_experts"]
MESSAGE_KEYS = ["role", "content", "refusal", "annotations", "audio", "function_call", "reasoning"]
COMPLETION_KEYS = [key for key in CHAT_KEYS if not key.startswith("prompt_")]
CHUNK_KEYS = ["id", "object", "created", "model", "choices"]
TOKEN_KEYS = ["index", "delta", "logprobs", "finish_reason", "token_ids"]


def events(engine: Engine, path: str = "/v1/chat/completions", **body: Any) -> list[dict[str, Any]]:
    """All data events of a stream, which must end with [DONE]."""
    asked = {"model": "tiny", "stream": True, "max_tokens": 4} | body
    text = engine.post(path, asked).text
    assert text.endswith("data: [DONE]\n\n")
    return [json.loads(part.removeprefix("data: ")) for part in text.split("\n\n") if part and "[DONE]" not in part]


def test_chat(warm: Engine) -> None:
    answer = warm.chat(max_tokens=12)
    content = answer.json()
    assert list(content) == CHAT_KEYS
    assert list(content["choices"][0]) == CHOICE_KEYS
    assert list(content["choices"][0]["message"]) == MESSAGE_KEYS
    assert content["object"] == "chat.completion"
    assert content["choices"][0]["finish_reason"] == "length"
    usage = content["usage"]
    assert usage["completion_tokens"] == 12
    assert usage["total_tokens"] == usage["prompt_tokens"] + 12
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["server"] == "uvicorn"
    assert answer.headers["x-sim-replica"] == "7"


def test_the_answer_is_chinese_and_the_same_for_the_same_prompt(warm: Engine) -> None:
    texts = [warm.chat(max_tokens=20).json()["choices"][0]["message"]["content"] for _ in range(2)]
    other = warm.chat(max_tokens=20, messages=[{"role": "user", "content": "别的"}]).json()
    assert texts[0] == texts[1] != other["choices"][0]["message"]["content"]
    assert all("\u3000" <= letter <= "\uffef" for letter in texts[0])


def test_an_answer_ends_by_itself_or_goes_on_when_told(warm: Engine) -> None:
    ended = warm.chat(max_tokens=1000).json()
    assert ended["choices"][0]["finish_reason"] == "stop"
    made = ended["usage"]["completion_tokens"]
    assert 40 <= made < 240
    longer = warm.chat(max_tokens=made + 1, ignore_eos=True).json()
    assert (longer["usage"]["completion_tokens"], longer["choices"][0]["finish_reason"]) == (made + 1, "length")


def test_chat_stream(warm: Engine) -> None:
    first, *tokens = events(warm, messages=HELLO)
    assert list(first) == [*CHUNK_KEYS, "prompt_token_ids", "prompt_text"]
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(tokens) == 4
    assert all(list(one) == CHUNK_KEYS for one in tokens[:-1])
    assert all(list(one["choices"][0]) == TOKEN_KEYS for one in tokens[:-1])
    assert all("usage" not in one for one in tokens)
    assert tokens[-1]["choices"][0]["finish_reason"] == "length"
    assert tokens[-1]["system_fingerprint"] == "vllm-0.32.0-simulated"
    whole = warm.chat(max_tokens=4).json()["choices"][0]["message"]["content"]
    assert "".join(one["choices"][0]["delta"]["content"] for one in tokens) == whole
    assert len({one["id"] for one in (first, *tokens)}) == 1


def test_stream_usage_only_when_asked(warm: Engine) -> None:
    *tokens, last = events(warm, messages=HELLO, stream_options={"include_usage": True})
    assert list(last) == [*CHUNK_KEYS, "usage", "system_fingerprint"]
    assert last["choices"] == []
    assert list(last["usage"]) == ["prompt_tokens", "total_tokens", "completion_tokens"]
    assert last["usage"]["completion_tokens"] == 4
    assert "system_fingerprint" not in tokens[-1]


def test_continuous_usage(warm: Engine) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    first, *tokens, last = events(warm, messages=HELLO, stream_options=options)
    assert list(first) == [*CHUNK_KEYS, "usage", "prompt_token_ids", "prompt_text"]
    assert [one["usage"]["completion_tokens"] for one in (first, *tokens, last)] == [0, 1, 2, 3, 4, 4]
    assert list(first["usage"])[-1] == "completion_tokens_details"


def test_completion_whole_and_streamed(warm: Engine) -> None:
    whole = warm.post("/v1/completions", {"model": "tiny", "prompt": "从前有座山", "max_tokens": 4}).json()
    assert list(whole) == COMPLETION_KEYS
    assert whole["object"] == "text_completion"
    assert whole["usage"]["prompt_tokens"] == 5
    streamed = events(warm, "/v1/completions", prompt="从前有座山")
    assert "".join(one["choices"][0]["text"] for one in streamed) == whole["choices"][0]["text"]
    assert streamed[-1]["choices"][0]["finish_reason"] == "length"
    assert warm.post("/v1/completions", {"prompt": [1, 2, 3]}).json()["usage"]["completion_tokens"] == 16


def test_a_stream_comes_token_by_token(warm: Engine) -> None:
    with ExitStack() as stack:
        lines = warm.stream(stack)
        next(lines)
        next(lines)
        assert warm.metric("vllm:num_requests_running") == 1.0


def test_models_and_version(warm: Engine) -> None:
    assert warm.get("/version").json() == {"version": "0.32.0"}
    (model,) = warm.get("/v1/models").json()["data"]
    assert (model["id"], model["root"], model["max_model_len"]) == ("tiny", "models/tiny", 4096)
    assert list(model) == ["id", "object", "created", "owned_by", "root", "parent", "max_model_len", "permission"]


def test_tokenize_counts_what_a_call_is_charged(warm: Engine) -> None:
    counted = warm.post("/tokenize", {"model": "tiny", "messages": HELLO}).json()
    assert list(counted) == ["count", "max_model_len", "tokens", "token_strs"]
    assert counted["count"] == len(counted["tokens"]) == warm.chat().json()["usage"]["prompt_tokens"]
    assert warm.post("/tokenize", {"prompt": "ab cd 你好"}).json()["count"] == 6


def test_a_callers_request_id_is_kept(warm: Engine) -> None:
    answer = warm.client.post(
        "/v1/chat/completions", json={"messages": HELLO, "max_tokens": 1}, headers={"X-Request-Id": "abc-123"}
    )
    assert answer.json()["id"] == "chatcmpl-abc-123"


@pytest.mark.parametrize(
    ("change", "status", "kind", "param", "text"),
    [
        ({"model": "nope"}, 404, "NotFoundError", "model", "The model `nope` does not exist. Valid aliases: tiny."),
        (
            *({"model": "nope", "stream": True}, 404, "NotFoundError", "model"),
            "The model `nope` does not exist. Valid aliases: tiny.",
        ),
        (
            *({"temperature": -1}, 400, "BadRequestError", "temperature"),
            "temperature must be non-negative, got -1.0. (parameter=temperature, value=-1.0)",
        ),
        (
            *({"max_tokens": 9999}, 400, "BadRequestError", "max_tokens"),
            "max_tokens=9999 cannot be greater than max_model_len=4096. Please request fewer output tokens. "
            "(parameter=max_tokens, value=9999)",
        ),
        (
            *({"messages": [{"role": "user", "content": "长" * 5000}]}, 400, "BadRequestError", "input_tokens"),
            "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            "prompt. (parameter=input_tokens, value=4097)",
        ),
        (
            *({"stream_options": {"include_usage": True}}, 400, "BadRequestError", "stream_options"),
            "Stream options can only be defined when `stream=True`.",
        ),
        (
            *({"max_tokens": 0}, 400, "BadRequestError", "max_tokens"),
            "max_tokens must be at least 1, got 0. (parameter=max_tokens, value=0)",
        ),
    ],
)
def test_errors(warm: Engine, change: dict[str, Any], status: int, kind: str, param: str, text: str) -> None:
    answer = warm.chat(**change)
    assert answer.status_code == status
    assert answer.json() == {"error": {"message": text, "type": kind, "param": param, "code": status}}


def test_prompt_and_answer_together_must_fit(warm: Engine) -> None:
    answer = warm.chat(messages=[{"role": "user", "content": "长" * 4000}], max_tokens=200)
    assert answer.status_code == 400
    assert "you requested 200 output tokens and your prompt contains at least 4007 input tokens" in answer.text


def test_bodies_that_cannot_be_read(warm: Engine) -> None:
    path = "/v1/chat/completions"
    plain = warm.client.post(path, content=b"{}", headers={"content-type": "text/plain"}).json()
    assert plain["error"]["message"].endswith("Unsupported Media Type: Only 'application/json' is allowed")
    broken = warm.client.post(path, content=b'{"model":', headers={"content-type": "application/json"})
    assert broken.status_code == 400
    assert (broken.json()["error"]["type"], broken.json()["error"]["param"]) == ("Bad Request", "body.9")
    assert "'loc': 'body.9', 'msg': 'JSON decode error'" in broken.json()["error"]["message"]
    missing = warm.post(path, {"model": "tiny"}).json()["error"]
    assert missing["message"] == (
        "1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', "
        "'input': '<dict of 1 items>'}"
    )
    for body in ([], {"messages": "hello"}, {"messages": [1]}):
        assert warm.post(path, body).status_code == 400
    not_text = warm.client.post(path, content=b"\xff\xfe{", headers={"content-type": "application/json"})
    assert not_text.status_code == 400


def test_unknown_paths_and_methods(warm: Engine) -> None:
    assert (warm.get("/v1/nope").status_code, warm.get("/v1/nope").json()) == (404, {"detail": "Not Found"})
    wrong = warm.get("/v1/chat/completions")
    assert (wrong.status_code, wrong.json()) == (405, {"detail": "Method Not Allowed"})
    assert warm.post("/v1/embeddings", {"input": "a"}).status_code == 404


def test_an_embedding_engine_embeds_and_does_not_chat(host: SimHost) -> None:
    engine = host.start("--task", "embedding").ready()
    answer = engine.post("/v1/embeddings", {"model": "tiny", "input": ["你好", "世界", "你好"]}).json()
    vectors = [one["embedding"] for one in answer["data"]]
    assert [one["index"] for one in answer["data"]] == [0, 1, 2]
    assert vectors[0] == vectors[2] != vectors[1]
    assert sum(one * one for one in vectors[0]) == pytest.approx(1.0, abs=1e-3)
    assert answer["usage"] == {
        "prompt_tokens": 6,
        "total_tokens": 6,
        "completion_tokens": 0,
        "prompt_tokens_details": None,
    }
    assert engine.metric("vllm:generation_tokens_total") == 0.0
    assert engine.metric("vllm:prompt_tokens_total") == 6.0
    assert engine.post("/v1/chat/completions", {"messages": HELLO}).status_code == 404
    assert engine.post("/v1/embeddings", {"input": "字" * 5000}).status_code == 400
    assert engine.post("/v1/embeddings", {"model": "tiny"}).status_code == 400


def test_dev_endpoints_only_in_dev_mode(host: SimHost) -> None:
    engine = host.start(VLLM_SERVER_DEV_MODE="0").ready()
    assert engine.post("/sleep").status_code == 404
    assert engine.get("/is_sleeping").status_code == 404


def test_metrics_have_the_real_names(warm: Engine) -> None:
    warm.chat(max_tokens=3)
    answer = warm.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=1.0.0")
    for name in (
        *("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"),
        *("vllm:num_preemptions_total", "vllm:prompt_tokens_total", "vllm:generation_tokens_total"),
        *("vllm:time_to_first_token_seconds_count", "vllm:e2e_request_latency_seconds_sum"),
        *("vllm:inter_token_latency_seconds_bucket", "vllm:request_time_per_output_token_seconds_count"),
        *("vllm:request_queue_time_seconds_count", "vllm:request_prefill_time_seconds_count"),
    ):
        assert warm.metric(name, 'engine="0"', 'model_name="tiny"') >= 0.0
    assert warm.metric("vllm:request_success_total", 'finished_reason="length"') >= 1.0
    assert warm.metric("vllm:engine_sleep_state", 'sleep_state="awake"') == 1.0
    assert warm.metric("vllm:cache_config_info", 'num_gpu_blocks="4096"', 'block_size="16"') == 1.0
    assert warm.metric("vllm:time_to_first_token_seconds_bucket", 'le="+Inf"') >= 1.0
    assert warm.metric("http_requests_total", 'handler="/v1/chat/completions"', 'status="2xx"') >= 1.0


def test_load_counts_only_with_its_flag(host: SimHost, warm: Engine) -> None:
    assert warm.get("/load").json() == {"server_load": 0}
    engine = host.start("--enable-server-load-tracking").ready()
    with ExitStack() as stack:
        next(engine.stream(stack))
        assert engine.get("/load").json() == {"server_load": 1}
        assert warm.get("/load").json() == {"server_load": 0}

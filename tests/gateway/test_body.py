from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.gateway.body import parse
from console.gateway.errors import Refused

words = st.text(max_size=8)
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | words
values = st.lists(leaves, max_size=3) | st.dictionaries(words, leaves | st.lists(leaves, max_size=2), max_size=3)


@given(st.dictionaries(words, values, max_size=4), st.booleans(), st.booleans())
@settings(max_examples=50, deadline=None)
def test_only_model_and_the_usage_option_change(rest: dict, stream: bool, asked: bool) -> None:
    body = {**rest, "model": "svc", "stream": stream, "stream_options": {"include_usage": asked, "other": 1}}
    sent = json.loads(parse(json.dumps(body).encode()).upstream("engine"))
    expected = {**body, "model": "engine"}
    if stream:
        expected["stream_options"] = {"include_usage": True, "other": 1}
    assert sent == expected


def test_bytes_of_values_stay() -> None:
    raw = '{ "model":"svc", "messages" : [ {"content": "\\u4f60 好", "x": 1.50 } ], "n": 1e2 }'.encode()
    assert parse(raw).upstream("svc") == raw
    assert (
        parse(raw).upstream("e")
        == '{"model":"e","messages":[ {"content": "\\u4f60 好", "x": 1.50 } ],"n":1e2}'.encode()
    )


def test_continuous_usage_does_not_come_alive() -> None:
    raw = b'{"model":"a","stream":true,"stream_options":{"continuous_usage_stats":true}}'
    assert json.loads(parse(raw).upstream("a"))["stream_options"] == {"include_usage": True}
    asked = b'{"model":"a","stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}'
    assert parse(asked).upstream("a") == asked


def test_the_last_of_two_models_counts_here_and_there() -> None:
    body = parse(b'{"model":"a","model":"b"}')
    assert body.model == "b"
    assert body.upstream("c") == b'{"model":"c"}'


@given(st.binary(max_size=60).filter(lambda raw: b"model" not in raw))
def test_noise_is_refused(raw: bytes) -> None:
    with pytest.raises(Refused) as refused:
        parse(raw)
    assert refused.value.status == 400


def test_the_refusal_does_not_repeat_the_prompt() -> None:
    with pytest.raises(Refused) as refused:
        parse(b'{"model": {"secret": "prompt"}, "messages": "secret"}')
    assert "secret" not in refused.value.zh + refused.value.en

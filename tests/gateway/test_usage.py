from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.gateway.body import parse
from console.gateway.call import Call
from console.gateway.snapshot import Key
from console.gateway.usage import Counted, Stream, data_of, read_event

WORD = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"lo \\"usage\\" \\n\\n"},"finish_reason":null}]}\n\n'
NULL = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"a"}}],"usage":null}\n\n'
LIVE = b'data: {"choices": [{"text": "b"}], "usage": {"prompt_tokens": 8, "completion_tokens": 1}}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 8, "total_tokens": 20, "completion_tokens": 12}}\n\n'
DONE = b"data: [DONE]\n\n"
PING = b": keep-alive\n\n"
ERROR = b'data: {"error": {"message": "m", "code": 500}}\n\n'

events = st.lists(st.sampled_from([WORD, NULL, LIVE, PING]), max_size=8)


@given(events, st.booleans(), st.data())
def test_all_but_the_usage_chunk_passes_whatever_the_segments(body: list[bytes], asked: bool, data) -> None:
    message = b"".join(body) + USAGE + DONE
    cuts = sorted(data.draw(st.sets(st.integers(0, len(message)), max_size=8)))
    stream = Stream(usage_asked=asked)
    passed = b"".join(stream.feed(message[a:b]) for a, b in zip([0, *cuts], [*cuts, len(message)], strict=True))
    assert passed == b"".join(body) + (USAGE if asked else b"") + DONE
    assert stream.done
    assert stream.counted == Counted(8, 12)
    assert stream.chunks == sum(event is not PING for event in body)


def test_other_line_ends_too() -> None:
    stream = Stream(usage_asked=False)
    passed = stream.feed((WORD + USAGE + DONE).replace(b"\n\n", b"\r\n\r\n"))
    assert passed == (WORD + DONE).replace(b"\n\n", b"\r\n\r\n")
    assert stream.done


def test_a_torn_event_is_kept_back() -> None:
    stream = Stream(usage_asked=False)
    assert stream.feed(WORD + WORD[:20]) == WORD
    assert not stream.done
    assert stream.chunks == 1


def test_an_endless_event_passes_unread() -> None:
    stream = Stream(usage_asked=False)
    passed = b"".join(stream.feed(b"x" * 300_000) for _ in range(10))
    assert len(passed) > 2**21


def test_an_error_in_the_stream_is_seen() -> None:
    stream = Stream(usage_asked=False)
    assert stream.feed(ERROR + DONE) == ERROR + DONE
    assert stream.error is not None


def test_text_that_only_looks_like_the_end() -> None:
    stream = Stream(usage_asked=False)
    stream.feed(b'data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n')
    assert not stream.done


def test_data_of() -> None:
    assert data_of(b"event: x\ndata: a\ndata:b\n\n") == b"a\nb"
    assert data_of(PING) == b""
    assert read_event(b"nonsense") is None
    assert read_event(b'{"error": "Unauthorized"}').error == "Unauthorized"


@pytest.mark.parametrize(
    ("outcome", "status", "asked", "chunks", "counted", "expected"),
    [
        ("ok", 200, True, 5, Counted(7, 5), (7, 5, False)),
        ("ok", 200, True, 5, None, (7, 5, True)),
        ("cut", 200, True, 3, None, (7, 3, True)),
        ("abandoned", 499, True, 0, None, (7, 0, True)),
        ("abandoned", 499, False, 0, None, (0, 0, False)),
        ("refused", 503, False, 0, None, (0, 0, False)),
        ("failed", 500, True, 0, None, (0, 0, False)),
    ],
)
def test_what_a_record_counts(outcome, status, asked, chunks, counted, expected) -> None:
    body = parse(b'{"model": "m", "messages": []}')
    key = Key(1, "alpha", frozenset(), False, None)
    call = Call("id", "/v1/completions", key, "m", "alpha", body, False, False, None, "ready")
    call.asked, call.chunks, call.counted = asked, chunks, counted
    call.ended(outcome, status)
    record = call.record("gw")
    assert (record["prompt_tokens"], record["generated_tokens"], record["estimated"]) == expected

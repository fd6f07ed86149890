"""How long a call is: by its bytes, by what engines counted, exactly where the caller says so."""

from __future__ import annotations

import json

import pytest

from console.gateway.body import parse
from console.gateway.limits import Limits
from console.gateway.tokens import Sizes, prompt_of


def body(**members):
    return parse(json.dumps({"model": "m", **members}, ensure_ascii=False).encode())


def chat(text, **members):
    return body(messages=[{"role": "user", "content": text}], **members)


class Known(Sizes):
    """Calls of the endpoint that their members belong to."""

    def of(self, service, body):
        return super().of(service, body, path_of(body))

    def learn(self, service, body, prompt_tokens, answer_tokens):
        super().learn(service, prompt_of(body, path_of(body)), prompt_tokens, answer_tokens)


def path_of(body):
    return "/v1/completions" if body.value("prompt") is not None else "/v1/chat/completions"


def sizes(**limits):
    return Known(Limits(**limits))


def test_an_estimate_is_by_bytes_and_says_so() -> None:
    size = sizes().of("m", chat("a" * 4000))
    assert 1000 <= size.prompt <= 1020
    assert (size.exact, size.answer) == (False, None)


@pytest.mark.parametrize("text", ["合同" * 500, "déjà vu " * 300, "plain " * 300])
def test_escaped_text_is_as_long_as_the_same_text_in_utf8(text: str) -> None:
    raw = {"model": "m", "messages": [{"role": "user", "content": text}]}
    escaped, plain = (parse(json.dumps(raw, ensure_ascii=ascii).encode()) for ascii in (True, False))
    one, other = (sizes().of("m", b).prompt for b in (escaped, plain))
    assert abs(one - other) <= 0.15 * other


def test_token_ids_are_counted_exactly() -> None:
    for prompt, count in (([1, 22, 333], 3), ([[1, 2], [3]], 3), ([7], 1)):
        size = sizes().of("m", body(prompt=prompt))
        assert (size.prompt, size.exact) == (count, True)
    assert not sizes().of("m", body(prompt="hi there")).exact
    assert not sizes().of("m", body(prompt=["hi", "there"])).exact


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_bound_of_the_answer_is_the_callers(name: str) -> None:
    size = sizes().of("m", body(prompt=[1, 2, 3], **{name: 100}))
    assert (size.answer, size.total, size.expected, size.room) == (100, 103, 100, 103)


def test_the_newer_name_of_the_bound_wins() -> None:
    assert body(max_tokens=5, max_completion_tokens=9).max_tokens == 9
    assert body(max_tokens=5, max_completion_tokens=None).max_tokens == 5


def test_a_generous_bound_takes_no_more_room_than_answers_do() -> None:
    size = sizes().of("m", body(prompt=[1], max_tokens=32000))
    assert (size.total, size.room) == (32001, 513)
    assert sizes(answer_tokens=64).of("m", body(prompt=[1])).room == 65


def test_pictures_are_not_text() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}
    with_one = chat([{"type": "text", "text": "what is this?"}, picture])
    prompt = prompt_of(with_one, "/v1/chat/completions")
    assert (prompt.text_bytes, prompt.attached) == (13, 1)
    size = sizes().of("m", with_one)
    assert 1024 <= size.prompt <= 1030
    assert not size.exact


def test_what_cannot_be_read_is_sized_by_its_bytes() -> None:
    odd = body(messages=[{"role": "user", "content": {"image_url": 5}}])
    assert sizes().of("m", odd).prompt > 1
    assert sizes().of("m", body()).prompt == 1


def test_only_what_the_endpoint_reads_counts() -> None:
    both = body(prompt=[1, 2, 3], messages=[{"role": "user", "content": "x" * 4000}])
    assert Sizes(Limits()).of("m", both, "/v1/completions").prompt == 3
    assert Sizes(Limits()).of("m", both, "/v1/chat/completions").prompt > 999


def test_tools_count_and_other_members_do_not() -> None:
    plain = sizes().of("m", chat("hi")).prompt
    assert sizes().of("m", chat("hi", tools=[{"name": "f" * 400}])).prompt >= plain + 100
    assert sizes().of("m", chat("hi", metadata={"x": "f" * 400})).prompt == plain


@pytest.mark.parametrize("rate", [1.5, 3.0, 6.0])
def test_it_learns_the_rate_of_each_service(rate: float) -> None:
    known, text = sizes(), chat("word " * 400)
    real = round(prompt_of(text, "/v1/chat/completions").text_bytes / rate)
    for _ in range(60):
        known.learn("m", text, real, 40)
    assert known.of("m", text).prompt == pytest.approx(real, rel=0.02)
    assert known.of("m", text).expected == pytest.approx(40, abs=2)
    assert known.of("other", text).prompt == sizes().of("other", text).prompt


def test_short_prompts_and_pictures_teach_nothing_of_the_rate() -> None:
    known = sizes()
    before = known.of("m", chat("x" * 4000)).prompt
    known.learn("m", chat("hi"), 30, 5)
    known.learn("m", chat([{"type": "image_url", "image_url": {"url": "data:" + "A" * 9000}}]), 3000, 5)
    known.learn("m", body(prompt=list(range(999))), 999, 5)
    assert known.of("m", chat("x" * 4000)).prompt == before


def test_no_count_of_an_engine_makes_the_rate_absurd() -> None:
    known, text = sizes(), chat("word " * 400)
    for tokens in (10**9, 1):
        for _ in range(99):
            known.learn("m", text, tokens, 0)
        assert 100 <= known.of("m", text).prompt <= 5000
    assert known.of("m", text).expected == 1

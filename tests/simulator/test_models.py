"""The documented models: speed, interference, words, and the Prometheus page."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.simulator.harness import SimHost, until
from workers.simulator.cards import CardSpec
from workers.simulator.interference import DECODE_FLOOR, busy_share, slowdown
from workers.simulator.metrics import TTFT_BUCKETS, Histogram, Metrics, size_buckets
from workers.simulator.rates import STEP_FLOOR_S, decode_s, load_s, prefill_s
from workers.simulator.words import VOCABULARY, count_tokens, natural_length, seed_of, word_numbers

A100 = CardSpec("GPU-a100", 0, "NVIDIA A100-SXM4-80GB", 81_920, 600, 2039)
H20 = CardSpec("GPU-h20", 0, "NVIDIA H20", 97_871, 600, 4000, 148)


def test_decode_follows_the_bandwidth() -> None:
    assert decode_s(A100, 15_000, 0) == pytest.approx(STEP_FLOOR_S + 15_000 * 2**20 / (2039e9 * 0.6))
    assert decode_s(H20, 15_000, 0) < decode_s(A100, 15_000, 0)
    assert decode_s(A100, 15_000, 4 * 2**30) > decode_s(A100, 15_000, 0)


def test_prefill_follows_the_arithmetic() -> None:
    assert prefill_s(H20, 15_000, 1000) > prefill_s(A100, 15_000, 1000)  # bandwidth-rich and compute-poor
    assert prefill_s(A100, 15_000, 2000) == pytest.approx(2 * prefill_s(A100, 15_000, 1000))
    assert prefill_s(A100, 15_000, 0) == 0.0


def test_load_is_size_by_bandwidth_shared_by_loaders() -> None:
    assert load_s(10_000, 2000, 1) == 5.0
    assert load_s(10_000, 2000, 3) == 15.0


def test_an_idle_neighbour_costs_nothing_and_saturated_ones_take_turns() -> None:
    assert slowdown([]) == slowdown([0.0, 0.0]) == 1.0
    assert slowdown([1.0]) == 2.0
    assert slowdown([1.0, 1.0, 1.0]) == 4.0


@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
def test_strength_scales_the_loss_alone(strength: float) -> None:
    assert slowdown([0.4], strength) - 1.0 == pytest.approx(0.4 * strength)
    assert slowdown([0.4], 0.0) == 1.0
    assert slowdown([7.0, -3.0], strength) == 1.0 + strength  # shares outside 0..1 are cut


def test_busy_share_grows_from_the_floor_to_one() -> None:
    assert busy_share(0, 8) == 0.0
    assert busy_share(1, 8) > DECODE_FLOOR
    assert busy_share(8, 8) == busy_share(9, 8) == 1.0


def test_a_busy_neighbour_slows_an_engine_down(host: SimHost) -> None:
    """Between two real engines: the published share arrives and the calls take longer."""
    mine, hog = host.start(replica="1").ready(), host.start("--max-num-seqs", "2", replica="2").ready()
    alone = mine.chat(max_tokens=40, ignore_eos=True).elapsed.total_seconds()
    clients = [hog.new_client() for _ in range(2)]
    body = {"messages": [{"role": "user", "content": "忙"}], "max_tokens": 3000, "ignore_eos": True, "stream": True}
    streams = [client.stream("POST", "/v1/chat/completions", json=body) for client in clients]
    responses = [stream.__enter__() for stream in streams]
    try:
        until(lambda: host.card().util_pct == 100, "the hog shows on the card")
        # The look at neighbours is up to half a second old: calls are made until one saw the hog.
        until(lambda: mine.chat(max_tokens=40, ignore_eos=True).elapsed.total_seconds() > 1.5 * alone, "slowed down")
    finally:
        for stream, _ in zip(streams, responses, strict=True):
            stream.__exit__(None, None, None)
    until(lambda: host.card().util_pct == 0, "idle again")


def test_words_are_readable_and_repeatable() -> None:
    first, again = (list(islice(word_numbers(seed_of("你好")), 50)) for _ in range(2))
    assert first == again != list(islice(word_numbers(seed_of("您好")), 50))
    sentence = "".join(VOCABULARY[number] for number in first[:5])
    assert sentence[-1] in "，。；"
    assert len(set(first)) > 15


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("你好", 2), ("hello", 1), ("internationalisation", 4), ("12345", 2), ("a b\n\nc", 5)]
)
def test_token_count(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


def test_natural_lengths_are_bounded() -> None:
    assert all(40 <= natural_length(seed_of(str(number))) < 240 for number in range(200))


def test_histograms_are_cumulative() -> None:
    histogram = Histogram((1, 2, 5))
    for value in (0.5, 2, 3, 99):
        histogram.observe(value)
    lines = list(histogram.lines("h", 'a="b"'))
    assert [line.rpartition(" ")[2] for line in lines[:4]] == ["1.0", "2.0", "3.0", "4.0"]
    assert lines[3].startswith('h_bucket{a="b",le="+Inf"}')
    assert lines[4:] == ['h_count{a="b"} 4.0', 'h_sum{a="b"} 104.5']


def test_size_buckets_end_at_the_longest_request() -> None:
    assert size_buckets(2048)[-3:] == (500, 1000, 2000)
    assert size_buckets(256)[-1] == 200


def test_the_page_can_be_parsed_line_by_line() -> None:
    metrics = Metrics("tiny", 4096, {"num_gpu_blocks": "24"})
    metrics.ttft.observe(0.02)
    metrics.count_sleep("sleep", 0.4)
    page = metrics.page(3, 2, 0.25, "awake")
    for line in page.splitlines():
        assert line.startswith("# TYPE ") or float(line.rpartition(" ")[2]) >= 0
    assert page.count("vllm:time_to_first_token_seconds_bucket") == len(TTFT_BUCKETS) + 1
    assert 'vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.25' in page

"""The Prometheus page of vLLM 0.32: the metrics a control plane reads, with their real names, labels and buckets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

TTFT_BUCKETS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
TOKEN_BUCKETS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
REQUEST_BUCKETS = (*(0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680),)
SLEEP_BUCKETS = (0.01, 0.1, 1, 10, 30, 60, 120, 300, 600)
REASONS = ("stop", "length", "abort", "error", "repetition")
SLEEP_STATES = ("awake", "weights_offloaded", "discard_all")


def size_buckets(max_model_len: int) -> tuple[float, ...]:
    """1, 2, 5, 10 ... tokens, up to the longest request."""
    return tuple(step * 10**power for power in range(12) for step in (1, 2, 5) if step * 10**power <= max_model_len)


class Histogram:
    """Counts by bucket, as Prometheus wants them: `le` in seconds or tokens, cumulative on the page."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        reached = 0
        comma = "," if labels else ""
        for bound, count in zip((*map(float, self.bounds), "+Inf"), self.counts, strict=True):
            reached += count
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {float(reached)}'
        yield f"{name}_count{{{labels}}} {float(reached)}"
        yield f"{name}_sum{{{labels}}} {self.total}"


class Metrics:
    """Everything one engine counts. Gauges are passed in when the page is drawn, so that they are never old."""

    def __init__(self, served_name: str, max_model_len: int, cache_info: dict[str, str]) -> None:
        self.labels = f'engine="0",model_name="{served_name}"'
        self.model_label = f'model_name="{served_name}"'
        self.cache_info = ",".join(f'{name}="{text}"' for name, text in cache_info.items())
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.preemptions = 0
        self.rejections = 0
        self.ended = dict.fromkeys(REASONS, 0)
        self.http: dict[tuple[str, str, str], int] = {}
        self.ttft = Histogram(TTFT_BUCKETS)
        self.between = Histogram(TOKEN_BUCKETS)
        self.per_token = Histogram(TOKEN_BUCKETS)
        self.whole = Histogram(REQUEST_BUCKETS)
        self.queued = Histogram(REQUEST_BUCKETS)
        self.prefill = Histogram(REQUEST_BUCKETS)
        self.decode = Histogram(REQUEST_BUCKETS)
        self.inference = Histogram(REQUEST_BUCKETS)
        self.prompt_sizes = Histogram(size_buckets(max_model_len))
        self.answer_sizes = Histogram(size_buckets(max_model_len))
        self.sleeps: dict[str, Histogram] = {}

    def count_http(self, path: str, method: str, status: int) -> None:
        key = (path, method, f"{status // 100}xx")
        self.http[key] = self.http.get(key, 0) + 1

    def count_sleep(self, operation: str, took_s: float) -> None:
        self.sleeps.setdefault(operation, Histogram(SLEEP_BUCKETS)).observe(took_s)

    def page(self, running: int, waiting: int, kv_used: float, sleep_state: str) -> str:
        """The whole text; `kv_used` is 0..1 in spite of its metric's name."""
        return "\n".join(
            [*self._gauges(running, waiting, kv_used, sleep_state), *self._counters(), *self._timings(), ""]
        )

    def _gauges(self, running: int, waiting: int, kv_used: float, sleep_state: str) -> Iterator[str]:
        one = self.labels
        yield from _single("vllm:num_requests_running", "gauge", one, running)
        yield from _single("vllm:num_requests_waiting", "gauge", one, waiting)
        yield "# TYPE vllm:num_requests_waiting_by_reason gauge"
        yield f'vllm:num_requests_waiting_by_reason{{{one},reason="capacity"}} {float(waiting)}'
        yield f'vllm:num_requests_waiting_by_reason{{{one},reason="deferred"}} 0.0'
        yield "# TYPE vllm:engine_sleep_state gauge"
        for state in SLEEP_STATES:
            yield f'vllm:engine_sleep_state{{{one},sleep_state="{state}"}} {float(state == sleep_state)}'
        yield from _single("vllm:kv_cache_usage_perc", "gauge", one, kv_used)
        yield from _single("vllm:cache_config_info", "gauge", f'{self.cache_info},engine="0"', 1)

    def _counters(self) -> Iterator[str]:
        one = self.labels
        yield from _single("vllm:prefix_cache_queries_total", "counter", one, self.prompt_tokens)
        yield from _single("vllm:prefix_cache_hits_total", "counter", one, 0)
        yield from _single("vllm:num_preemptions_total", "counter", one, self.preemptions)
        yield from _single("vllm:prompt_tokens_total", "counter", one, self.prompt_tokens)
        yield from _single("vllm:generation_tokens_total", "counter", one, self.generation_tokens)
        yield "# TYPE vllm:request_success_total counter"
        for reason, count in self.ended.items():
            labels = f'engine="0",finished_reason="{reason}",{self.model_label}'
            yield f"vllm:request_success_total{{{labels}}} {float(count)}"
        yield "# TYPE vllm:admission_rejections_total counter"
        for reason, count in (("max_num_queued_reqs", self.rejections), ("max_num_queued_tokens", 0)):
            yield f'vllm:admission_rejections_total{{{self.model_label},reason="{reason}"}} {float(count)}'
        yield "# TYPE http_requests_total counter"
        for (path, method, status), count in self.http.items():
            yield f'http_requests_total{{handler="{path}",method="{method}",status="{status}"}} {float(count)}'

    def _timings(self) -> Iterator[str]:
        named = {
            "vllm:request_prompt_tokens": self.prompt_sizes,
            "vllm:request_generation_tokens": self.answer_sizes,
            "vllm:time_to_first_token_seconds": self.ttft,
            "vllm:inter_token_latency_seconds": self.between,
            "vllm:request_time_per_output_token_seconds": self.per_token,
            "vllm:e2e_request_latency_seconds": self.whole,
            "vllm:request_queue_time_seconds": self.queued,
            "vllm:request_inference_time_seconds": self.inference,
            "vllm:request_prefill_time_seconds": self.prefill,
            "vllm:request_decode_time_seconds": self.decode,
        }
        for name, histogram in named.items():
            yield f"# TYPE {name} histogram"
            yield from histogram.lines(name, self.labels)
        for operation, histogram in self.sleeps.items():
            yield from histogram.lines("vllm:sleep_mode_operation_duration_seconds", f'operation="{operation}"')


def _single(name: str, kind: str, labels: str, value: float) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    yield f"{name}{{{labels}}} {float(value)}"

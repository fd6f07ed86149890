"""The gateway before the product's own door and simulated engine: the whole way of a call."""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import pytest

from tests.gateway.farm import PROMPT_S, Farm, Process, on, until
from tests.gateway.test_holds_live import Caller
from tests.ports import free_port
from tests.simulator.harness import Engine, SimHost


class RealHost:
    """A farm's gateway, a door process, and engine `1` behind it."""

    def __init__(self, farm: Farm, folder: Path, sim: SimHost) -> None:
        self.farm, self.folder = farm, folder
        self.engine: Engine = sim.start("--shutdown-timeout", "30").ready()
        self.engine_socket = str(self.engine.socket)
        self.map({1: self.engine_socket})
        (folder / "token").write_text(farm.TOKEN)
        port = free_port()
        env = {
            **os.environ,
            "GONGKA_FARM": "test",
            "GONGKA_HOST": "gpu-01",
            "GONGKA_HOST_DIR": str(folder),
            "GONGKA_DOOR_BIND": f"127.0.0.1:{port}",
            "GONGKA_DOOR_TOKEN_FILE": str(folder / "token"),
        }
        self.door = Process([sys.executable, "-m", "workers.host.door"], folder / "door.log", env)
        farm.hosts["gpu-01"]["door"] = f"http://127.0.0.1:{port}"
        headers = {"Authorization": f"Bearer {farm.TOKEN}"}
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/r/1/health", headers=headers).status_code == 200)

    def map(self, sockets: dict[int, str]) -> None:
        fresh = self.folder / "door.json.new"
        fresh.write_text(json.dumps(sockets))
        fresh.replace(self.folder / "door.json")

    def ready(self) -> None:
        self.farm.routed("svc", engine_model="tiny", **on(1))


@pytest.fixture
def host(own_farm: Callable[..., Farm], tmp_path: Path) -> Iterator[RealHost]:
    sim = SimHost()
    made: RealHost | None = None
    try:
        made = RealHost(own_farm(), tmp_path, sim)
        yield made
    finally:
        if made is not None:
            made.door.stop()
        sim.close()


def test_a_call_goes_all_the_way(host: RealHost) -> None:
    host.ready()
    with openai.OpenAI(base_url=f"{host.farm.url}/v1", api_key=host.farm.KEY, max_retries=0) as client:
        words = [{"role": "user", "content": "你好"}]
        plain = client.chat.completions.create(model="svc", messages=words, max_tokens=20)
        chunks = list(client.chat.completions.create(model="svc", messages=words, max_tokens=20, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == plain.choices[0].message.content
    records = until(lambda: len(found := host.farm.usage()) == 2 and found)
    for record in records:
        assert (record["prompt_tokens"], record["generated_tokens"]) == (
            plain.usage.prompt_tokens,
            plain.usage.completion_tokens,
        )
        assert record["estimated"] is False


def test_the_way_adds_little(host: RealHost) -> None:
    """The bound is the demo's (20 ms at the median of 20 calls), on a machine that does other things too."""
    host.ready()
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}

    def median_ms(client: httpx.Client, url: str, model: str) -> float:
        times = []
        for _ in range(20):
            began = time.perf_counter()
            assert client.post(url, json={"model": model, **body}).status_code == 200
            times.append(time.perf_counter() - began)
        return statistics.median(times) * 1000

    with (
        httpx.Client(transport=httpx.HTTPTransport(uds=host.engine_socket)) as direct,
        httpx.Client(headers=host.farm.headers()) as via,
    ):
        direct_ms = median_ms(direct, "http://engine/v1/chat/completions", "tiny")
        via_ms = median_ms(via, f"{host.farm.url}/v1/chat/completions", "svc")
    print(f"direct {direct_ms:.2f} ms, through gateway and door {via_ms:.2f} ms")
    assert via_ms - direct_ms < 20


def test_a_door_that_does_not_know_the_replica_yet(host: RealHost) -> None:
    host.map({})
    host.ready()
    caller = Caller(host.farm, "svc", stream=True, max_tokens=5)
    until(lambda: caller.text.startswith(": gongka loading"))
    host.map({1: host.engine_socket})
    assert caller.done().text.rstrip().split("\n")[-1].startswith(": gongka hold_ms=")


def test_a_killed_engine_is_told_in_the_stream(host: RealHost) -> None:
    host.ready()
    caller = Caller(host.farm, "svc", stream=True, max_tokens=2000, ignore_eos=True)
    until(lambda: caller.text.count("data:") > 3)
    os.kill(host.engine.pid, signal.SIGKILL)
    assert '"code":"drained"' in caller.done().text
    until(host.farm.quiet)


def test_a_killed_door_is_told_in_the_stream(host: RealHost) -> None:
    host.ready()
    caller = Caller(host.farm, "svc", stream=True, max_tokens=2000, ignore_eos=True)
    until(lambda: caller.text.count("data:") > 3)
    host.door.stop(signal.SIGKILL)
    assert '"code":"drained"' in caller.done().text
    until(host.farm.quiet)
    host.door.start()
    until(lambda: host.farm.call("svc", max_tokens=3).status_code == 200)


def test_a_caller_that_hangs_up_frees_the_engine(host: RealHost) -> None:
    host.ready()
    body = {"model": "svc", "messages": [], "stream": True, "max_tokens": 2000, "ignore_eos": True}
    body["messages"] = [{"role": "user", "content": "hi"}]
    url = f"{host.farm.url}/v1/chat/completions"
    with httpx.stream("POST", url, json=body, headers=host.farm.headers()) as answer:
        reader = answer.iter_raw()  # kept: its end would be a hang-up
        next(reader)
        assert host.engine.metric("vllm:num_requests_running") == 1
    gone = time.monotonic()
    until(lambda: host.engine.metric("vllm:num_requests_running") == 0)
    assert time.monotonic() - gone < PROMPT_S
    until(host.farm.quiet)

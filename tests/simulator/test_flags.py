"""Reading the command line, the environment and request bodies, without a process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workers.simulator import asked
from workers.simulator.flags import ConfigError, Flags, read_environment, read_flags
from workers.simulator.http1 import Request

NEEDED = ["--uds", "/tmp/s", "--model", "models/tiny"]
VARIABLES = {"GONGKA_SIM_DIR": "/tmp/host", "GONGKA_SIM_WEIGHTS_MIB": "1000", "GONGKA_SIM_CARDS": "GPU-0,GPU-1"}


def flags(*more: str) -> Flags:
    return read_flags([*NEEDED, *more])


def test_the_defaults_are_those_of_the_real_one() -> None:
    plain = flags()
    assert (plain.utilization, plain.shutdown_s, plain.max_queued, plain.kv_bytes, plain.tp) == (0.92, 0, None, None, 1)
    assert plain.served_name == "models/tiny"
    assert plain.sleep_mode is False


@pytest.mark.parametrize(("text", "size"), [("2g", 2 * 10**9), ("2G", 2**31), ("512M", 2**29), ("1000", 1000)])
def test_kv_sizes(text: str, size: int) -> None:
    assert flags("--kv-cache-memory-bytes", text).kv_bytes == size


@pytest.mark.parametrize("wrong", [["--kv-cache-memory-bytes", "much"], ["--task", "paint"], ["--max-model", "5"]])
def test_what_cannot_be_read_ends_with_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        flags(*wrong)
    assert "vllm serve: error:" in capsys.readouterr().err


def test_what_reads_but_cannot_be() -> None:
    for wrong in (["--gpu-memory-utilization", "0"], ["--kv-cache-memory-bytes", "0"]):
        with pytest.raises(ConfigError):
            flags(*wrong)


def test_the_environment() -> None:
    sim = read_environment(VARIABLES)
    assert (sim.cards, sim.weights_mib, sim.overhead_mib, sim.interference) == (["GPU-0", "GPU-1"], 1000, 600, 1.0)
    assert (sim.dev_mode, sim.tree, sim.replica) == (False, False, "")
    for name in ("GONGKA_SIM_DIR", "GONGKA_SIM_WEIGHTS_MIB"):
        with pytest.raises(ConfigError, match=name):
            read_environment({key: text for key, text in VARIABLES.items() if key != name})


def request(body: Any, kind: str = "application/json; charset=utf-8") -> Request:
    return Request("POST", "/v1/chat/completions", {}, {"content-type": kind}, json.dumps(body).encode())


def test_a_body_is_read_whatever_its_charset_note() -> None:
    assert asked.read_json(request({"a": 1})) == {"a": 1}
    with pytest.raises(asked.Refused):
        asked.read_json(request({"a": 1}, "text/json"))


def test_content_in_parts_counts_its_texts() -> None:
    parts = [{"type": "text", "text": "你好"}, {"type": "image_url", "image_url": {"url": "x"}}]
    text, tokens = asked.chat_text({"messages": [{"role": "user", "content": parts}]})
    assert text == "你好\n"
    assert tokens == 3 + asked.MESSAGE_TOKENS + asked.TEMPLATE_TOKENS
    assert asked.chat_text({"messages": [{"role": "assistant", "content": None}]})[0] == ""


def test_limits_of_an_answer() -> None:
    own = flags("--max-model-len", "100")
    assert asked.asked({}, "x", 30, own).limit == 70
    assert asked.asked({"max_completion_tokens": 5, "max_tokens": 50}, "x", 30, own).limit == 5
    assert asked.asked({"min_tokens": 900}, "x", 30, own).natural == 900
    assert asked.asked({"max_tokens": 7, "ignore_eos": True}, "x", 30, own).natural == 8
    for body in ({"max_tokens": 71}, {"max_tokens": "7"}, {"n": 2}):
        with pytest.raises(asked.Refused):
            asked.asked(body, "x", 30, own)
    with pytest.raises(asked.Refused):
        asked.asked({}, "x", 100, own)


def test_usage_is_forced_by_the_servers_flag_for_streams_alone() -> None:
    forced = flags("--enable-force-include-usage")
    assert asked.asked({"stream": True}, "x", 3, forced).include_usage
    assert not asked.asked({}, "x", 3, forced).include_usage
    assert not asked.asked({"stream": True}, "x", 3, flags()).include_usage


@pytest.mark.parametrize(("prompt", "tokens"), [("你好", 2), (["你好"], 2), ([5, 6, 7], 3)])
def test_prompts(prompt: Any, tokens: int) -> None:
    assert asked.prompt_text({"prompt": prompt})[1] == tokens


@pytest.mark.parametrize("prompt", [7, ["a", "b"], {"a": 1}, None])
def test_prompts_that_are_none(prompt: Any) -> None:
    with pytest.raises(asked.Refused):
        asked.prompt_text({"prompt": prompt})

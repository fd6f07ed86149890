"""Small parts: keys, errors, limits, choice, progress, routes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields

import pytest

from console.accounts.keys import digest_of, new_key
from console.gateway.choice import choose
from console.gateway.errors import Refused, model_loading, speaks_english
from console.gateway.limits import Limits
from console.gateway.progress import comment, words
from console.gateway.routes import Replica, Routes


def test_keys_are_random_and_kept_as_a_hash() -> None:
    one, two = new_key(), new_key()
    assert one.key != two.key
    assert one.key.startswith("gk_")
    assert len(one.key) == 46
    assert one.prefix == one.key[:12]
    assert one.digest == digest_of(one.key)
    assert len(one.digest) == 64


def test_limits_come_from_the_environment() -> None:
    assert Limits.of({"GONGKA_GATEWAY_STALL_S": "2.5", "GONGKA_GATEWAY": "gw"}).stall_s == 2.5
    assert Limits.of({"GONGKA_GATEWAY_BODY_MIB": "7"}).body_mib == 7
    for wrong in ("0", "x", "99999"):
        with pytest.raises(ValueError, match="BODY_MIB|invalid literal"):
            Limits.of({"GONGKA_GATEWAY_BODY_MIB": wrong})


def test_every_limit_is_in_its_own_range_and_says_why() -> None:
    for field in fields(Limits):
        assert field.metadata["low"] <= field.default <= field.metadata["high"]
        assert field.metadata["unit"]
        assert field.metadata["why"]


@pytest.mark.parametrize(
    ("header", "english"),
    [(b"", False), (b"en", True), (b"en-US,en;q=0.9", True), (b"EN;q=1", True), (b"zh,en", False), (b"*", False)],
)
def test_chinese_unless_english_comes_first(header: bytes, english: bool) -> None:
    assert speaks_english(header) is english


def test_an_error_is_openais_object() -> None:
    error = json.loads(model_loading("合同", 12.34, 12.34).body(english=False))["error"]
    assert error.keys() == {"message", "type", "param", "code", "eta_s"}
    assert (error["type"], error["code"], error["eta_s"]) == ("server_error", "model_loading", 12.3)
    assert "eta_s" not in json.loads(model_loading("合同", None, 30).body(english=True))["error"]
    assert Refused(503, "x", "", "", retry_after_s=0.2).headers() == [(b"retry-after", b"1")]
    assert Refused(503, "x", "", "").headers() == []


def test_the_less_busy_of_two() -> None:
    replicas = [Replica(n, "h") for n in range(4)]
    load = {0: 9, 1: 0, 2: 5, 3: 5}
    drawn = Counter(choose(replicas, (), lambda _: True, load.__getitem__).id for _ in range(600))
    assert drawn[0] == 0, "the busiest never wins a pair"
    assert drawn[1] > drawn[2] + 50
    assert choose(replicas, {0, 1, 2}, lambda _: True, load.__getitem__).id == 3
    assert choose(replicas, {0, 1}, lambda n: n == 2, load.__getitem__).id == 2
    assert choose(replicas, (), lambda _: False, load.__getitem__) is None
    idle = Counter(choose(replicas[:2], (), lambda _: True, lambda _: 0).id for _ in range(200))
    assert min(idle.values()) > 50, "equals share"


def test_an_unknown_estimate_is_left_out() -> None:
    assert comment("weights", None, 2) == b": gongka loading stage=weights position=2\n\n"
    assert comment("weights", 11.6, 3) == b": gongka loading stage=weights eta_s=12 position=3\n\n"
    assert words("甲", "warmup", None, 1, False) == "【甲正在加载：预热引擎，排在第 1 位】\n"
    assert words("甲", "new-stage", 3, 1, True) == "[甲 is loading: new-stage, about 3 s to go, position 1]\n"


def test_routes_tell_what_changed() -> None:
    changed: list[set[str]] = []
    versions: list[int] = []
    routes = Routes(changed.append, lambda: versions.append(routes.blob.version))
    one = {"tenant": "t", "engine_model": "m", "eta_s": 8.0, "unheard_of": 1}
    blob = {"version": 1, "rev": 1, "at": 0, "services": {"a": one, "b": one}, "hosts": {}}
    routes.take(json.dumps(blob).encode())
    blob = {**blob, "rev": 2, "services": {"a": one, "b": {**one, "replicas": [{"id": 4, "host": "h"}]}}}
    routes.take(json.dumps(blob).encode())
    routes.take(json.dumps(blob).encode())
    routes.take(b"nonsense")
    blob = {**blob, "version": 2, "rev": 3, "services": {"a": one}}
    routes.take(json.dumps(blob).encode())
    assert changed == [{"a", "b"}, {"b"}, {"b"}]
    assert versions == [1, 2]
    assert routes.ids == frozenset()
    assert routes.left_s(None) is None
    assert 7.5 < routes.left_s(8.0) <= 8.0
    assert routes.left_s(-3.0) == 0.0

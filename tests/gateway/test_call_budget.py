"""A spent call budget: refused at the one gate all calls pass, told until when, and over to the second."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

import httpx
import pytest

from tests.gateway.farm import Farm, on, until

MONTH_S = 20 * 86400


@pytest.fixture
def barred(farm: Farm) -> Iterator[Farm]:
    yield farm
    farm.barred = {}
    farm.routed("svc", **on(1))


def bar(farm: Farm, until_s: float, *, key: bool = False) -> float:
    resets_at = float(int(time.time() + until_s))
    farm.barred = {"keys": {str(farm.key_id): resets_at}} if key else {"tenants": {"alpha": resets_at}}
    farm.routed("svc", **on(1), audience=["*"])
    return resets_at


@pytest.mark.parametrize("key", [False, True])
@pytest.mark.parametrize("path", ["chat/completions", "completions"])
@pytest.mark.parametrize("stream", [False, True])
def test_every_path_that_spends_is_refused_alike(barred: Farm, path: str, stream: bool, key: bool) -> None:
    resets_at = bar(barred, MONTH_S, key=key)
    answer = barred.call("svc", path=path, stream=stream, prompt="hi")
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "budget_exceeded")
    assert abs(int(answer.headers["retry-after"]) - (resets_at - time.time())) < 5
    instant = datetime.fromtimestamp(resets_at, ZoneInfo("Asia/Shanghai"))
    assert f"{instant:%Y-%m-%d %H:%M:%S}" in answer.json()["error"]["message"]
    assert barred.door.engines[1].calls == []


def test_it_is_said_in_the_callers_language(barred: Farm) -> None:
    bar(barred, MONTH_S)
    assert "预算已用完" in barred.call("svc").json()["error"]["message"]
    assert "is spent" in barred.call("svc", headers={"Accept-Language": "en"}).json()["error"]["message"]


def test_a_cold_service_is_not_loaded_for_it(barred: Farm) -> None:
    bar(barred, MONTH_S)
    barred.routed("cold")
    nudges = len(barred.nudges())
    assert barred.call("cold").status_code == 429
    assert len(barred.nudges()) == nudges
    assert barred.held("cold") == 0


def test_others_go_on_and_reading_too(barred: Farm) -> None:
    bar(barred, MONTH_S, key=True)
    assert barred.call("svc", key=barred.OTHER).status_code == 200
    assert httpx.get(f"{barred.url}/v1/models", headers=barred.headers()).status_code == 200


def test_it_ends_at_its_instant_without_anybody_saying_so(barred: Farm) -> None:
    resets_at = bar(barred, 3)
    assert barred.call("svc").status_code == 429
    until(lambda: barred.call("svc").status_code == 200)
    assert time.time() >= resets_at


def test_a_refused_call_is_no_call(barred: Farm) -> None:
    bar(barred, MONTH_S)
    id = uuid.uuid4().hex
    barred.call("svc", headers={"X-Request-Id": id})
    barred.call("svc", key=barred.OTHER, headers={"X-Request-Id": id + "b"})
    barred.record(id + "b")
    assert not [record for record in barred.usage() if record["id"] == id]

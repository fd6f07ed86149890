"""S19 at the gateway: who is one too many is told at once; who was let in is never dropped."""

from __future__ import annotations

import threading
from typing import Any

import httpx

from tests.gateway.farm import PROMPT_S, Farm, on, until


def stream_in_background(farm: Farm, answers: list[httpx.Response], **extra: Any) -> threading.Thread:
    thread = threading.Thread(target=lambda: answers.append(farm.call("svc", stream=True, **extra)))
    thread.start()
    return thread


def in_hand(farm: Farm) -> int:
    return sum(farm.registration()["in_flight"].values())


def test_beyond_its_room_a_call_is_refused_at_once_and_those_let_in_are_served(farm: Farm) -> None:
    for engine in (1, 2):
        farm.door.engines[engine].chunks, farm.door.engines[engine].gap_s = 12, 0.2
    farm.routed("svc", **on(1, 2), room=4, room_retry_s=23.0)
    answers: list[httpx.Response] = []
    threads = [stream_in_background(farm, answers) for _ in range(4)]
    until(lambda: in_hand(farm) == 4)
    for extra in ({}, {"stream": True}):
        refused = farm.call("svc", **extra)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "over_capacity"
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert 15 <= int(refused.headers["retry-after"]) <= 23, "counted down since control said so"
        assert refused.elapsed.total_seconds() < PROMPT_S
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 4
    assert all(answer.text.endswith("[DONE]\n\n") for answer in answers)
    until(lambda: in_hand(farm) == 0)
    assert farm.call("svc").status_code == 200, "room again"


def test_gateways_share_the_room(farm: Farm) -> None:
    farm.door.engines[1].chunks, farm.door.engines[1].gap_s = 12, 0.2
    farm.gateways = 3
    try:
        farm.routed("svc", **on(1), room=4, room_retry_s=5.0)  # two each, rounded up
        answers: list[httpx.Response] = []
        threads = [stream_in_background(farm, answers) for _ in range(2)]
        until(lambda: in_hand(farm) == 2)
        assert farm.call("svc").status_code == 429
        for thread in threads:
            thread.join()
        assert [answer.status_code for answer in answers] == [200, 200]
    finally:
        farm.gateways = 1


def test_a_call_that_was_let_in_is_not_refused_when_it_looks_for_another_replica(farm: Farm) -> None:
    """Its first replica fails; by then the room is taken."""
    farm.door.engines[1].mode = "unreachable"
    farm.door.engines[2].chunks, farm.door.engines[2].gap_s = 15, 0.2
    farm.routed("svc", **on(2), room=2, room_retry_s=5.0)
    answers: list[httpx.Response] = []
    thread = stream_in_background(farm, answers)
    until(lambda: in_hand(farm) == 1)
    farm.routed("svc", **on(1, 2), room=2, room_retry_s=5.0)
    let_in = farm.call("svc", stream=True)
    assert let_in.status_code == 200
    thread.join()
    assert answers[0].status_code == 200


def test_without_a_room_nothing_is_refused(farm: Farm) -> None:
    farm.door.engines[1].chunks, farm.door.engines[1].gap_s = 5, 0.1
    farm.routed("svc", **on(1), room=None)
    answers: list[httpx.Response] = []
    threads = [stream_in_background(farm, answers) for _ in range(12)]
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 12

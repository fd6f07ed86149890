"""The collector is kept from what is loaded once, and from long pauses in the middle of a page."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from console import garbage

#: In one young collection, seconds of the processor; one of 50,000 objects takes 20 to 60 ms.
MOST_S = 0.05


@pytest.fixture
def collector() -> Iterator[None]:
    """As it was, afterwards."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


def test_what_is_loaded_is_never_walked_through_again(collector):
    loaded = [[n] for n in range(1000)]
    garbage.settle(garbage.PAGES)
    assert gc.get_freeze_count() > len(loaded)
    assert {id(one) for one in loaded}.isdisjoint(map(id, gc.get_objects()))
    assert gc.get_threshold()[0] == garbage.PAGES


def test_a_loop_collects_more_rarely_than_a_page(collector):
    garbage.settle()
    assert gc.get_threshold()[0] == garbage.TICKS > garbage.PAGES


def test_what_pages_leave_is_taken_away_in_small_pieces(collector):
    """As requests do it: things that hold each other, for much longer than one collection takes."""
    paused: list[float] = []
    began = 0.0

    def watch(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        elif info["generation"] == 0:
            paused.append(time.thread_time() - began)

    garbage.settle(garbage.PAGES)
    gc.callbacks.append(watch)
    try:
        for _ in range(20 * garbage.PAGES):
            one: list[object] = []
            one.append(one)
    finally:
        gc.callbacks.remove(watch)
    assert len(paused) > 10
    assert sorted(paused)[len(paused) // 2] < MOST_S


def test_the_web_process_settles_itself():
    """In a process of its own: the setting is of the whole process."""
    said = "import gc, console.asgi; print(gc.get_threshold()[0], gc.get_freeze_count() > 10_000)"
    found = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.split() == [str(garbage.PAGES), "True"]

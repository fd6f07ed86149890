"""Unsaved values of the policy on the last seven days: both policies simulated, beside each other.

It writes nothing but the result of its job, and begins anew when its worker dies: the same hours, the same seed.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import asdict
from datetime import datetime
from typing import Any

from console import state
from console.policy_pages.effect import changed
from console.policy_pages.scope import scope_of
from console.previews.past import scene
from workers.jobs.sides import compare

#: Between two words on progress, at which it may be ended too.
WORD_S = 0.5


def run(arguments: dict[str, Any]) -> Generator[float, None, dict[str, Any]]:
    """`layer`, `subject`, `changes`: what is tried; `until`: end of the seven days; `seed`. Yields the share done."""
    yield 0.0
    before = state.policy()
    after = changed(before, scope_of(arguments["layer"], arguments["subject"]), arguments["changes"])
    until = datetime.fromisoformat(arguments["until"])
    began = time.monotonic()
    past, bunched = scene(until, arguments["seed"], before)
    sides = yield from seldom(compare(past, before, after))
    return asdict(sides) | {
        "since": past.began,
        "until": past.until,
        "calls": sum(sum(days) for days in past.days.values()),
        "events": len(past.calls),
        "bunched": bunched,
        "hours": len({call.at // 3600 for call in past.calls}),
        "took_s": round(time.monotonic() - began, 1),
    }


def seldom(going: Generator[float, None, Any]) -> Generator[float, None, Any]:
    """The same, with a word every half a second: each is a write."""
    said = 0.0
    while True:
        try:
            share = next(going)
        except StopIteration as end:
            return end.value
        if time.monotonic() - said >= WORD_S:
            said = time.monotonic()
            yield share

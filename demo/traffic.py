"""Calls as five companies' applications make them: `python -m demo.traffic --gateway URL --speed X`.

Knows keys (`demo-keys.json` in GONGKA_HOME) and service names, nothing else. A day has a shape: online services follow
office hours, batch ones the night; `--speed` makes days shorter and calls more. Ends within a second of SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from demo import applications
from demo.services import CHECK_PLAIN, CHECK_STREAM, RUSH, SERVICES, Plan
from scheduler.world import Profile

RATE_S = 3.0  # calls a second at the top of a day, at speed 1: two cores stay mostly free
DAY_S = 1800.0  # a day passes in half an hour at speed 1
AT_ONCE = 24  # calls in flight; beyond it callers wait, as a pool of connections makes them
RUSH_FROM, RUSH_UNTIL = 9.5, 10.0  # hours of the day: 38 s at speed 1
RUSH_AT_ONCE = 32  # calls of the rush in flight, beside the others
RUSH_EVERY_S = 0.5  # between two looks whether some have ended
LINE_S = 10.0
STREAM_SHARE = 0.6
TIMEOUT_S = 200.0
PAUSE = "traffic.paused"  # a file in GONGKA_HOME
WORDS = (
    "请概括这份材料的要点。",
    "这台设备报警 E17 是什么原因？",
    "把下面的内容改成正式公文。",
    "客户问退款多久到账。",
    "列出三条风险。",
)


def shape(profile: Profile, hour: float) -> float:
    """How busy a profile is at an hour of the day, 0..1."""
    office = max(0.0, math.sin(math.pi * (hour - 7) / 13)) if 7 <= hour <= 20 else 0.0
    if profile is Profile.ONLINE:
        return 0.15 + 0.85 * office
    if profile is Profile.BATCH:
        return 1.0 if hour >= 22 or hour < 7 else 0.2
    return 0.1 + 0.9 * office


def weights(hour: float, plans: tuple[Plan, ...]) -> list[float]:
    """Calls by service at an hour, relative to each other."""
    return [plan.calls * shape(plan.profile, hour) for plan in plans]


def callable_plans() -> tuple[Plan, ...]:
    """What traffic may call: never the two services that the demo's check finds cold."""
    return tuple(plan for plan in SERVICES if plan.calls > 0 and plan.name not in (CHECK_STREAM, CHECK_PLAIN))


@dataclass(slots=True)
class Caller:
    """One process's traffic. `began` is when its day started: seven in the morning, so something happens at once."""

    client: httpx.AsyncClient
    keys: dict[str, str]
    speed: float
    dice: random.Random
    plans: tuple[Plan, ...] = field(default_factory=callable_plans)
    began: float = field(default_factory=time.monotonic)
    counts: Counter[str] = field(default_factory=Counter)
    calls: set[asyncio.Task[None]] = field(default_factory=set)
    rushing: set[asyncio.Task[None]] = field(default_factory=set)
    pause: Path | None = None  # while this file exists no new call is made

    def hour(self) -> float:
        return (8.0 + (time.monotonic() - self.began) * self.speed / DAY_S * 24) % 24

    def gap_s(self) -> float:
        """Until the next call: Poisson, as independent callers make."""
        now = sum(weights(self.hour(), self.plans))
        most = sum(plan.calls for plan in self.plans)
        return self.dice.expovariate(max(0.05, RATE_S * self.speed * now / most))

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.gap_s())
            if len(self.calls) < AT_ONCE and not self.paused():
                plan = self.dice.choices(self.plans, weights(self.hour(), self.plans))[0]
                self.begin(plan, self.calls)

    async def rush(self) -> None:
        """Once a day as many calls of one service as it is let have, as fast as they are answered."""
        plan = next(plan for plan in SERVICES if plan.name == RUSH)
        while True:
            await asyncio.sleep(RUSH_EVERY_S)
            for _ in range(self.rush_due()):
                self.begin(plan, self.rushing)

    def rush_due(self) -> int:
        """Calls of the rush to begin now."""
        on = RUSH_FROM <= self.hour() < RUSH_UNTIL and not self.paused()
        return RUSH_AT_ONCE - len(self.rushing) if on else 0

    def paused(self) -> bool:
        return self.pause is not None and self.pause.exists()

    def begin(self, plan: Plan, calls: set[asyncio.Task[None]]) -> None:
        task = asyncio.create_task(self.call(plan))
        calls.add(task)
        task.add_done_callback(calls.discard)

    async def call(self, plan: Plan) -> None:
        stream = self.dice.random() < STREAM_SHARE
        body = {
            "model": plan.name,
            "stream": stream,
            "max_tokens": self.dice.randint(16, 120),
            "messages": [{"role": "user", "content": self.dice.choice(WORDS)}],
        }
        key = self.dice.choice(applications.of(self.keys, plan.tenant))
        headers = {"Authorization": f"Bearer {key}"}
        try:
            async with self.client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
                async for _ in answer.aiter_raw():
                    pass
            self.counts["ok" if answer.status_code == 200 else str(answer.status_code)] += 1
        except httpx.HTTPError as error:
            self.counts[type(error).__name__] += 1

    async def report(self) -> None:
        while True:
            await asyncio.sleep(LINE_S)
            told = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())) or "no calls"
            now = len(self.calls) + len(self.rushing)
            print(f"{int(self.hour()):02d}:00 in flight {now}; last {LINE_S:.0f} s: {told}", flush=True)
            self.counts.clear()


@contextlib.contextmanager
def ended_by(stop: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    yield


async def drive(gateway: str, keys: dict[str, str], speed: float, seed: int | None, pause: Path) -> None:
    """Call until told to end; rest while the file `pause` exists."""
    stop = asyncio.Event()
    limits = httpx.Limits(max_connections=AT_ONCE + RUSH_AT_ONCE)
    with ended_by(stop):
        async with httpx.AsyncClient(base_url=gateway, timeout=TIMEOUT_S, limits=limits, trust_env=False) as client:
            caller = Caller(client, keys, speed, random.Random(seed), pause=pause)
            tasks = [asyncio.create_task(part) for part in (caller.run(), caller.rush(), caller.report())]
            await stop.wait()
            ending = [*tasks, *caller.calls, *caller.rushing]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)


def read_keys(home: Path) -> dict[str, str]:
    keys: dict[str, str] = json.loads((home / "demo-keys.json").read_text())
    return keys


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.traffic", description="Traffic of the demo farm")
    parser.add_argument("--gateway", required=True, help="address, without /v1")
    parser.add_argument("--speed", type=float, default=1.0, help="1: a day in half an hour, about 3 calls a second")
    parser.add_argument("--seed", type=int, help="the same calls every time")
    chosen = parser.parse_args(words)
    if chosen.speed <= 0:
        parser.error("--speed must be above 0")
    home = Path(os.environ.get("GONGKA_HOME", "var"))
    asyncio.run(drive(chosen.gateway, read_keys(home), chosen.speed, chosen.seed, home / PAUSE))
    return 0


if __name__ == "__main__":
    sys.exit(main())

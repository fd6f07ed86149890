"""The farm and the traffic of the stories' benchmark. Synthetic, and fixed before any policy was tuned on it.

32 cards on four hosts, 72 services of a group: a few that talk to people all day, twenty of the middle, forty that
hardly anybody calls, and batch by night. Calls of a service are Poisson with a rate by hour and kind of day; sessions
of seldom-called services come in clusters; each day one busy service has half an hour of four times its calls; now and
then an engine holds more memory than it declared. Everything is drawn from one seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from scheduler.policy import DEFAULT
from scheduler.simulation import Call, Growth
from scheduler.tiers import tier_of
from scheduler.world import Card, Claim, Demand, Host, Pool, Profile, Service, World

BEGAN = 20_829 * 86400.0 - 8 * 3600  # a Monday, midnight in Shanghai
DAY_S, HOUR_S = 86400.0, 3600.0
OFFSET_S = 8 * 3600
PER_HOST, HOSTS = 8, 4
DRIVER_MIB = 450
BANDWIDTH_MIB_S = 2000
CLASSES = (
    ("a800-80", 81920, 8.0, 2000),
    ("l40s-48", 46068, 8.9, 900),
    ("l20-48", 46068, 8.9, 700),
    ("a6000-48", 49140, 8.6, 700),
)
#: (weights, KV cap, headroom) MiB
SMALL, SEVEN, FOURTEEN, THIRTY = (
    (3174, 3072, 614), (14541, 6144, 1434), (28160, 8192, 2048), (33792, 10240, 2048),
)  # fmt: skip
WORK = (0, 0, 0, 0, 0, 0, 0, 1, 4, 8, 10, 9, 5, 7, 9, 9, 8, 6, 3, 2, 2, 1, 1, 0)
EVENING = (1, 0, 0, 0, 0, 0, 1, 2, 4, 5, 6, 6, 7, 6, 5, 5, 6, 7, 9, 10, 10, 8, 5, 2)
NIGHT = (10, 10, 10, 10, 8, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 10)


@dataclass(frozen=True, slots=True)
class Habit:
    """`peak_h`: calls in its busiest hour; `hours` its shape over the day; `off_pct`: of that on days off."""

    service: Service
    peak_h: float
    hours: tuple[int, ...]
    off_pct: int
    prefill_s: float
    decode_s: float
    cluster: int = 1  # calls that come together, minutes apart
    at_min: int | None = None  # a job at this minute of the day, workdays, beside the rest


def habits(seed: int) -> list[Habit]:
    """All services with their traffic; details by the seed."""
    dice = random.Random(f"habits {seed}")
    found = [
        _habit("hotline", SEVEN, Profile.ONLINE, 1000, WORK, 35, 0.18, 16.0, most=4, seqs=8),
        _habit("assistant", FOURTEEN, Profile.ONLINE, 800, EVENING, 60, 0.25, 18.0, most=4, seqs=8),
        _habit("contracts", SEVEN, Profile.ONLINE, 700, WORK, 10, 0.2, 20.0, most=3, seqs=8),
        _habit("search", SMALL, Profile.ONLINE, 1200, EVENING, 70, 0.08, 4.0, most=2, seqs=16),
    ]
    for i in range(20):
        shape, peak = dice.choice([SMALL, SEVEN, SEVEN, FOURTEEN]), dice.uniform(25, 110)
        profile = dice.choice([Profile.ONLINE, Profile.LOWFREQ, Profile.LOWFREQ])
        found.append(_habit(f"middle-{i}", shape, profile, peak, dice.choice([WORK, EVENING]), 25, 0.2, 20.0))
    for i in range(42):
        shape, peak = dice.choice([SMALL, SEVEN, SEVEN, FOURTEEN, THIRTY]), dice.uniform(0.2, 1.2)
        one = _habit(f"seldom-{i}", shape, Profile.LOWFREQ, peak, WORK, 5, 0.25, 12.0, cluster=dice.randint(2, 6))
        found.append(replace(one, at_min=dice.choice([None, None, 480 + dice.randrange(120)])))
    for i in range(6):
        found.append(_habit(f"batch-{i}", dice.choice([SEVEN, FOURTEEN]), Profile.BATCH, 200, NIGHT, 100, 0.5, 50.0))
    return [replace(h, service=_known(h.service, int(weekly(h)))) for h in found]


def _known(service: Service, calls_7d: int) -> Service:
    """With what a week of its calls says of it."""
    return replace(service, tier=tier_of(calls_7d, DEFAULT), demand=Demand(calls_7d=calls_7d))


def _habit(
    name: str, shape: tuple[int, int, int], profile: Profile, peak_h: float, hours: tuple[int, ...], off_pct: int,
    prefill_s: float, decode_s: float, most: int = 1, seqs: int = 8, cluster: int = 1,
) -> Habit:  # fmt: skip
    service = Service(
        name=name, tenant=f"t{len(name) % 5}", claim=Claim(*shape), profile=profile, tier=tier_of(0, DEFAULT),
        priority={Profile.ONLINE: 70, Profile.LOWFREQ: 50, Profile.BATCH: 30}[profile], max_replicas=most,
        max_num_seqs=seqs, one_request_mib=256, generation_s=prefill_s + decode_s,
    )  # fmt: skip
    return Habit(service, peak_h, hours, off_pct, prefill_s, decode_s, cluster)


def weekly(habit: Habit) -> float:
    day = habit.peak_h * sum(habit.hours) / max(habit.hours)
    return day * (5 + 2 * habit.off_pct / 100)


def world(services: list[Service]) -> World:
    """The farm with nothing on it."""
    cards = {}
    for host in range(HOSTS):
        kind, total_mib, cap, price = CLASSES[host * len(CLASSES) // HOSTS]
        for index in range(PER_HOST):
            name = f"GPU-{host}-{index}"
            cards[name] = Card(name, f"gpu-{host}", index, kind, total_mib, DRIVER_MIB, DRIVER_MIB, compute_cap=cap,
                               price_fen_h=price)  # fmt: skip
    hosts = {f"gpu-{i}": Host(f"gpu-{i}", BEGAN, 512 * 1024, BANDWIDTH_MIB_S) for i in range(HOSTS)}
    return World(hosts, cards, {s.name: s for s in services}, {}, pools={"default": Pool("default")})


def calls(found: list[Habit], days: int, seed: int) -> Iterator[Call]:
    """All calls of so many days, hour by hour."""
    dice = random.Random(f"calls {seed}")
    for day in range(days):
        burst = found[day % 3].service.name, 9 + dice.randrange(8)
        off = day % 7 >= 5
        for hour in range(24):
            begins = BEGAN + day * DAY_S + hour * HOUR_S
            coming = [c for habit in found for c in _hour(habit, begins, hour, off, burst, dice)]
            yield from sorted(coming)


def _hour(
    habit: Habit, begins: float, hour: int, off: bool, burst: tuple[str, int], dice: random.Random
) -> Iterator[Call]:
    rate = habit.peak_h * habit.hours[hour] / max(habit.hours) * (habit.off_pct / 100 if off else 1.0)
    for _ in range(_poisson(rate / habit.cluster, dice)):
        at = begins + dice.random() * HOUR_S
        for _ in range(habit.cluster):
            if at < begins + HOUR_S:
                yield _call(habit, at, dice)
            at += dice.expovariate(1 / 70)
    if burst == (habit.service.name, hour):
        for _ in range(_poisson(rate * 1.5, dice)):
            yield _call(habit, begins + 900 + dice.random() * 1800, dice)
    if habit.at_min is not None and not off and habit.at_min // 60 == hour:
        at = begins + habit.at_min % 60 * 60 + dice.uniform(-40, 40)
        yield _call(habit, max(begins, at), dice)


def _call(habit: Habit, at: float, dice: random.Random) -> Call:
    prefill = habit.prefill_s * dice.uniform(0.7, 1.4)
    return Call(at, habit.service.name, dice.random() < 0.5, prefill, habit.decode_s * dice.lognormvariate(-0.18, 0.6))


def _poisson(mean: float, dice: random.Random) -> int:
    """By gaps: exact, and quick enough at these rates."""
    count, at = 0, dice.expovariate(1.0) if mean > 0 else 1.0
    while mean > 0 and at < mean:
        count += 1
        at += dice.expovariate(1.0)
    return count


def growths(found: list[Habit], days: int, seed: int) -> list[Growth]:
    """Two a day: mostly little ones, one in five of several GiB, on services that are in use by day."""
    dice = random.Random(f"growths {seed}")
    names = [h.service.name for h in found if not h.service.name.startswith("seldom")]
    rows = []
    for day in range(days):
        for _ in range(2):
            mib = dice.randint(3000, 9500) if dice.random() < 0.2 else dice.randint(300, 1500)
            at = BEGAN + day * DAY_S + dice.uniform(9, 21) * HOUR_S
            rows.append(Growth(at, dice.choice(names), mib, dice.uniform(60, 900)))
    return sorted(rows)

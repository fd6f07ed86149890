"""Hosts: engines that start, wake, fall asleep and stop in their time, and memory that may be too much for a card."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from scheduler.simulation import gate, holding
from scheduler.simulation.copies import Copy
from scheduler.simulation.state import Farm
from scheduler.simulation.trace import Growth
from scheduler.world import LoadTimes, Phase, Want

TIMES_KEPT = 10
AGAIN_S = 1.0  # between two samples of a card that is nearly full


def begin(farm: Farm, copy: Copy) -> None:
    """A start was decided: weights are read with all others that read on the host."""
    host = farm.host(copy)
    _read_on(farm, host)
    copy.left_mib, copy.reading = float(copy.service.weights_mib), True
    farm.measures.loads += 1
    farm.rate(copy)
    _next_read(farm, host)


def _readers(farm: Farm, host: str) -> list[Copy]:
    return [c for c in farm.copies.values() if c.reading and farm.host(c) == host]


def _read_on(farm: Farm, host: str) -> None:
    """What was read since the last change: the storage's bandwidth in equal shares."""
    readers = _readers(farm, host)
    passed = farm.now - farm.reading.get(host, farm.now)
    farm.reading[host] = farm.now
    for copy in readers:
        copy.left_mib -= passed * farm.world.hosts[host].bandwidth_mib_s / len(readers)


def _next_read(farm: Farm, host: str) -> None:
    """When the first of them has read all, if nothing changes before."""
    farm.reads[host] += 1
    readers = _readers(farm, host)
    if readers:
        first = min(copy.left_mib for copy in readers)
        rest_s = max(0.0, first) * len(readers) / farm.world.hosts[host].bandwidth_mib_s
        farm.at(farm.now + rest_s, partial(_read, farm, host, farm.reads[host]))


def _read(farm: Farm, host: str, number: int) -> None:
    if farm.reads[host] != number:
        return
    _read_on(farm, host)
    for copy in _readers(farm, host):
        if copy.left_mib < 1.0:  # MiB: a clock of seconds since the epoch is no finer
            copy.reading = False
            farm.rate(copy)
            farm.change(copy, stage="warmup")
            rest_s = farm.machine.init_s + farm.machine.warm_up_s
            farm.at(farm.now + rest_s, partial(ready, farm, copy, copy.life))
    _next_read(farm, host)


def stop_reading(farm: Farm, copy: Copy) -> None:
    """A load is called off."""
    if copy.reading:
        host = farm.host(copy)
        _read_on(farm, host)
        copy.reading = False
        farm.rate(copy)
        _next_read(farm, host)


def wake(farm: Farm, copy: Copy) -> None:
    farm.measures.wakes += 1
    farm.at(farm.now + farm.machine.wake_s, partial(ready, farm, copy, copy.life))


def ready(farm: Farm, copy: Copy, life: int) -> None:
    """It answers from here on."""
    if copy.life != life or copy.seen.phase is not Phase.STARTING:
        return
    _learn(farm, copy)
    farm.change(
        copy,
        phase=Phase.READY,
        since=farm.now,
        loaded_at=farm.now,
        in_flight=0,
        waking=False,
        failures_here=0,
        stage="",
    )
    farm.touched.add(copy.seen.id)
    for i, one in enumerate(farm.evictions):
        if one.open and one.service == copy.seen.service:
            farm.measures.rebuilt.append(farm.now - one.at)
            farm.evictions[i] = type(one)(one.service, one.card, one.at, False)
    _scaled(farm, copy)
    gate.served(farm, copy)
    farm.ask(farm.now)


def _learn(farm: Farm, copy: Copy) -> None:
    times = farm.wake_times if copy.seen.waking else farm.load_times
    key = (copy.seen.service, farm.host(copy))
    took = farm.now - copy.seen.want_since
    times[key] = LoadTimes((*times.get(key, LoadTimes()).seconds, took)[-TIMES_KEPT:])


def _scaled(farm: Farm, copy: Copy) -> None:
    """Are all copies of a raise ready with this one?"""
    desk = farm.desks[copy.seen.service]
    if desk.raised is not None and len(desk.routed) + 1 >= desk.raised[1]:
        farm.measures.scale_ups.append(farm.now - desk.raised[0])
        desk.raised = None


def drain(farm: Farm, copy: Copy) -> None:
    """Gateways let go of it; it is quiet once nothing is in flight."""
    gate.leave(farm, copy)
    farm.at(farm.now + farm.machine.unroute_s, partial(_quiet, farm, copy, copy.life, copy.seen.want_since))


def _quiet(farm: Farm, copy: Copy, life: int, since: float) -> None:
    seen = copy.seen
    if copy.life != life or seen.want is not Want.DRAINED or seen.want_since != since:
        return
    if copy.in_flight:
        farm.at(farm.now + farm.machine.unroute_s, partial(_quiet, farm, copy, life, since))
        return
    farm.change(copy, quiet=True, in_flight=0)
    farm.ask(farm.now)


def go(farm: Farm, copy: Copy) -> None:
    """To sleep, or away: its memory is back after a while."""
    stop_reading(farm, copy)
    gate.leave(farm, copy)
    copy.life += 1
    if copy.in_flight:
        gate.cut(farm, copy)
    farm.at(farm.now + farm.machine.stop_s, partial(_gone, farm, copy, copy.life))


def _gone(farm: Farm, copy: Copy, life: int) -> None:
    if copy.life != life:
        return
    copy.grown_mib = 0
    if copy.seen.want is Want.ASLEEP:
        farm.change(copy, phase=Phase.ASLEEP, since=farm.now, measured_mib=None, in_flight=None)
    else:
        remove(farm, copy)
    watch(farm, set(copy.seen.cards))
    farm.ask(farm.now)


def remove(farm: Farm, copy: Copy) -> None:
    del farm.copies[copy.seen.id]
    farm.of_service[copy.seen.service].remove(copy)
    for card in copy.seen.cards:
        farm.on_card[card].remove(copy)


def watch(farm: Farm, cards: set[str]) -> None:
    """A sample of these cards: pressure begins or ends, and is looked at again while it lasts."""
    farm.sample(cards)
    holding.note(farm, cards)
    for name in sorted(cards):
        card, since = farm.world.cards[name], farm.pressed_since.get(name)
        if card.pressed_samples and since is None:
            farm.pressed_since[name] = farm.now
            farm.measures.pressures += 1
        elif not card.pressed_samples and since is not None:
            farm.measures.relieved.append(farm.now - since)
            del farm.pressed_since[name]
        if card.pressed_samples:
            farm.ask(farm.now)
            farm.at(farm.now + AGAIN_S, partial(watch, farm, {name}))


@dataclass(slots=True)
class Growing:
    """A copy that takes more and more beyond its claim, until it has `growth.mib` of it."""

    copy: Copy
    life: int
    growth: Growth
    left_mib: float
    pressed: bool = False


def grow(farm: Farm, growth: Growth) -> None:
    """The copy with most calls holds more than its claim for a while; where the card has no more, it is killed."""
    copies = [c for c in farm.of_service[growth.service] if c.seen.phase is Phase.READY]
    if not copies:
        return
    copy = max(copies, key=lambda c: (c.in_flight, -c.seen.id))
    farm.measures.growths += 1
    _more(farm, Growing(copy, copy.life, growth, growth.mib))


def _more(farm: Farm, one: Growing) -> None:
    """What it takes until the next sample of its host. Memory comes with calls, piece by piece, as real engines' does:
    in one piece nobody could do anything about it, and no rule would be tried."""
    copy, cards = one.copy, set(one.copy.seen.cards)
    if copy.life != one.life or copy.seen.id not in farm.copies:
        farm.measures.absorbed += not one.pressed  # it is gone, whatever for
        return
    piece = min(one.left_mib, farm.machine.grow_mib_s * AGAIN_S)
    copy.grown_mib += round(piece)
    one.left_mib -= piece
    if any(farm.used_mib(card) > farm.world.cards[card].total_mib for card in cards):
        _killed(farm, copy)
        return
    farm.change(copy, measured_mib=copy.process_mib(farm.policy))
    watch(farm, cards)
    one.pressed |= not cards.isdisjoint(farm.pressed_since)
    if one.left_mib > 0:
        farm.at(farm.now + AGAIN_S, partial(_more, farm, one))
        return
    farm.measures.absorbed += not one.pressed
    farm.at(farm.now + one.growth.for_s, partial(_shrink, farm, copy, one.life, one.growth.mib))


def _shrink(farm: Farm, copy: Copy, life: int, mib: int) -> None:
    if copy.life == life and copy.seen.id in farm.copies:
        copy.grown_mib = max(0, copy.grown_mib - mib)
        farm.change(copy, measured_mib=copy.process_mib(farm.policy) if copy.grown_mib else None)
        watch(farm, set(copy.seen.cards))


def _killed(farm: Farm, copy: Copy) -> None:
    """The driver had no more memory to give: the engine is gone, and whoever called it."""
    farm.measures.kills += 1
    gate.leave(farm, copy)
    gate.cut(farm, copy, killed=True)
    copy.grown_mib = 0
    farm.change(
        copy, phase=Phase.FAILED, since=farm.now, failed_at=farm.now, failures_here=copy.seen.failures_here + 1,
        fault="out_of_memory", measured_mib=None, in_flight=None,
    )  # fmt: skip
    watch(farm, set(copy.seen.cards))
    farm.ask(farm.now)

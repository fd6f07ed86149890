"""From hours and sessions to calls: what was recorded by the hour is spread inside it. The same for the same seed.

The hours are what they were: as many calls, as long on average. Where sessions were recorded, a session's first call is
at its beginning and the others lie within it; elsewhere they lie anywhere in the hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random

from scheduler.simulation import Call

HOUR_S = 3600.0
#: A token of the prompt takes so much less time than one that is generated: prompts are read many tokens at once.
PROMPT_TOKENS_A_STEP = 100
#: More calls an hour are bunched: several, one after the other, are one event.
MOST_EVENTS_H = 150
#: And no bunch lasts longer, or drains would wait for it.
BUNCH_S = 60.0
UNKNOWN_CALL_S = 2.0  # where nobody has recorded how long any call took
STREAMS = 0.5  # how many are streams is not recorded


@dataclass(frozen=True, slots=True)
class Hour:
    """One service in one hour from `start` (seconds since the epoch). `ms` is of the `ok` calls together."""

    service: str
    start: float
    calls: int
    ok: int = 0
    ms: int = 0
    prompt: int = 0
    generated: int = 0


@dataclass(frozen=True, slots=True)
class Length:
    """Seconds of one call, for itself: to its first token, and after it."""

    prefill_s: float
    decode_s: float

    @property
    def whole_s(self) -> float:
        return self.prefill_s + self.decode_s


Sessions = Mapping[str, Sequence[tuple[float, float]]]


def calls(hours: Sequence[Hour], sessions: Sessions, seed: int) -> list[Call]:
    """All calls in the order of their time. `sessions`: by service, (first call, last call)."""
    usual = lengths(hours)
    found = [call for hour in hours for call in _of_hour(hour, sessions.get(hour.service, ()), usual, seed)]
    return sorted(found)


def bunched(hours: Iterable[Hour]) -> int:
    """How many calls are part of a bunch."""
    hours = list(hours)
    usual = lengths(hours)
    return sum(hour.calls for hour in hours if _bunch(hour, _length(hour, usual)) > 1)


def lengths(hours: Iterable[Hour]) -> dict[str, Length]:
    """How long a call of each service takes on average over all these hours."""
    sums: dict[str, list[int]] = {}
    for hour in hours:
        own = sums.setdefault(hour.service, [0, 0, 0, 0])
        for i, value in enumerate((hour.ok, hour.ms, hour.prompt, hour.generated)):
            own[i] += value
    return {name: _split(*own) for name, own in sums.items()}


def _split(ok: int, ms: int, prompt: int, generated: int) -> Length:
    """By tokens; nobody recorded when the first one came."""
    whole_s = ms / ok / 1000 if ok and ms else UNKNOWN_CALL_S
    steps = prompt / PROMPT_TOKENS_A_STEP + generated
    prefill_s = whole_s * (prompt / PROMPT_TOKENS_A_STEP / steps if steps else 1.0)
    return Length(prefill_s, whole_s - prefill_s)


def _length(hour: Hour, usual: Mapping[str, Length]) -> Length:
    if hour.ok and hour.ms:
        return _split(hour.ok, hour.ms, hour.prompt, hour.generated)
    return usual[hour.service]


def _bunch(hour: Hour, length: Length) -> int:
    """Calls that are one event."""
    return max(1, min(ceil(hour.calls / MOST_EVENTS_H), int(BUNCH_S / max(length.whole_s, 0.001))))


def _of_hour(
    hour: Hour, sessions: Sequence[tuple[float, float]], usual: Mapping[str, Length], seed: int
) -> Iterator[Call]:
    dice = Random(f"{seed} {hour.service} {hour.start:.0f}")
    length = _length(hour, usual)
    bunch = _bunch(hour, length)
    left = hour.calls
    for at in _times(hour, sessions, ceil(left / bunch), dice):
        count = min(bunch, left)
        left -= count
        lasts = length.whole_s * count - length.prefill_s
        yield Call(at, hour.service, dice.random() < STREAMS, length.prefill_s, lasts, count)


def _times(hour: Hour, sessions: Sequence[tuple[float, float]], count: int, dice: Random) -> list[float]:
    """So many moments of the hour: beginnings of sessions first, the rest anywhere within them."""
    ends = hour.start + HOUR_S
    spans = [(max(a, hour.start), min(b, ends)) for a, b in sessions if a < ends and b >= hour.start]
    begun = [a for a, _ in sessions if hour.start <= a < ends][:count]
    if not spans:
        spans = [(hour.start, ends)]
    whole = sum(b - a for a, b in spans)
    rest = [_within(spans, dice.random() * whole) for _ in range(count - len(begun))]
    return sorted(min(at, ends - 0.001) for at in (*begun, *rest))


def _within(spans: Sequence[tuple[float, float]], offset: float) -> float:
    """The moment that lies so far into the spans, put one after the other."""
    for a, b in spans:
        if offset <= b - a:
            return a + offset
        offset -= b - a
    return spans[-1][1]

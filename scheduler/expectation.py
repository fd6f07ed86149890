"""What a World carries of the future of a service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Forecast:
    """When calls of a service are expected, as last worked out (`scheduler.forecast`).

    `hours`: probability of a call in each whole hour from `hours_from` on; `recalls`: was it called in that hour a day
    before. `moments`: (time, probability) of periodic jobs, ascending. `load_s`: of the slowest host that may carry it.
    `automatic`: preloads of it are of use; else only its owner's word loads it ahead.
    """

    hours_from: float
    hours: tuple[float, ...] = ()
    recalls: tuple[bool, ...] = ()
    moments: tuple[tuple[float, float], ...] = ()
    load_s: float = 0.0
    automatic: bool = True

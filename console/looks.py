"""Rows of looks at services' loads, and back: what scaling knows of each service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import msgspec

from console import reading
from console.catalog.models import Scaling as ScalingRow
from console.unchanged import Unchanged
from scheduler.looks import Scaling

_known: Unchanged[Scaling] = Unchanged()


def scalings() -> Mapping[int, Scaling]:
    """By service row; absent: never looked at. One query."""
    return {row[0]: _known.of(row[0], row, partial(_of, row)) for row in reading.scalings()}


def written(seen: Scaling) -> str:
    """The column `looks`."""
    return msgspec.json.encode(seen).decode()


def known_of(row: ScalingRow) -> Scaling:
    """The same of one row read as a model."""
    decided = (row.raised_to, row.raised_waiting, row.raised_at, row.came_from, row.came_from_at)
    return _of((row.pk, row.looks, *decided))


def _of(row: reading.ScalingRow) -> Scaling:
    _, looks, raised_to, raised_waiting, raised_at, came_from, came_from_at = row
    return replace(
        msgspec.json.decode(looks, type=Scaling),
        raised_to=raised_to,
        raised_waiting=raised_waiting,
        raised_at=None if raised_at is None else raised_at.timestamp(),
        came_from=came_from,
        came_from_at=None if came_from_at is None else came_from_at.timestamp(),
    )

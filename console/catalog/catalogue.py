"""The catalogue we ship: facts of cards and models. What its sources did not say is None there, never a guess."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"


@cache
def _rows(name: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))}


def card(card_id: str) -> dict[str, Any]:
    """Raises KeyError for a class we do not know. `total_mib` is what the driver reports, not what the box says."""
    return _rows("cards")[card_id]


def model(model_id: str) -> dict[str, Any]:
    """Raises KeyError. `weights_mib` has a size by dtype where it is known."""
    return _rows("models")[model_id]


def cards() -> list[dict[str, Any]]:
    return list(_rows("cards").values())


def models() -> list[dict[str, Any]]:
    return list(_rows("models").values())

"""Which number of the policy may be set at which layer, and whether a value is one that may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from scheduler.layers import Layer
from scheduler.policy import Policy

#: Fields of one service's rules, and those of one pool's cards; what is in neither is the group's alone.
OF_SERVICE = frozenset(
    {
        "idle_unload_s",
        "grace_s",
        "min_loaded_s",
        "grace_room_s",
        "no_sleep_idle_factor",
        "waterline_notice_s",
        "forecast_idle_pct",
        "forecast_room_pct",
        "preload_at_pct",
        "preload_lead_s",
        "preload_used_pct",
        "hit_wait_s",
        "drain_min_s",
        "drain_factor",
        "drain_max_s",
        "drain_overdue_s",
        "left_alone_s",
        "hold_small_s",
        "hold_large_s",
        "hold_stream_s",
        "p99_target_ms",
        "scale_queue_calls",
        "scale_load_pct",
        "scale_memory_s",
        "scale_memory_pct",
        "scale_in_s",
        "scale_in_waiting",
        "capacity_first_pct",
        "batch_day_calls",
    }
)
OF_POOL = OF_SERVICE | frozenset(
    {
        "buffer_pct",
        "half_empty_pct",
        "waterline_pct",
        "pressure_pct",
        "pressure_samples",
        "pressure_buffer_pct",
        "relief_pct",
        "pressure_drain_s",
        "repack_from_min",
        "repack_until_min",
        "repack_from_pct",
        "repack_max_moves",
        "repack_gain_mib",
        "batch_least_calls",
        "batch_keep_pct",
        "batch_step_calls",
        "batch_lower_s",
        "batch_raise_s",
        "neighbour_rise_day_pct",
        "neighbour_rise_night_pct",
    }
)


def numbers() -> dict[str, Mapping[str, Any]]:
    """Every field by name, in the order of the file, with its unit, range and why."""
    return {f.name: f.metadata for f in fields(Policy) if f.metadata}


def layer_of(name: str) -> Layer:
    """The narrowest layer at which a field may be set."""
    return "service" if name in OF_SERVICE else "pool" if name in OF_POOL else "group"


def may_set(name: str, layer: Layer) -> bool:
    """May the field be set at this layer?"""
    return layer == "group" or (layer == "pool" and name in OF_POOL) or (layer == "service" and name in OF_SERVICE)


def check(values: Mapping[str, float], layer: Layer = "group") -> dict[str, str]:
    """Field → what is wrong with its value (unknown name, wrong layer, out of range); empty when all is well."""
    known = numbers()
    wrong = {}
    for name, value in values.items():
        if name not in known:
            wrong[name] = "unknown"
        elif not may_set(name, layer):
            wrong[name] = f"may not be set for a {layer}"
        elif not known[name]["low"] <= value <= known[name]["high"]:
            wrong[name] = f"must be {known[name]['low']} to {known[name]['high']} {known[name]['unit']}".strip()
    return wrong

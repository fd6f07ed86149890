"""How fast a simulated engine is: seconds of one step from the bytes it must read and the tokens it must compute.

A decode step reads all weights and the KV of every running sequence once (decode is bound by memory bandwidth); it
gives each running sequence one token. Prefill is bound by arithmetic: 2 operations a parameter and token.
"""

from __future__ import annotations

from workers.simulator.cards import CardSpec
from workers.simulator.machine import MIB

EFFICIENCY = 0.6  # of the data sheet's bandwidth or arithmetic that engines reach in practice
STEP_FLOOR_S = 0.010  # scheduling and kernel launches of one step; also keeps forty simulated engines cheap
FLOP_PER_BYTE = 150.0  # an A100's ratio of fp16 arithmetic to bandwidth, for cards whose arithmetic is not known
BYTES_PER_PARAMETER = 2  # fp16


def decode_s(card: CardSpec, weights_mib_per_card: float, kv_bytes_in_use: float) -> float:
    """Seconds of one decode step on `card`, whatever the number of sequences."""
    return STEP_FLOOR_S + (weights_mib_per_card * MIB + kv_bytes_in_use) / (card.mem_bw_gbs * 1e9 * EFFICIENCY)


def prefill_s(card: CardSpec, weights_mib_per_card: float, tokens: int) -> float:
    """Seconds that `tokens` of prompts add to a step."""
    flops = card.fp16_tflops * 1e12 if card.fp16_tflops else card.mem_bw_gbs * 1e9 * FLOP_PER_BYTE
    parameters = weights_mib_per_card * MIB / BYTES_PER_PARAMETER
    return 2.0 * parameters * tokens / (flops * EFFICIENCY)


def load_s(weights_mib: int, bandwidth_mib_s: float, loaders: int) -> float:
    """Seconds to read weights while `loaders` engines (this one included) share the storage."""
    return weights_mib * max(1, loaders) / bandwidth_mib_s

"""What limits calls at the gateways: a service's longest call, tokens in flight, long lanes, batch calls on a card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.isolation import Cap, day_calls, governed
from scheduler.kv import admitted_tokens, outgrown
from scheduler.policy import Policy
from scheduler.world import Profile, Replica, World

MIB = 2**20


def of_replica(world: World, policy: Policy, replica: Replica, now: float) -> dict[str, Any]:
    """Cards where its calls count as batch calls: said also while none is limited, so that they are counted.

    Outside its service's hours, how many may be in flight on each.
    """
    service = world.services.get(replica.service)
    if service is None or service.profile is not Profile.BATCH:
        return {}
    cards = [world.cards[card] for card in replica.cards if card in world.cards]
    calls = day_calls(world, policy, service, now, cards[0].pool if cards else "")
    looked_on = not all(governed(world, card) for card in cards)
    found: dict[str, Any] = {"batch": list(replica.cards)}
    return found if calls is None or looked_on else found | {"batch_calls": calls}


def of_service(
    row: Any, replicas: list[dict[str, Any]], world: World, policy: Policy, *, tight: bool
) -> dict[str, Any]:
    """The service's limits, from a tuple of `routes.ROWS`.

    Writes into `replicas` (its routed ones as the blob has them) what each may take.
    """
    for entry in replicas:
        replica = world.replicas[entry["id"]]
        if (tokens := kv_tokens(row, replica)) is not None:
            entry["tokens"] = admitted_tokens(tokens, policy, tight=tight and outgrown(replica, policy))
    found = said_of(row)
    if "long_from" in found and "long_lane" not in found:
        for entry in replicas[: reserved(len(replicas), row.long_share_pct)]:
            entry["long"] = True
    return found


def said_of(row: Any) -> dict[str, Any]:
    """Those that somebody set."""
    found: dict[str, Any] = {}
    if row.max_prompt_tokens is not None:
        found["max_prompt_tokens"] = row.max_prompt_tokens
    if row.max_total_tokens is not None:
        found["max_total_tokens"] = row.max_total_tokens
    if row.long_from_tokens is not None:
        found["long_from"] = row.long_from_tokens
        if row.long_lane__name is not None and row.long_lane__tenant_id == row.tenant_id:  # others would pay for it
            found["long_lane"] = row.long_lane__name
    return found


def kv_tokens(row: Any, replica: Replica) -> int | None:
    """Tokens that its granted KV memory holds; None where it is not known."""
    per_token = row.model__kv_bytes_per_token
    if not per_token or not replica.kv_granted_mib or replica.external:
        return None
    tokens: int = replica.kv_granted_mib * MIB * row.cards_per_replica // per_token
    return tokens


def reserved(replicas: int, share_pct: int) -> int:
    """Of so many replicas, those for long calls: rounded up, and never all. The oldest: they change least."""
    return max(0, min(replicas - 1, -(-replicas * share_pct // 100)))


def batch(caps: Mapping[str, Cap]) -> dict[str, Any]:
    return {card: {"calls": cap.calls, "why": cap.why.value} for card, cap in sorted(caps.items())}

"""What a change of the policy would do at once: the same World planned twice, and the difference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from console.journal.words import REASONS, SAID, VERBS
from console.policies.change import Changes
from console.policies.models import Layer
from console.policy_pages.scope import Scope
from scheduler.decision import Decision
from scheduler.layers import Overrides
from scheduler.planner import plan
from scheduler.policy import DEFAULT, Policy
from scheduler.world import World


@dataclass(frozen=True, slots=True)
class Effect:
    """`more`: the new values do it and the old ones do not. `services`: whom it would be done to."""

    verb: Any
    reason: Any
    count: int
    services: list[str]
    more: bool


def changed(policy: Policy, scope: Scope, changes: Changes) -> Policy:
    """The policy as it would be. None takes a value back to the wider layer."""
    if scope.layer is Layer.GROUP:
        values = {n: getattr(DEFAULT, n) if v is None else type(getattr(DEFAULT, n))(v) for n, v in changes.items()}
        return replace(policy, **values)
    pools, services = dict(policy.overrides.pools), dict(policy.overrides.services)
    side = pools if scope.layer is Layer.POOL else services
    after = {**side.get(scope.subject, {}), **changes}
    side[scope.subject] = {name: value for name, value in after.items() if value is not None}
    return replace(policy, overrides=Overrides(pools, services))


def at_once(world: World, before: Policy, after: Policy, now: float) -> list[Effect]:
    """What the next plan would do otherwise. Empty: nothing right now; later is the replay's business."""
    old, new = (_done(plan(world, policy, now)) for policy in (before, after))
    found = [*_effects(new.keys() - old.keys(), more=True), *_effects(old.keys() - new.keys(), more=False)]
    return sorted(found, key=lambda effect: (not effect.more, -effect.count, str(effect.verb)))


def _done(decisions: list[Decision]) -> dict[tuple[str, str, str, int | None], Decision]:
    return {(d.verb.value, d.reason.value, d.service, d.replica): d for d in decisions if d.refusal is None}


def _effects(keys: set[tuple[str, str, str, int | None]], *, more: bool) -> list[Effect]:
    counted = Counter((verb, reason) for verb, reason, _, _ in keys)
    return [
        Effect(
            SAID.get((verb, reason), VERBS[verb]),
            REASONS[reason],
            count,
            sorted({service for v, r, service, _ in keys if (v, r) == (verb, reason)}),
            more,
        )
        for (verb, reason), count in counted.items()
    ]

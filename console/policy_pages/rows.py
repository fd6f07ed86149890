"""The numbers of one section as a page shows them: what holds, where it comes from, what may be typed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from console.policies.models import Layer, PolicyValue
from console.policy_pages import typed, words
from console.policy_pages.scope import Scope
from scheduler.policy import DEFAULT, Policy
from scheduler.settable import may_set, numbers


@dataclass(frozen=True, slots=True)
class Chip:
    """One layer's value; `effective`: it is the one that holds."""

    label: Any
    text: str
    effective: bool


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    label: str
    why: str
    unit: Any
    low: str
    high: str
    value: str
    chips: list[Chip]
    elsewhere: int  # pools and services below that set their own
    own: bool
    settable: bool
    typed: str
    inherited: str
    error: str = ""


def rows(
    scope: Scope, section: words.Section, policy: Policy, filled: Mapping[str, str], errors: Mapping[str, str]
) -> list[Row]:
    """`filled`: what somebody typed and has not saved."""
    below = _below(scope)
    return [_row(scope, name, policy, below[name], filled, errors.get(name, "")) for name in section.words]


def own_values(scope: Scope, policy: Policy) -> Mapping[str, float]:
    """What this layer sets itself; at the group's, whatever differs from the default."""
    if scope.layer is Layer.POOL:
        return policy.overrides.pools.get(scope.subject, {})
    if scope.layer is Layer.SERVICE:
        return policy.overrides.services.get(scope.subject, {})
    return {name: getattr(policy, name) for name in numbers() if getattr(policy, name) != getattr(DEFAULT, name)}


def counts(scope: Scope, policy: Policy) -> dict[str, tuple[int, int]]:
    """Section → (numbers that may be set here, those that are)."""
    own = own_values(scope, policy)
    return {
        one.key: (sum(may_set(n, scope.core) for n in one.words), sum(n in own for n in one.words))
        for one in words.SECTIONS
    }


def _below(scope: Scope) -> Counter[str]:
    """How many narrower layers set each number for themselves."""
    if scope.layer is not Layer.GROUP:
        return Counter()
    return Counter(PolicyValue.objects.exclude(layer=Layer.GROUP).values_list("name", flat=True))


def _row(scope: Scope, name: str, policy: Policy, elsewhere: int, filled: Mapping[str, str], error: str) -> Row:
    about, own = numbers()[name], own_values(scope, policy)
    held = getattr(policy.of_service(scope.service, scope.pool), name)
    here = typed.shown(name, own[name]) if name in own else ""
    wider = getattr(_wider(scope, policy), name)
    return Row(
        name=name,
        label=words.label(name),
        why=words.why(name),
        unit=words.UNITS[about["unit"]],
        low=typed.shown(name, about["low"]),
        high=typed.shown(name, about["high"]),
        value=typed.shown(name, held),
        chips=_chips(scope, name, policy),
        elsewhere=elsewhere,
        own=name in own,
        settable=may_set(name, scope.core),
        typed=filled.get(name, here),
        inherited=typed.shown(name, wider),
        error=error,
    )


def _wider(scope: Scope, policy: Policy) -> Policy:
    """What would hold if this layer set nothing."""
    if scope.layer is Layer.SERVICE:
        return policy.of_pool(scope.pool)
    return policy if scope.layer is Layer.POOL else DEFAULT


def _chips(scope: Scope, name: str, policy: Policy) -> list[Chip]:
    origin = policy.overrides.origin(name, scope.pool, scope.service)
    chips = [Chip(Layer.GROUP.label, typed.shown(name, getattr(policy, name)), origin is None)]
    sets = [(Layer.POOL, policy.overrides.pools.get(scope.pool, {}), scope.pool)]
    sets += [(Layer.SERVICE, policy.overrides.services.get(scope.service, {}), scope.service)]
    for layer, values, subject in sets:
        if subject:
            text = typed.shown(name, values[name]) if name in values else "—"
            chips.append(Chip(layer.label, text, origin == layer.value))
    return chips

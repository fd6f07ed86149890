"""Pressure on a card: who goes before the driver kills somebody, and what is said when nobody may.

Room by measurement, not by the ledger: claims that hold fit every card, so whoever grew beyond its claim goes first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from scheduler import two_hosts
from scheduler.decision import Code, Decision, Numbers, Reason, Refusal, Verb
from scheduler.draft import Draft
from scheduler.estimate import pressure_bound_s
from scheduler.hosts import silent
from scheduler.kept import whitelisted
from scheduler.memory import Seat, held_mib, ours_mib
from scheduler.notices import last_call_at
from scheduler.placement import Placement, place
from scheduler.policy import Policy
from scheduler.pressed import short_mib, under_pressure, used_at_least, used_pct
from scheduler.world import Card, Phase, Profile, Replica, Service, Want

#: What the numbers of a decision say is behind the pressure.
EXTERNAL, DRIFT, CLAIMS = "external", "drift", "claims"


@dataclass(frozen=True, slots=True)
class Victim:
    """`frees_mib` by measurement; `over_mib` above its claim; `kept`: moved only if another card admits it now."""

    replica: Replica
    service: Service
    frees_mib: int
    over_mib: int
    calls: int
    kept: bool


def pressure(draft: Draft, policy: Policy, now: float) -> None:
    """Stage: from each card under pressure as few go as bring it below the relief line."""
    for card in draft.cards():
        host = draft.world.hosts.get(card.host)
        if under_pressure(card, policy) and not silent(host, policy, now):
            _relieve(draft, card)


def _relieve(draft: Draft, card: Card) -> None:
    """Where nothing of ours runs nobody of ours can be killed: others may fill a card as they like."""
    short = short_mib(card, draft.policy, _settled_mib(draft, card))
    if short <= 0 or not any(r.phase is not Phase.FAILED for r in draft.on_card(card.id)):
        return
    numbers = _numbers(draft, card)
    chosen = _choose(draft, _victims(draft, card), short)
    for victim in chosen:
        _send(draft, victim, numbers)
    still_short = short - sum(v.frees_mib for v in chosen)
    if still_short > 0:
        numbers |= {"short_mib": still_short, "evicted": len(chosen)}
        refusal = Refusal(Code.NO_VICTIM, numbers)
        draft.decisions.append(Decision(Verb.DRAIN, "", Reason.PRESSURE, cards=(card.id,), refusal=refusal))


def _settled_mib(draft: Draft, card: Card) -> int:
    """What will be used once all who surely go are gone."""
    going = sum(_leaves_mib(draft, r) for r in draft.on_card(card.id) if _surely_goes(r))
    return (card.unavailable_mib or 0) - card.releasing_mib - going


def _surely_goes(replica: Replica) -> bool:
    """Told to stop or to sleep, or drained with nothing in flight or for pressure, which has a bound."""
    if replica.phase is Phase.ASLEEP:
        return replica.want is Want.STOPPED
    if replica.want is Want.DRAINED:
        return replica.quiet or replica.reason == Reason.PRESSURE
    return replica.want in (Want.ASLEEP, Want.STOPPED)


def _leaves_mib(draft: Draft, replica: Replica) -> int:
    """What comes back when it has stopped, or sleeps."""
    seat = Seat(replica, draft.services.get(replica.service))
    sleeper = replace(replica, phase=Phase.ASLEEP, measured_mib=None)
    rest = held_mib(sleeper, seat.service, draft.policy) if replica.want is Want.ASLEEP else 0
    return max(0, ours_mib([seat], draft.policy) - rest)


def _victims(draft: Draft, card: Card) -> list[Victim]:
    found = (_victim(draft, replica) for replica in draft.on_card(card.id))
    return [v for v in found if v is not None]


def _victim(draft: Draft, replica: Replica) -> Victim | None:
    """None for online services, for what nobody knows or somebody else started, and for who goes already."""
    service = draft.services.get(replica.service)
    if service is None or service.profile is Profile.ONLINE or replica.external or replica.id in draft.touched:
        return None
    if not draft.known(replica.id) or replica.phase is Phase.FAILED or _surely_goes(replica):
        return None
    frees = ours_mib([Seat(replica, service)], draft.policy)
    if frees <= 0:
        return None
    kept = whitelisted(draft, replica, service) or not two_hosts.may_go(draft, replica)
    return Victim(replica, service, frees, _over_mib(replica, service), recent_calls(draft, replica), kept)


def _over_mib(replica: Replica, service: Service) -> int:
    """Measured above its claim; 0 when unmeasured, or asleep, where the claim does not apply."""
    if replica.measured_mib is None or not replica.awake:
        return 0
    return max(0, replica.measured_mib - service.claim.fixed_mib - replica.kv_granted_mib)


def recent_calls(draft: Draft, replica: Replica) -> int:
    """At least so many calls of late: those in flight (unknown counts as one), else one if it was called at all."""
    in_flight = 1 if replica.in_flight is None and replica.phase is Phase.READY else replica.in_flight or 0
    called = last_call_at(draft, replica)
    lately = called is not None and draft.now - called < draft.policy.pressure_calls_s
    return max(in_flight, int(lately))


def _choose(draft: Draft, victims: list[Victim], short: int) -> list[Victim]:
    """In the order of the rule until it is enough; then without those that prove unnecessary, causes excepted."""
    chosen: list[Victim] = []
    left = sorted(victims, key=lambda v: v.replica.id)
    while left and (rest := short - sum(v.frees_mib for v in chosen)) > 0:
        victim = _next(left, rest)
        left.remove(victim)
        if not victim.kept or _admitted_elsewhere(draft, victim, chosen):
            chosen.append(victim)
    for victim in reversed(chosen[:-1]):
        others = [v for v in chosen if v is not victim]
        if not victim.over_mib and sum(v.frees_mib for v in others) >= short:
            chosen = others
    return chosen


def _next(left: list[Victim], rest: int) -> Victim:
    """Who is most above its claim; else by priority, calls, and the smallest that is enough."""
    over = [v for v in left if v.over_mib and not v.kept]
    return max(over, key=lambda v: v.over_mib) if over else min(left, key=lambda v: _order(v, rest))


def _order(victim: Victim, rest: int) -> tuple[bool, int, int, bool, int]:
    enough = victim.frees_mib >= rest
    size = victim.frees_mib if enough else -victim.frees_mib
    return victim.kept, victim.service.priority, victim.calls, not enough, size


def _admitted_elsewhere(draft: Draft, victim: Victim, chosen: list[Victim]) -> bool:
    """Could it start on another card right now, once all who must be rebuilt besides have their place?"""
    going = {victim.replica.id, *draft.evicted, *(v.replica.id for v in chosen)}
    names = [draft.replicas[i].service for i in sorted(going - {victim.replica.id})]
    names += [e.service for e in draft.world.evictions if e.open]
    others = {i: r for i, r in draft.replicas.items() if i not in going}
    trial = Draft(replace(draft.world, replicas=others), draft.policy, draft.now)
    for service in (draft.services[name] for name in names if name in draft.services):
        found = place(trial, draft.policy, service, draft.now)
        if isinstance(found, Placement):
            trial.promise([trial.phantom(service.name, found.cards, found.kv_granted_mib)])
    return isinstance(place(trial, draft.policy, victim.service, draft.now), Placement)


def _numbers(draft: Draft, card: Card) -> Numbers:
    """Figures of the pressure, with what is behind it: others' memory, one beyond its claim, or the claims' sum."""
    external = draft.book(card.id).external_mib or 0
    over = (_over_mib(r, s) for r in draft.on_card(card.id) if (s := draft.services.get(r.service)) is not None)
    alone = replace(card, unavailable_mib=(card.unavailable_mib or 0) - external)
    by_others = external > 0 and not used_at_least(alone, draft.policy.of_pool(card.pool).pressure_pct)
    cause = EXTERNAL if by_others else DRIFT if any(over) else CLAIMS
    numbers: Numbers = {"card": card.id, "used_pct": used_pct(card), "used_mib": card.unavailable_mib or 0}
    return numbers | {
        "external_mib": external,
        "relief_pct": draft.policy.of_pool(card.pool).relief_pct,
        "cause": cause,
    }


def _send(draft: Draft, victim: Victim, numbers: Numbers) -> None:
    """A ready one is drained, a load or a sleeper stopped; one that drains anyway is cut when its time is over."""
    replica = victim.replica
    more: Numbers = {"frees_mib": victim.frees_mib, "over_mib": victim.over_mib, "calls": victim.calls}
    decision = Decision(Verb.STOP, replica.service, Reason.PRESSURE, replica.id, numbers={**numbers, **more})
    if replica.phase is Phase.READY:
        draft.do(replace(decision, verb=Verb.DRAIN))
    elif replica.phase is not Phase.DRAINING:
        draft.do(decision)
    elif draft.now - replica.want_since >= pressure_bound_s(draft.rules_of(replica), victim.service):
        draft.do(replace(decision, force=True))
    draft.evicted.add(replica.id)

"""Buttons: what each would do, in numbers, then the order itself. The planner carries it out, never a page."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console import state
from console.accounts.models import User
from console.catalog.models import Order, Replica, Service
from console.filters import clock, gib
from console.services import tell
from console.services.fit import Foreseen, back_s, foresee
from console.services.tell import Names
from console.wire import hurry, read_gateways
from scheduler.draft import Draft
from scheduler.estimate import drain_bound_s
from scheduler.memory import held_mib
from scheduler.policy import Policy
from scheduler.sleep import may_sleep
from scheduler.world import Act, Phase, Tier, World
from scheduler.world import Order as CoreOrder
from scheduler.world import Replica as CoreReplica

OBSERVED = "observe"  # mode of a pool in which nothing acts


@dataclass(frozen=True, slots=True)
class Consequence:
    """`can`: the order would be obeyed. `force_lines`: what insisting would add; empty: it can add nothing."""

    title: str
    button: str
    can: bool
    lines: list[str] = field(default_factory=list)
    force_label: str = ""
    force_lines: list[str] = field(default_factory=list)
    force_needed: bool = False
    danger: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """One look at the farm, for as many questions as a page asks."""

    draft: Draft
    names: Names

    @property
    def world(self) -> World:
        return self.draft.world

    @property
    def rules(self) -> Policy:
        return self.draft.policy

    @property
    def now(self) -> float:
        return self.draft.now


def look(names: Names, service: str) -> Look:
    """For questions about this service: the calls of the week are read of it alone."""
    now, rules = time.time(), state.policy()
    return Look(Draft(state.world(now, read_gateways(), rules=rules, week_of=[service]), rules, now), names)


def order_of(seen: Look, service: Service, act: Act, replica: int | None, force: bool = False) -> CoreOrder:
    count = 1
    if act is Act.PRELOAD:
        count = len(seen.draft.in_hand(service.name)) + 1
    until = seen.now + seen.rules.order_lapses_s
    return CoreOrder(0, act, service.name, until, replica, count, force)


def consequence(seen: Look, service: Service, act: Act, replica: int | None) -> Consequence:
    """What the button does now, by the planner's own dry run."""
    plain = foresee(seen.draft, order_of(seen, service, act, replica))
    if watched := _only_watched(seen, service, replica, plain):
        return Consequence(f"{service.label}", "", False, [watched])
    match act:
        case Act.PRELOAD:
            return _preload(seen, service, plain)
        case Act.WAKE:
            return _wake(seen, plain, replica)
        case Act.KEEP:
            return _keep(seen, plain, replica)
        case _:
            return _leave(seen, service, act, replica, plain)


def _only_watched(seen: Look, service: Service, replica: int | None, plain: Foreseen) -> str:
    """In a pool that is observed nothing is moved, by a button neither: empty where it may act."""
    copies = [r for r in seen.world.replicas.values() if r.service == service.name and replica in (None, r.id)]
    touched = {plain.fit.card} if plain.fit is not None else {card for r in copies for card in r.cards}
    pools = {seen.world.pools.get(seen.world.cards[card].pool) for card in touched if card in seen.world.cards}
    if any(pool is not None and pool.mode == OBSERVED for pool in pools):
        return _("卡所在的资源池只观察，不动手：命令会记成建议，什么也不会移动。")
    return ""


def _preload(seen: Look, service: Service, plain: Foreseen) -> Consequence:
    title = _("预热%(label)s") % {"label": service.label}
    if plain.fit is not None:
        return Consequence(title, _("预热"), True, [_("不用任何实例让位。"), tell.fits(plain.fit, seen.names)])
    if plain.wakes is not None:
        seconds, rough = back_s(seen.world, seen.rules, plain.wakes, asleep=True)
        where = seen.names.card(plain.wakes.cards[0])
        return Consequence(
            title, _("唤醒"), True, [_("它在%(card)s休眠，唤醒即可。") % {"card": where}, tell.ready_in(seconds, rough)]
        )
    if plain.refusal is None:
        return Consequence(title, _("预热"), False, [_("已经有实例就绪或在装载。")])
    lines = [tell.refused(plain.refusal, seen.names)]
    if plain.refusal.passing:
        return Consequence(title, _("排队预热"), True, [_("放得下，要等。"), *lines])
    forced = foresee(seen.draft, order_of(seen, service, Act.PRELOAD, None, True))
    goers = [tell.leaving(one, seen.world, seen.names) for one in forced.leaving]
    if not goers:
        return Consequence(title, _("预热"), False, [_("现在放不下。"), *lines])
    label = _("请空闲的让位：%(n)s 个实例先走，不切断任何调用") % {"n": len(goers)}
    return Consequence(title, _("预热"), True, [_("现在放不下。"), *lines], label, goers, force_needed=True)


def _wake(seen: Look, plain: Foreseen, replica: int | None) -> Consequence:
    one = seen.world.replicas.get(replica or 0)
    title, button = _("唤醒"), _("唤醒")
    if one is None or plain.refusal is not None:
        text = tell.refused(plain.refusal, seen.names) if plain.refusal is not None else _("它已经不在了。")
        return Consequence(title, button, False, [text])
    service = seen.world.services[one.service]
    seconds, rough = back_s(seen.world, seen.rules, one, asleep=True)
    more = service.claim.fixed_mib + one.kv_granted_mib - held_mib(one, service, seen.rules)
    lines = [
        _("在%(card)s醒来，显存多占 %(more)s GiB。") % {"card": seen.names.card(one.cards[0]), "more": gib(more)},
        tell.ready_in(seconds, rough),
    ]
    return Consequence(title, button, True, lines)


def _keep(seen: Look, plain: Foreseen, replica: int | None) -> Consequence:
    one = seen.world.replicas.get(replica or 0)
    title, button = pgettext("button", "撤回通知"), pgettext("button", "撤回通知")
    if one is None or one.drain_at is None or plain.refusal is not None:
        return Consequence(title, button, False, [_("现在没有通知，它不会被收回。")])
    held = held_mib(one, seen.world.services.get(one.service), seen.rules)
    lines = [
        _("原定 %(at)s 让位，还回 %(held)s GiB；撤回后它继续占着。") % {"at": clock(one.drain_at), "held": gib(held)},
        _("之后 %(n)s 分钟内不会因为空闲或让位再被收回。") % {"n": round(seen.rules.left_alone_s / 60)},
    ]
    return Consequence(title, button, True, lines)


def _leave(seen: Look, service: Service, act: Act, replica: int | None, plain: Foreseen) -> Consequence:
    """Drain or stop, one copy or all."""
    stops = act is Act.STOP
    copies = [r for r in seen.world.replicas.values() if r.service == service.name and replica in (None, r.id)]
    copies = [r for r in copies if r.phase is not Phase.STOPPED]
    what = _("停止") if stops else _("摘流")
    title = (_("%(what)s%(label)s的全部实例") if replica is None else _("%(what)s%(label)s的一个实例")) % {
        "what": what,
        "label": service.label,
    }
    if plain.refusal is not None or not copies:
        text = tell.refused(plain.refusal, seen.names) if plain.refusal is not None else _("没有可以停的实例。")
        return Consequence(title, what, False, [text], danger=True)
    lines = [_copy(seen, one, stops=stops) for one in copies]
    if plain.rebuilt is not None:
        lines.append(_("它应保持就绪，会马上在别处补一个：%(fit)s") % {"fit": tell.fits(plain.rebuilt, seen.names)})
    elif service.tier == Tier.HOT or service.min_replicas:
        lines.append(_("它应保持就绪：腾出地方、轮到它时，调度会再装载一个。"))
    lines.append(_("在途的调用都会做完；之后来的调用会等它重新就绪。"))
    busy = [one for one in copies if one.in_flight or (one.in_flight is None and one.phase is Phase.READY)]
    if not stops or not busy:
        return Consequence(title, what, True, lines, danger=True)
    bound = round(drain_bound_s(seen.rules, seen.world.services[service.name]))
    cut = [_("最多等 %(bound)s 秒；到时还没做完的会被切断，现在在途 %(n)s 个。") % {"bound": bound, "n": flying(busy)}]
    return Consequence(title, what, True, lines, _("强制：到时限就切断在途的调用"), cut, danger=True)


def flying(copies: list[CoreReplica]) -> str:
    """Calls in flight over these copies; a dash where any is unknown."""
    counts = [one.in_flight for one in copies]
    return "—" if any(count is None for count in counts) else str(sum(count or 0 for count in counts))


def _copy(seen: Look, one: CoreReplica, *, stops: bool) -> str:
    """What one copy has in hand, gives back and takes to return."""
    service = seen.world.services[one.service]
    sleeps = not stops and may_sleep(seen.draft, one)
    held = held_mib(one, service, seen.rules)
    residue = seen.rules.default_residue_mib if one.residue_mib is None else one.residue_mib
    back, rough = back_s(seen.world, seen.rules, one, asleep=sleeps)
    values = {
        "card": seen.names.card(one.cards[0]) if one.cards else "",
        "n": flying([one]),
        "mib": f"{max(0, held - residue) if sleeps else held:,}",
        "s": max(1, round(back)),
        "rough": _("（粗估）") if rough else "",
    }
    if sleeps:
        return _("%(card)s：在途 %(n)s 个，做完后休眠，还回 %(mib)s MiB，再用时唤醒约 %(s)s 秒%(rough)s。") % values
    return _("%(card)s：在途 %(n)s 个，做完后停止，还回 %(mib)s MiB，再用时装载约 %(s)s 秒%(rough)s。") % values


def give(seen: Look, service: Service, act: Act, replica: Replica | None, by: User, force: bool) -> Order:
    """Files the order and wakes the loop. Earlier open orders of the same thing are replaced: the last word counts."""
    wanted = order_of(seen, service, act, None if replica is None else replica.pk, force)
    at = state.moment(seen.now)
    _replace(service, replica, at)
    order = Order.objects.create(
        service=service,
        replica=replica,
        act=act,
        count=wanted.count,
        force=force,
        by=by,
        at=at,
        until=at + timedelta(seconds=seen.rules.order_lapses_s),
    )
    hurry(service.name)
    return order


def _replace(service: Service, replica: Replica | None, at: Any) -> None:
    rows = Order.objects.filter(service=service, done_at=None)
    if replica is not None:
        rows = rows.filter(replica=replica)
    rows.update(done_at=at, outcome="replaced")

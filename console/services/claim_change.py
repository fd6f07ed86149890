"""What a changed claim means for copies that are there, in numbers; where the next would go is the planner's answer."""

from __future__ import annotations

from dataclasses import replace

from django.utils.translation import gettext as _

from console.filters import gib
from console.services.tell import Names
from scheduler.memory import book_of, room_mib
from scheduler.policy import Policy
from scheduler.world import Phase, Replica, Service, World


def there_already(world: World, rules: Policy, after: Service, names: Names) -> list[str]:
    """A line for each card of each copy; nothing where no number of the claim differs."""
    before = world.services[after.name]
    if before.claim == after.claim:
        return []
    changed = replace(world, services={**world.services, after.name: after})
    copies = [r for r in world.replicas.values() if r.service == after.name and r.phase is not Phase.STOPPED]
    return [_line(changed, rules, copy, card, names) for copy in sorted(copies, key=_id) for card in copy.cards]


def _id(copy: Replica) -> int:
    return copy.id


def _line(world: World, rules: Policy, copy: Replica, card: str, names: Names) -> str:
    if card not in world.cards:
        return _("%(card)s：卡不在了。") % {"card": names.card(card)}
    beside = (r for r in world.replicas.values() if card in r.cards)
    room = room_mib(book_of(world.cards[card], beside, world.services, rules))
    granted = _("KV 仍是已授予的 %(kv)s MiB，新的上限下次装载时才生效") % {"kv": f"{copy.kv_granted_mib:,}"}
    values = {"card": names.card(card), "kv": granted}
    if room is None:
        return _("%(card)s：卡现在量不到，算不出还剩多少；%(kv)s。") % values
    if room < 0:
        values["over"] = gib(-room)
        return _("%(card)s：账面超出 %(over)s GiB，实例留着不动，卡上不再放新的；%(kv)s。") % values
    return _("%(card)s：卡上还剩 %(room)s GiB；%(kv)s。") % {**values, "room": gib(room)}

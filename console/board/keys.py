"""The strip of key figures above the board, in words. The same for page and socket."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _
from django.utils.translation import npgettext

from console.board.picture import CardNumbers, Group
from console.board.scopes import Held, Key
from scheduler.world import Phase


def keys(
    cards: Sequence[CardNumbers], held: Held | None, tenant: int | None, now: float, stranded_pct: float | None
) -> list[Key]:
    """Of cards already reduced to what the scope may see; `stranded_pct` is the farm's, for staff."""
    mine = [group for card in cards for group in card.groups if group.phase and tenant in (None, group.tenant)]
    memory = [] if tenant is not None else [_used(cards), _stranded(stranded_pct)]
    pressure = [] if tenant is not None else [_pressure(cards)]
    moving = [_held(held, now), _loading(mine), *pressure, _leaving(cards, mine)]
    return [*memory, _idle(mine, sum(card.total_mib for card in cards)), _replicas(mine), *moving, _stale(cards)]


def gib(mib: int) -> str:
    return f"{mib / 1024:,.0f}"


def _cards(n: int) -> str:
    return npgettext("count", "张卡", "张卡", n)


def _copies(n: int) -> str:
    return npgettext("count", "个", "个", n)


def _used(cards: Sequence[CardNumbers]) -> Key:
    measured = [card for card in cards if card.used_mib is not None and card.total_mib]
    used, total = sum(card.used_mib or 0 for card in measured), sum(card.total_mib for card in measured)
    if not total:
        return Key("used", "—", "", _("还没有主机报到"))
    return Key("used", f"{100 * used / total:.1f}", "%", f"{gib(used)} / {gib(total)} GiB")


def _stranded(pct: float | None) -> Key:
    """Of the free memory, the share that no service to be expected could use."""
    if pct is None:
        return Key("stranded", "—", "", _("还没有量过"))
    return Key("stranded", f"{pct:.0f}", "%", _("空闲里谁也放不进的"))


def _idle(groups: Sequence[Group], total_mib: int) -> Key:
    """Memory held by ready replicas that nobody called for as long as the policy lets them idle."""
    unused = [group for group in groups if group.idle]
    idle = sum(group.mib for group in unused)
    detail = _("%(gib)s GiB，%(n)d 个久未调用") % {"gib": gib(idle), "n": len(unused)}
    return Key("idle", f"{100 * idle / total_mib:.1f}" if total_mib else "—", "%", detail)


def _pressure(cards: Sequence[CardNumbers]) -> Key:
    pressed = sorted((card for card in cards if card.pressed), key=lambda card: -_share(card))
    detail = _("最高 %(pct).1f%%") % {"pct": 100 * _share(pressed[0])} if pressed else _("没有卡过压力线")
    return Key("pressure", str(len(pressed)), _cards(len(pressed)), detail, bad=bool(pressed))


def _share(card: CardNumbers) -> float:
    return (card.used_mib or 0) / card.total_mib if card.total_mib else 0.0


def _replicas(groups: Sequence[Group]) -> Key:
    awake = {group.replica for group in groups if group.phase in (Phase.READY, Phase.DRAINING)}
    asleep = {group.replica for group in groups if group.phase == Phase.ASLEEP}
    calls = {group.replica: group.in_flight or 0 for group in groups}
    detail = _("休眠 %(asleep)s，%(calls)s 个在途") % {
        "asleep": f"{len(asleep):,}",
        "calls": f"{sum(calls.values()):,}",
    }
    return Key("replicas", str(len(awake)), _("个就绪"), detail)


def _held(held: Held | None, now: float) -> Key:
    if held is None:
        return Key("held", "—", "", _("网关没有消息"))
    waited = max(0, round(now - held.since)) if held.since is not None else 0
    return Key("held", str(held.count), "", _("最久 %(s)d 秒") % {"s": waited} if held.count else _("没有人在等模型"))


def _loading(groups: Sequence[Group]) -> Key:
    loading = {group.replica: group.progress for group in groups if group.phase == Phase.STARTING}
    known = [progress for progress in loading.values() if progress is not None]
    least = f"{100 * min(known):.0f}%" if known else ""
    detail = _("最慢的到 %(pct)s") % {"pct": least} if least else (_("排队中") if loading else _("没有装载或唤醒"))
    return Key("loading", str(len(loading)), _copies(len(loading)), detail)


def _leaving(cards: Sequence[CardNumbers], groups: Sequence[Group]) -> Key:
    noticed = {group.replica for group in groups if group.until is not None}
    draining = {group.replica for group in groups if group.phase == Phase.DRAINING}
    back = sum(size for card in cards for kind, size in card.rest if kind == "rel")
    detail = _("宽限 %(noticed)d，摘流 %(draining)d，回收 %(gib).0f GiB") % {
        "noticed": len(noticed),
        "draining": len(draining),
        "gib": back / 1024,
    }
    return Key("leaving", str(len(noticed | draining)), _copies(len(noticed | draining)), detail)


def _stale(cards: Sequence[CardNumbers]) -> Key:
    stale = sum(card.stale for card in cards)
    detail = _("显示上次的，带时间") if stale else _("每张卡都在报数")
    return Key("stale", str(stale), _cards(stale), detail, bad=stale > 0)

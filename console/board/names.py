"""What the page prints beside the numbers: labels, marks, colours. Read once with the page, never sent again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from console.accounts.models import Tenant
from console.board.picture import CardNumbers, Group
from console.filters import PROFILES
from console.fleet.models import Card

HUES = 8


@dataclass(frozen=True, slots=True)
class Names:
    tenants: Mapping[int, Tenant]
    services: Mapping[int, str]  # labels, of what is on a card
    cards: Mapping[int, Card]  # with host and pool
    say: Mapping[str, str] = field(default_factory=lambda: words())
    language: str | None = field(default_factory=get_language)  # of `say`


def hue(tenant: Tenant | None) -> str:
    """CSS classes of a tenant: eight hues in order of creation, then the same with a texture, then grey."""
    if tenant is None or tenant.ordinal > 2 * HUES or tenant.ordinal < 1:
        return "t-0"
    ordinal = (tenant.ordinal - 1) % HUES + 1
    return f"t-{ordinal}" if tenant.ordinal <= HUES else f"t-{ordinal} t-x"


def number_of(card: Card) -> str:
    return f"{card.number:02d}" if card.number is not None else f"{card.index}"


@dataclass(frozen=True, slots=True)
class Line:
    """One replica on a card, in words. A foreign one is `anonymous`: size and profile, nothing else."""

    group: Group
    label: str
    tenant: str
    mark: str
    hue: str
    profile: str

    @property
    def anonymous(self) -> bool:
        return self.group.replica is None


def line(group: Group, names: Names) -> Line:
    say = names.say
    profile = say[f"profile-{group.profile}"] if group.profile else ""
    if group.replica is None or group.tenant is None or group.service is None:
        return Line(group, say["other"], "", "", "t-0", profile)
    tenant = names.tenants[group.tenant]
    return Line(group, names.services[group.service], tenant.name, tenant.mark, hue(tenant), profile)


REST = {
    "rel": gettext_lazy("回收中"),
    "ext": gettext_lazy("外部与驱动"),
    "free": gettext_lazy("空闲"),
    "unk": gettext_lazy("未知"),
    "buf": gettext_lazy("缓冲池"),
}


@lru_cache(maxsize=8)
def _words(language: str | None) -> dict[str, str]:
    """Every text a tile may need, looked up once per language and not 300 times a page. None has a mark of HTML."""
    texts = {
        "unknown": _("尚未报到"), "stale": _("陈旧"), "sick": _("不健康"), "cordoned": _("停用"),
        "draining": _("摘流中"), "loading": _("装载"), "notice": _("宽限"), "releasing": _("回收中"),
        "pressure": _("压力 %s"), "foreign": _("外用至 %s"), "load": _("算力"), "other": _("其他公司"), "he": _("他"),
        "asleep": _("休眠"), "queued": _("排队"), "idle": _("空闲"), "flying": _("%s 在途"),
        "residue": _("%(who)s 休眠残留 %(gib)s GiB"), "open": _("%(number)s 号卡，%(card)s，打开详情"),
        "used": _("已用，GiB，共 %s"), "comma": _("，"), "whole": _("%(card)s，共 %(gib).1f GiB：%(parts)s"),
    }  # fmt: skip
    texts |= {f"rest-{kind}": str(text) for kind, text in REST.items()}
    return texts | {f"profile-{name}": str(text) for name, text in PROFILES.items()}


def words() -> dict[str, str]:
    return _words(get_language())


def sentence(card: Card, numbers: CardNumbers, lines: Iterable[Line], say: Mapping[str, str]) -> str:
    """The bar for who cannot see it: one sentence."""
    held = [f"{one.tenant}{one.label} {one.group.mib / 1024:.1f}" for one in lines]
    free = [
        f"{say[f'rest-{kind}']} {size / 1024:.1f}"
        for kind, size in numbers.rest
        if kind in ("free", "buf", "unk") and size
    ]
    return say["whole"] % {
        "card": card,
        "gib": numbers.total_mib / 1024,
        "parts": "；".join([*held, *free]),
    }

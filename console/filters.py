"""Template filters: units and times as style demands (GiB with one decimal, unknown as a dash, relative days)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django import template
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

if TYPE_CHECKING:
    from console.accounts.models import User

register = template.Library()


@register.filter
def gib(mib: int | None) -> str:
    """MiB → GiB with one decimal; unknown is a dash, never zero."""
    return "—" if mib is None else f"{mib / 1024:,.1f}"


@register.filter
def name(person: User | None) -> str:
    """Of a person, as others call them; a dash for one who is no longer there."""
    return "—" if person is None else person.full_name or person.username


@register.filter
def yuan(fen: int | float | None) -> str:
    """Fen → yuan with two decimals."""
    return "—" if fen is None else f"{Decimal(str(fen)) / 100:,.2f}"


@register.filter
def dash(value: object) -> object:
    return "—" if value is None or value == "" else value


@register.filter
def thousands(number: int | None) -> str:
    return "—" if number is None else f"{number:,}"


@register.filter
def tenths(number: float | None) -> str:
    return "—" if number is None else f"{number:,.1f}"


@register.filter
def seconds(number: float | None) -> str:
    return "—" if number is None else _("%(n)s 秒") % {"n": f"{number:,.1f}"}


@register.filter
def ms(number: float | None) -> str:
    """Milliseconds; whole ones from 10 on."""
    return "—" if number is None else _("%(n)s 毫秒") % {"n": f"{number:,.1f}" if number < 10 else f"{number:,.0f}"}


@register.filter
def pct(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.0f}%"


@register.filter
def when(moment: datetime | None) -> str:
    """今天 14:02:09, 昨天 14:02, 11-26 14:32, and the year only when it is another."""
    return _moment(moment, "%H:%M:%S")


@register.filter
def minute(moment: datetime | None) -> str:
    """The same of what people set, which has no seconds: 今天 14:02."""
    return _moment(moment, "%H:%M")


def _moment(moment: datetime | None, of_today: str) -> str:
    if moment is None:
        return "—"
    local, today = timezone.localtime(moment), timezone.localdate()
    if local.date() == today:
        return _("今天 %(time)s") % {"time": local.strftime(of_today)}
    if local.date() == today - timedelta(days=1):
        return _("昨天 %(time)s") % {"time": f"{local:%H:%M}"}
    return f"{local:%m-%d %H:%M}" if local.year == today.year else f"{local:%Y-%m-%d %H:%M}"


TIERS = {"hot": gettext_lazy("高频"), "warm": gettext_lazy("中频"), "cold": gettext_lazy("低频")}
PROFILES = {
    "online": gettext_lazy("在线"),
    "batch": gettext_lazy("批处理"),
    "lowfreq": pgettext_lazy("profile", "低频"),
}


@register.filter
def tier(name: str) -> str:
    return str(TIERS.get(name, name))


@register.filter
def profile(name: str) -> str:
    return str(PROFILES.get(name, name))


@register.filter
def clock(at: float | None) -> str:
    """14:32 of a day, of seconds since the epoch; with the date where it is another day's."""
    if at is None:
        return "—"
    local = timezone.localtime(datetime.fromtimestamp(at, UTC))
    return f"{local:%H:%M}" if local.date() == timezone.localdate() else f"{local:%m-%d %H:%M}"


PHASES = {
    "starting": gettext_lazy("装载中"),
    "ready": gettext_lazy("就绪"),
    "draining": gettext_lazy("摘流中"),
    "asleep": gettext_lazy("休眠"),
    "stopped": gettext_lazy("已停止"),
    "failed": gettext_lazy("失败"),
}


@register.filter
def phase(name: str) -> str:
    return str(PHASES.get(name, name))


@register.filter
def ago(age_s: float | None) -> str:
    """12 秒, 5 分, 3 小时, 2 天."""
    if age_s is None:
        return "—"
    for size, word in ((86400, _("%d 天")), (3600, _("%d 小时")), (60, _("%d 分"))):
        if age_s >= 2 * size:
            return word % (age_s // size)
    return _("%d 秒") % age_s

"""What every page knows: where one may go, how bright it is, what time zone it speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from console.accounts.access import Act, may, stands_in
from console.accounts.models import User

THEMES = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Entry:
    """One word of the main menu: shown to who may do `act`."""

    label: Any
    url_name: str
    act: Act
    badge: str = ""  # name of the address that answers with the number beside the word
    also: str = ""  # pages elsewhere that belong to it


MENU = (
    Entry(_("总览"), "board", Act.SEE_BOARD),
    Entry(_("业务"), "services", Act.SEE_SERVICES, also="/models/"),
    Entry(_("时间线"), "timeline", Act.SEE_DECISIONS),
    Entry(pgettext_lazy("several", "建议"), "advice", Act.SEE_ADVICE, "advice-badge"),
    Entry(_("申请"), "requests", Act.SEE_REQUESTS, "requests-badge"),
    Entry(_("体检"), "check-up", Act.SEE_CHECK_UP),
    Entry(_("费用"), "costs", Act.SEE_COSTS),
    Entry(_("策略"), "policies", Act.SEE_POLICIES),
    Entry(_("主机"), "hosts", Act.SEE_HOSTS),
    Entry(_("碎片整理"), "repack", Act.SEE_REPACK),
    Entry(pgettext_lazy("several", "公司"), "tenants", Act.SEE_TENANTS),
    Entry(_("成员"), "members", Act.SEE_MEMBERS),
    Entry(_("密钥"), "keys", Act.SEE_KEYS),
    Entry(pgettext_lazy("page", "审计"), "audit", Act.SEE_AUDIT),
)


def menu(user: Any, path: str) -> list[dict[str, Any]]:
    """What the person may go to; the entry whose address the page lies under is the current one."""
    entries = [
        {
            "label": entry.label,
            "url": reverse(entry.url_name),
            "name": entry.url_name,
            "current": False,
            "badge": reverse(entry.badge) if entry.badge else "",
            "also": entry.also,
        }
        for entry in MENU
        if may(user, entry.act)
    ]
    for entry in entries:  # no entry's address but "/" begins another's
        under = tuple(one for one in (entry["url"], entry["also"]) if one)
        entry["current"] = path.startswith(under) if entry["url"] != "/" else path == "/"
    return entries


def home(user: Any) -> str:
    """The first page of the menu that the person may see; who is not signed in is led to sign in from there."""
    if not user.is_authenticated:
        return reverse("board")
    return next((entry["url"] for entry in menu(user, "")), reverse("password"))


def page(request: HttpRequest) -> dict[str, Any]:
    user = getattr(request, "user", None)
    entries = menu(user, request.path)
    theme = request.COOKIES.get("gongka_theme", "")
    return {
        "menu": entries,
        "stands_in": stands_in(user) if isinstance(user, User) and user.is_active else [],
        "may_search": may(user, Act.SEARCH),
        "languages": settings.LANGUAGES,
        "theme": theme if theme in THEMES else "",
        "time_zone": settings.TIME_ZONE,
    }

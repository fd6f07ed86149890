"""Pages that belong to no app: health, and what to say when something is not there."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.translation import get_language
from django.utils.translation import gettext as _

#: With {names} for `format_html`, not a template: what broke may be what templates ask for.
BROKEN = Path(__file__).resolve().parent.joinpath("broken.html").read_text(encoding="utf-8")


def healthz(request: HttpRequest) -> HttpResponse:
    """Does this process answer? Nothing else is asked: a probe that queries the database restarts healthy webs."""
    return HttpResponse("ok\n", content_type="text/plain")


def _plain(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    return render(request, "message.html", {"title": title, "text": text}, status=status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _plain(request, 404, _("没有这一页"), _("地址不对，或它不属于您的公司。"))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return _plain(request, 403, _("您的角色不能做这件事"), _("需要的话，请信息中心的账户管理员调整角色。"))


def stale_form(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _plain(request, 403, _("这一页开得太久了"), _("回到上一页刷新后再提交一次，填过的内容还在。"))


def broken(request: HttpRequest) -> HttpResponse:
    """Asks nothing of database, session or templates: what broke may be what the usual page is made from."""
    page = format_html(
        BROKEN,
        language="zh-Hans" if get_language() == "zh-hans" else get_language(),
        theme="dark" if request.COOKIES.get("gongka_theme") == "dark" else "light",
        style=static("gongka.css"),
        tabler=static("tabler/css/tabler.min.css"),
        title=_("出错了"),
        text=_("原因已记入日志。刚才提交的不一定已经生效，回去看一眼再试。"),
        home=settings.FORCE_SCRIPT_NAME or "/",
        back=_("回到首页"),
    )
    return HttpResponse(page, status=500)

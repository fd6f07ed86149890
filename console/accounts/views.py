"""Sign in and out, the person's own password, and the language the pages speak."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from console.accounts.access import Act, allowed
from console.accounts.models import User
from console.context import home
from console.forms import Styled


class LoginForm(AuthenticationForm):
    """Django's form with our words. One sentence for a wrong name and a wrong password: neither is confirmed."""

    error_messages = {
        "invalid_login": gettext_lazy("账户或密码不对。密码区分大小写。"),
        "inactive": gettext_lazy("账户或密码不对。密码区分大小写。"),
    }

    def __init__(self, request: HttpRequest | None = None, *args: object, **kwargs: object) -> None:
        super().__init__(request, *args, **kwargs)
        for name in self.fields:
            self.fields[name].widget.attrs["class"] = "form-control"
            if self.is_bound and name == "password" and not self.is_valid():
                self.fields[name].widget.attrs |= {"class": "form-control is-invalid", "aria-describedby": "pe"}


class Login(LoginView):
    template_name = "accounts/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_default_redirect_url(self) -> str:
        return home(self.request.user)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """The language chosen last, on whatever machine, is the language of this one too."""
        response = super().form_valid(form)
        user = form.get_user()
        if isinstance(user, User) and user.language:
            remember_language(response, user.language)
        return response


class Logout(LogoutView):
    """By POST only: a picture on another site must not sign anybody out."""

    http_method_names = ["post"]


def locked_out(request: HttpRequest, original: object, credentials: object) -> HttpResponse:
    """Too many failures from one address for one name. Says the same for a name that does not exist."""
    minutes = int(settings.AXES_COOLOFF_TIME.total_seconds() // 60)
    text = _("为防止猜密码，这个账户在这里暂停登录 %(minutes)d 分钟。急用请信息中心的账户管理员重置密码。")
    context = {"title": _("失败次数太多"), "text": text % {"minutes": minutes}}
    return render(request, "accounts/locked.html", context, status=429)


class PasswordForm(Styled, PasswordChangeForm):
    """Old, new, new again; the rules stand beside the field before anything is typed."""

    error_messages = PasswordChangeForm.error_messages | {
        "password_incorrect": gettext_lazy("现在的密码不对。"),
        "password_mismatch": gettext_lazy("两次填的新密码不一样。"),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["old_password"].label = _("现在的密码")
        self.fields["new_password1"].label = _("新密码")
        self.fields["new_password2"].label = _("再填一次新密码")
        self.fields["new_password1"].help_text = _("至少 10 个字符，不要用常见密码，不要与姓名或账户相近。")
        self.fields["new_password2"].help_text = ""


class Password(PasswordChangeView):
    template_name = "accounts/password.html"
    form_class = PasswordForm

    def get_success_url(self) -> str:
        return home(self.request.user)

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        form.user.must_change_password = False
        response = super().form_valid(form)
        messages.success(self.request, _("密码已改。其他设备上的登录已全部退出。"))
        return response


password = allowed(Act.OWN_ACCOUNT)(Password.as_view())


@require_POST
def language(request: HttpRequest) -> HttpResponse:
    """Change the language, before or after signing in, and come back to the page one was on."""
    code = request.POST.get("language", "")
    back = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = home(request.user)
    response = HttpResponseRedirect(back)
    if code in dict(settings.LANGUAGES):
        remember_language(response, code)
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=code)
    return response


def remember_language(response: HttpResponse, code: str) -> None:
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        code,
        max_age=settings.LANGUAGE_COOKIE_AGE,
        samesite="Lax",
        secure=settings.LANGUAGE_COOKIE_SECURE,
    )

"""The page on which a granted key is shown, once."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from console.accounts.access import Act, allowed
from console.people.members import once
from console.requests.kinds.key import collect
from console.requests.lists import person
from console.requests.page import find
from console.requests.steps import No
from console.requests.words import no


@allowed(Act.FILE_REQUESTS)
def key(request: HttpRequest, pk: int) -> HttpResponse:
    row = find(request, pk)
    if request.method != "POST":
        return redirect("request", row.pk)
    try:
        made = collect(row, person(request), timezone.now())
    except No as refused:
        messages.error(request, no(refused.code))
        return redirect("request", row.pk)
    text = _("这是唯一一次显示，我们只存它的指纹。现在复制到应用的配置里；2 秒内即可使用。")
    return once(request, _("密钥已建好"), text, made, reverse("request", args=[row.pk]))

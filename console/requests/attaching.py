"""The addresses of a request's files: add some, hand one out, take one away."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _

from console.accounts.access import Act, allowed
from console.requests import files
from console.requests.lists import person
from console.requests.models import Attachment
from console.requests.page import find
from console.requests.steps import No
from console.requests.words import no


@allowed(Act.SEE_REQUESTS)
def add(request: HttpRequest, pk: int) -> HttpResponse:
    row = find(request, pk)
    if request.method == "POST":
        try:
            known = files.checked(request.FILES.getlist("files"))
            with transaction.atomic():
                files.attach(row, known, person(request), timezone.now())
        except No as refused:
            messages.error(request, no(refused.code))
        else:
            messages.success(request, _("已附上。") if known else _("没有选文件。"))
    return redirect("request", row.pk)


def _attached(request: HttpRequest, pk: int, file: int) -> Attachment:
    """Of a request that the person may see. Raises Http404."""
    return get_object_or_404(Attachment.objects.select_related("request"), pk=file, request=find(request, pk))


@allowed(Act.SEE_REQUESTS)
def one(request: HttpRequest, pk: int, file: int) -> HttpResponse:
    try:
        return files.handed_out(_attached(request, pk, file))
    except FileNotFoundError:
        messages.error(request, no("file_gone"))
        return redirect("request", pk)


@allowed(Act.SEE_REQUESTS)
def remove(request: HttpRequest, pk: int, file: int) -> HttpResponse:
    found = _attached(request, pk, file)
    if request.method == "POST":
        try:
            files.detach(found, person(request), timezone.now())
        except No as refused:
            messages.error(request, no(refused.code))
        else:
            messages.success(request, _("已拿掉。"))
    return redirect("request", pk)

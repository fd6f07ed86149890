"""The pages of an import: the workbook to begin from, the preview, the confirmation. The same for every kind."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.exports import XLSX, book_of
from console.forms import Styled
from console.sheets import empty
from console.sheets.heads import Taken, take
from console.sheets.kind import Line, Moved, Sheet, State
from console.sheets.seal import moved, seal, unseal
from console.sheets.workbook import FILE_BYTES, Unreadable, rows

WORDS = {
    State.WRONG: gettext_lazy("要改"),
    State.CHANGED: gettext_lazy("改动"),
    State.NEW: gettext_lazy("新增"),
    State.SAME: gettext_lazy("不变"),
}
COLOURS = {State.WRONG: "bad", State.CHANGED: "warn", State.NEW: "ok", State.SAME: "line"}


class FileForm(Styled, forms.Form):
    file = forms.FileField(label=gettext_lazy("工作簿（.xlsx）"), widget=forms.FileInput(attrs={"accept": ".xlsx"}))

    def clean_file(self) -> bytes:
        sent = self.cleaned_data["file"]
        if sent.size > FILE_BYTES:
            said = _("文件超过 %(n)d MiB。去掉图片和多余的表，或分几次上传。")
            raise forms.ValidationError(said % {"n": FILE_BYTES >> 20})
        body: bytes = sent.read()
        return body


@dataclass(frozen=True)
class Shown:
    """A row as the page draws it."""

    number: int
    word: Any
    colour: str
    cells: list[tuple[str, str, list[str], str]]  # now, before (empty: as it was), what is wrong, what was tidied
    moved: bool


def template(request: HttpRequest, sheet: Sheet) -> HttpResponse:
    return empty.workbook(sheet, filled=request.GET.get("rows") == "1")


def page(request: HttpRequest, sheet: Sheet) -> HttpResponse:
    """The question for a file; with a file, the preview. Nothing is written here."""
    form = FileForm(request.POST or None, request.FILES or None) if request.method == "POST" else FileForm()
    if request.method == "POST" and form.is_valid():
        try:
            taken = take(rows(form.cleaned_data["file"], sheet.most), sheet.columns)
        except Unreadable as why:
            form.add_error("file", str(why))
        else:
            return preview(request, sheet, taken, sheet.lines(taken.rows))
    context = _about(sheet) | {"form": form, "columns": sheet.columns, "most": sheet.most}
    return render(request, "sheets/ask.html", context, status=422 if request.method == "POST" else 200)


def save(request: HttpRequest, sheet: Sheet) -> HttpResponse:
    """Writes what was shown, all of it, or shows what is different now."""
    found = unseal(sheet, request.POST.get("seal", ""))
    if found is None:
        form = FileForm()
        context = _about(sheet) | {"form": form, "columns": sheet.columns, "most": sheet.most, "stale": True}
        return render(request, "sheets/ask.html", context, status=409)
    given, seen = found
    lines = sheet.lines(given)
    changed = moved(lines, seen)
    if changed or any(line.wrong for line in lines):
        return preview(request, sheet, Taken(given, []), lines, changed, refused=True)
    try:
        with transaction.atomic():
            secrets = sheet.write(lines)
    except (Moved, IntegrityError) as why:
        lines = sheet.lines(given)
        changed = moved(lines, seen) or {*why.args[:1]} & {*seen}
        return preview(request, sheet, Taken(given, []), lines, changed, refused=True)
    return render(request, "sheets/done.html", _about(sheet) | _result(lines, secrets))


def preview(
    request: HttpRequest,
    sheet: Sheet,
    taken: Taken,
    lines: Sequence[Line],
    changed: Collection[int] = (),
    refused: bool = False,
) -> HttpResponse:
    counts = Counter(line.state for line in lines)
    order = list(State)
    context = _about(sheet) | {
        "columns": sheet.columns,
        "rows": [_shown(sheet, line, changed) for line in sorted(lines, key=lambda one: order.index(one.state))],
        "counts": [(WORDS[state], COLOURS[state], counts[state]) for state in order],
        "wrong": counts[State.WRONG],
        "writes": counts[State.NEW] + counts[State.CHANGED],
        "moved": sorted(changed),
        "refused": refused,
        "ignored": taken.ignored,
        "seal": seal(sheet, lines),
    }
    return render(request, "sheets/preview.html", context, status=409 if refused else 200)


def _shown(sheet: Sheet, line: Line, changed: Collection[int]) -> Shown:
    cells = []
    for column in sheet.columns:
        name, text = column.name, line.given.texts.get(column.name, "")
        was = sheet.said(name, line.before.get(name)) if name in line.changes and not line.wrong else ""
        now = text if line.wrong or name not in line.after else sheet.said(name, line.after[name])
        cells.append((now, was, line.wrong.get(name, []), line.given.notes.get(name, "")))
    return Shown(line.given.number, WORDS[line.state], COLOURS[line.state], cells, line.given.number in changed)


def _about(sheet: Sheet) -> dict[str, Any]:
    """`member` → the addresses of its import and the list that it goes into."""
    back = reverse(f"{sheet.name}s")
    return {
        "sheet": sheet,
        "title": sheet.title,
        "ask": reverse(f"{sheet.name}-import"),
        "save": reverse(f"{sheet.name}-import-save"),
        "template": reverse(f"{sheet.name}-import-template"),
        "back": back,
        "crumbs": [(sheet.of, back)],
    }


def _result(lines: Sequence[Line], secrets: Sequence[tuple[str, str, str]]) -> dict[str, Any]:
    """The file of first passwords lies in the answer itself, as they do: it is in no session, no log, no address."""
    heads = (_("姓名"), _("账户"), _("初始密码"))
    file = base64.b64encode(book_of([heads, *secrets])).decode() if secrets else ""
    counts = Counter(line.state for line in lines)
    return {
        "made": counts[State.NEW],
        "changed": counts[State.CHANGED],
        "secrets": secrets,
        "file": f"data:{XLSX};base64,{file}",
    }

"""Workbooks as people send them."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from openpyxl import Workbook

PEOPLE = ("姓名", "账户", "角色", "公司")
COMPANIES = ("名称", "标识", "简称")
SEAL = re.compile(r'name="seal" value="([^"]+)"')


def book(rows: Sequence[Sequence[Any]], change: Callable[[Any], None] = lambda sheet: None) -> bytes:
    made = Workbook()
    for row in rows:
        made.active.append(row)
    change(made.active)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def send(client: Client, body: bytes, what: str = "members", name: str = "list.xlsx"):
    return client.post(f"/{what}/import", {"file": SimpleUploadedFile(name, body)})


def upload(client: Client, *rows: Sequence[Any], what: str = "members"):
    heads = PEOPLE if what == "members" else COMPANIES
    return send(client, book([heads, *rows]), what)


def seal(answer: Any) -> str:
    return unescape(SEAL.search(answer.content.decode())[1])


def confirm(client: Client, answer: Any, what: str = "members"):
    return client.post(f"/{what}/import/save", {"seal": seal(answer)})


def states(answer: Any) -> dict[int, str]:
    """Row of the sheet → colour of what would become of it."""
    return {row.number: row.colour for row in answer.context["rows"]}


def with_part(body: bytes, name: str, data: bytes) -> bytes:
    """The same workbook with one part put in, or in another's place."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(body)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.infolist():
            if part.filename != name:
                new.writestr(part, old.read(part))
        new.writestr(name, data)
    return out.getvalue()

"""Files that are none, broken, too large or dangerous are answered with what to do, and nothing is written."""

from __future__ import annotations

import io
import random
import zipfile
from datetime import date

import pytest

from console.accounts.models import User
from console.sheets.workbook import FILE_BYTES, OLD, UNPACKED_BYTES
from tests.console.sheets import PEOPLE, book, send, states, with_part

pytestmark = pytest.mark.django_db
ROW = ("刘洋", "liuyang", "公司成员", "置业公司")
GOOD = book([PEOPLE, ROW])
BOMB = b"""<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData><row r="1">
<c r="A1" t="inlineStr"><is><t>&b;</t></is></c></row></sheetData></worksheet>"""


def noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


def zipped(**parts: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            made.writestr(name, data)
    return out.getvalue()


def merged(sheet) -> None:
    sheet.merge_cells("D2:D3")


FILES = {
    "text": (b"name,account\n", "这不是 XLSX 工作簿"),
    "another zip": (zipped(readme=b"x"), "这不是 XLSX 工作簿"),
    "old or with a password": (OLD + b"\0" * 600, "旧格式 .xls"),
    "cut off": (GOOD[: len(GOOD) // 2], "这不是 XLSX 工作簿"),
    "macros": (with_part(GOOD, "xl/vbaProject.bin", b"x"), "带宏"),
    "too large": (GOOD + noise(FILE_BYTES), "超过 2 MiB"),
    "a bomb of zeros": (with_part(GOOD, "xl/worksheets/sheet1.xml", b" " * (UNPACKED_BYTES + 1)), "解开后太大"),
    "a bomb of entities": (with_part(GOOD, "xl/worksheets/sheet1.xml", BOMB), "不该有的 XML 定义"),
    "a bomb in the texts": (with_part(GOOD, "xl/sharedStrings.xml", BOMB), "不该有的 XML 定义"),
    "a broken part": (with_part(GOOD, "xl/worksheets/sheet1.xml", b"<worksheet><oops>"), "文件损坏"),
    "no rows": (book([PEOPLE]), "没有内容"),
    "nothing at all": (book([]), "没有内容"),
    "merged cells": (book([PEOPLE, ROW, ROW], merged), "合并的单元格（D2:D3）"),
    "wrong heads": (book([("甲", "乙"), ROW]), "第一行缺列名：姓名、账户、角色"),
    "a head twice": (book([(*PEOPLE, "Name"), ROW]), "出现了两次"),
    "too many rows": (book([PEOPLE, *[("人", f"p{n}", "公司成员", "estate") for n in range(501)]]), "超过 500 行"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_answered_with_what_to_do(browse, name):
    body, said = FILES[name]
    answer = send(browse("account_officer"), body)
    assert answer.status_code == 422
    assert said in answer.content.decode()
    assert not User.objects.filter(username="liuyang").exists()


def test_no_file_and_an_empty_one(browse):
    client = browse("account_officer")
    assert client.post("/members/import").status_code == 422
    assert send(client, b"").status_code == 422


def test_blank_rows_and_columns_between_are_passed_over(browse):
    body = book([("", *PEOPLE), (), ("", *ROW), (None, " ", None), ("备注", "王工", "wang", "公司成员", "estate")])
    assert states(send(browse("account_officer"), body)) == {3: "ok", 5: "ok"}


def test_what_a_file_says_of_its_size_is_not_believed(browse):
    """A row a million rows below costs no million rows of ours."""

    def far(sheet) -> None:
        sheet["A900000"] = "刘二"

    answer = send(browse("account_officer"), book([PEOPLE, ROW], far))
    assert states(answer) == {2: "ok", 900000: "bad"}


def test_dates_and_errors_are_no_texts(browse):
    body = book([PEOPLE, (date(2026, 3, 1), "liuyang", "公司成员", "estate"), ("#N/A", "wang", "公司成员", "estate")])
    assert states(send(browse("account_officer"), body)) == {2: "bad", 3: "bad"}

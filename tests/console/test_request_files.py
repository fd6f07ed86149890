"""Files that go with a request: what comes in, where it lies, who gets it, and how it is handed out."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from console.audit.models import Entry as Told
from console.requests import files
from console.requests.models import Attachment, Entry, Request
from console.requests.steps import No
from tests.console.asking import NAME, asked, decide, filed, local, text
from tests.console.rows import person
from workers.jobs import prune

PDF = b"%PDF-1.7\n%%EOF"


def office(ending: str, *more: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as book:
        for name in ("[Content_Types].xml", f"{files.FOLDERS[ending]}document.xml", *more):
            book.writestr(name, "<x/>")
    return out.getvalue()


def upload(data: bytes = PDF, name: str = "合同 1.pdf") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, data)


def stored(home: Path) -> list[Path]:
    folder = home / "attachments"
    return sorted(folder.iterdir()) if folder.exists() else []


def add(client, row: Request, *uploads: SimpleUploadedFile):
    return client.post(f"/requests/{row.pk}/files", {"files": list(uploads)}, follow=True)


GOOD = {
    "a.pdf": PDF,
    "a.PDF": PDF,
    "a.png": b"\x89PNG\r\n\x1a\n...",
    "a.jpg": b"\xff\xd8\xff\xe0...",
    "a.txt": "预算说明".encode(),
    "a.csv": "公司,元".encode("gb18030"),
    "a.docx": office("docx"),
    "a.xlsx": office("xlsx"),
    "a.pptx": office("pptx"),
}
BAD = {
    "a.pdf": b"MZ\x90\0",
    "a.png": PDF,
    "a.html": b"<script>alert(1)</script>",
    "a.svg": b"<svg/>",
    "a.exe": b"MZ",
    "a": PDF,
    "": PDF,
    "a.txt": b"text\0more",
    "a.csv": b"\xff\xff\xff",
    "a.docx": office("xlsx"),
    "b.docx": office("docx", "word/vbaProject.bin"),
    "c.docx": b"PK\x03\x04 not a zip",
    "a.pdf.exe": PDF,
}


@pytest.mark.parametrize("name", GOOD)
def test_what_its_bytes_and_its_name_agree_on_comes_in(name):
    (known,) = files.checked([upload(GOOD[name], name)])
    assert (known.data, known.name) == (GOOD[name], name)


@pytest.mark.parametrize("name", BAD)
def test_anything_else_is_refused(name):
    one = upload(BAD[name], "x")
    one._name = name
    with pytest.raises(No) as refused:
        files.checked([one])
    assert refused.value.code == "file_type"


def test_size_and_number_have_bounds(monkeypatch):
    for given_, code in (
        ([upload(b"")], "file_empty"),
        ([upload(PDF + b" " * files.MOST_BYTES)], "file_long"),
        ([upload()] * (files.MOST_FILES + 1), "file_many"),
    ):
        with pytest.raises(No) as refused:
            files.checked(given_)
        assert refused.value.code == code


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("../../etc/passwd.txt", "passwd.txt"),
        ("C:\\temp\\合同.pdf", "合同.pdf"),
        ('a"b\r\nSet-Cookie: x.pdf', "abSet-Cookie x.pdf"),
        ("x" * 300 + ".pdf", "x" * 116 + ".pdf"),
        ("a\u202efdp.exe.pdf", "afdp.exe.pdf"),
        ("..", ""),
    ],
)
def test_a_name_is_no_path_and_breaks_no_header(name, plain):
    assert files.plain(name) == plain
    assert len(files.plain(name)) <= files.NAME_LENGTH


@given(st.text(max_size=400))
def test_whatever_it_is_called_the_name_is_harmless(name):
    found = files.plain(name)
    assert len(found) <= files.NAME_LENGTH
    assert not set(found) & set('/\\"\r\n\0<>')
    assert found.isprintable()


@pytest.mark.django_db
class TestOnPages:
    def test_files_go_in_with_the_form_and_are_listed(self, browse, farm):
        client = browse("tenant_admin")
        sent = {"service": NAME, "until": local(1), "why": "结账", "files": [upload(), upload(GOOD["a.png"], "图.png")]}
        answer = client.post("/requests/new/whitelist", sent)
        assert answer.status_code == 302, text(answer)
        row = Request.objects.latest("pk")
        html = text(client.get(answer.url))
        for said in ("合同 1.pdf", "图.png", "附上"):
            assert said in html, said
        assert "合同 1.pdf" in text(client.get(f"/requests/{row.pk}/print"))
        assert [one.act for one in row.entries.all()] == ["asked", "attached", "attached"]
        assert len(stored(farm)) == 2
        assert {stat.S_IMODE(path.stat().st_mode) for path in stored(farm)} == {0o600}
        assert all("合同" not in path.name and len(path.name) == 32 for path in stored(farm))

    def test_a_bad_file_keeps_the_form_and_files_nothing(self, browse, farm):
        sent = {"service": NAME, "until": local(1), "why": "结账", "files": [upload(BAD["a.pdf"])]}
        answer = browse("tenant_admin").post("/requests/new/whitelist", sent)
        assert answer.status_code == 422
        html = text(answer)
        for said in ("内容要与扩展名相符", "附件要再选一次", "结账"):
            assert said in html, said
        assert not Request.objects.exists()
        assert stored(farm) == []

    def test_it_is_handed_out_as_a_download_only(self, browse, farm):
        row = filed()
        add(browse("tenant_admin"), row, upload(b"<script>alert(1)</script>", "说明.txt"))
        one = Attachment.objects.get()
        answer = browse("approver").get(f"/requests/{row.pk}/files/{one.pk}")
        assert answer.content == b"<script>alert(1)</script>"
        assert answer.headers["Content-Type"] == "text/plain"
        assert answer.headers["Content-Disposition"].startswith("attachment; filename*=utf-8''")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        assert "no-store" in answer.headers["Cache-Control"]

    def test_another_company_finds_neither_page_nor_file(self, browse, farm):
        row = filed()
        add(browse("tenant_admin"), row, upload())
        one = Attachment.objects.get()
        stranger = person("manager")
        stranger.tenant = person("tenant_admin").tenant.__class__.objects.get(slug="energy")
        stranger.save()
        client = browse("manager")
        assert client.get(f"/requests/{row.pk}/files/{one.pk}").status_code == 404
        assert client.post(f"/requests/{row.pk}/files", {"files": [upload()]}).status_code == 404
        assert client.post(f"/requests/{row.pk}/files/{one.pk}/remove").status_code == 404
        other = filed(**asked(why="另一个"))
        assert browse("operator").get(f"/requests/{other.pk}/files/{one.pk}").status_code == 404, "not of that request"

    def test_who_only_reads_attaches_nothing(self, browse, farm):
        row = filed()
        assert "您不是审批人" in text(add(browse("auditor"), row, upload()))
        assert 'name="files"' not in text(browse("auditor").get(f"/requests/{row.pk}"))
        assert stored(farm) == []

    def test_five_and_no_more(self, browse, farm):
        row, client = filed(), browse("tenant_admin")
        add(client, row, upload(), upload(), upload())
        assert "最多 5 个附件" in text(add(client, row, upload(), upload(), upload()))
        assert len(stored(farm)) == 3 == row.attachments.count()
        add(client, row, upload(), upload())
        assert 'id="r-files"' not in text(client.get(f"/requests/{row.pk}"))

    def test_it_is_taken_away_by_who_attached_it_until_somebody_decided(self, browse, farm):
        row = filed()
        add(browse("tenant_admin"), row, upload(), upload(PDF, "二.pdf"))
        first, second = row.attachments.all()
        page = f"/requests/{row.pk}/files/{first.pk}/remove"
        assert "附件留下" in text(browse("approver").post(page, follow=True))
        with transaction.atomic():
            browse("tenant_admin").post(page)
        assert [one.name for one in row.attachments.all()] == ["二.pdf"]
        assert Entry.objects.latest("pk").act == "detached"
        decide(row)
        after = browse("tenant_admin").post(f"/requests/{row.pk}/files/{second.pk}/remove", follow=True)
        assert "附件留下" in text(after)
        assert row.attachments.count() == 1

    def test_both_acts_stand_in_the_audit(self, browse, farm):
        row = filed()
        add(browse("tenant_admin"), row, upload())
        told = Told.objects.filter(act="request-attach").latest("pk")
        assert told.subject == str(row)
        browse("tenant_admin").post(f"/requests/{row.pk}/files/{Attachment.objects.get().pk}/remove")
        assert Told.objects.filter(act="request-detach").exists()

    def test_a_file_that_is_gone_is_said_to_be(self, browse, farm):
        row = filed()
        add(browse("tenant_admin"), row, upload())
        for path in stored(farm):
            path.unlink()
        answer = browse("tenant_admin").get(f"/requests/{row.pk}/files/{Attachment.objects.get().pk}", follow=True)
        assert "文件不在了" in text(answer)

    def test_what_is_not_written_leaves_no_file_and_old_orphans_go(self, farm, settings):
        row = filed()
        Attachment.objects.create(
            request=row, name="x", kind="x", nbytes=1, digest="", stored="0" * 32, at=timezone.now()
        )
        known = files.checked([upload()])
        with pytest.raises(RuntimeError), transaction.atomic(), files._Written(known):
            raise RuntimeError
        assert stored(farm) == []
        files.folder().mkdir(exist_ok=True)
        young, old, kept = (files.folder() / name for name in ("1" * 32, "2" * 32, "0" * 32))
        for path in (young, old, kept):
            path.write_bytes(PDF)
        past = (timezone.now() - 2 * timedelta(days=1)).timestamp()
        os.utime(old, (past, past))
        os.utime(kept, (past, past))
        list(prune.run({}))
        assert stored(farm) == [kept, young]

"""Files that go with a request: what may come in, where it lies, and how it is handed out again.

A type is what the bytes say, not what the name ends in; both must agree. Files lie under the home folder by random
names, so nothing that a person typed is ever a path. They are handed out as downloads only, never shown by the browser.
"""

from __future__ import annotations

import io
import os
import secrets
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpResponse
from django.utils.http import content_disposition_header

from console.accounts.access import Act, may
from console.accounts.models import User
from console.requests.models import Attachment, Entry, Request
from console.requests.steps import No, note

MIB = 2**20
MOST_BYTES = 10 * MIB  # of one: a contract scanned, not a film
MOST_FILES = 5  # of one request, and so at most 50 MiB of it
MOST_PARTS = 5000  # of an office file; a bomb has millions
NAME_LENGTH = 120
ORPHAN = timedelta(days=1)  # a file without a row: the row was never written
OFFICE = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}
FOLDERS = {"docx": "word/", "xlsx": "xl/", "pptx": "ppt/"}


@dataclass(frozen=True, slots=True)
class Known:
    """A checked file: its name without a path, its type, its bytes."""

    name: str
    kind: str
    data: bytes


def folder() -> Path:
    found: Path = settings.HOME / "attachments"
    return found


# What may come in


def checked(uploads: Iterable[UploadedFile[bytes]]) -> list[Known]:
    """Raises No: file_many, file_long, file_empty, file_type."""
    given = list(uploads)
    if len(given) > MOST_FILES:
        raise No("file_many")
    return [_checked(one) for one in given]


def _checked(upload: UploadedFile[bytes]) -> Known:
    if (upload.size or 0) > MOST_BYTES:
        raise No("file_long")
    data = upload.read()
    if not data:
        raise No("file_empty")
    name = plain(upload.name or "")
    ending = name.rpartition(".")[2].lower()
    kind = KINDS.get(ending)
    if kind is None or not kind[1](data):
        raise No("file_type")
    return Known(name, kind[0], data)


def plain(name: str) -> str:
    """A name for people, without a path and without what a page or a header could trip over."""
    last = name.replace("\\", "/").rpartition("/")[2]
    kept = "".join(one for one in last if one.isprintable() and one not in '"<>|?*:').strip(" .")
    stem, dot, ending = kept.rpartition(".")
    return f"{stem[: NAME_LENGTH - len(ending) - 1]}{dot}{ending}" if dot else kept[:NAME_LENGTH]


def _begins(*marks: bytes) -> Callable[[bytes], bool]:
    return lambda data: data.startswith(marks)


def _text(data: bytes) -> bool:
    """UTF-8, or the coding that spreadsheets of this country save CSV in; no zero bytes."""
    if b"\0" in data:
        return False
    for coding in ("utf-8-sig", "gb18030"):
        try:
            data.decode(coding)
        except UnicodeDecodeError:
            continue
        return True
    return False


def _office(ending: str) -> Callable[[bytes], bool]:
    """Of that program, and without macros. Only the list of its parts is read."""

    def looked(data: bytes) -> bool:
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as book:
                names = book.namelist()
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
            return False
        inside = "[Content_Types].xml" in names and any(name.startswith(FOLDERS[ending]) for name in names)
        return inside and len(names) <= MOST_PARTS and not any("vbaproject" in name.lower() for name in names)

    return looked


#: Ending → (type, is it one?).
KINDS: Mapping[str, tuple[str, Callable[[bytes], bool]]] = {
    "pdf": ("application/pdf", _begins(b"%PDF-")),
    "png": ("image/png", _begins(b"\x89PNG\r\n\x1a\n")),
    "jpg": ("image/jpeg", _begins(b"\xff\xd8\xff")),
    "jpeg": ("image/jpeg", _begins(b"\xff\xd8\xff")),
    "txt": ("text/plain", _text),
    "csv": ("text/csv", _text),
    **{ending: (kind, _office(ending)) for ending, kind in OFFICE.items()},
}
ACCEPT = ",".join(f".{ending}" for ending in KINDS)


# Attaching


def may_attach(row: Request, by: User) -> bool:
    """Whoever may say something about it, while it is not over."""
    return not row.over and (may(by, Act.FILE_REQUESTS) or may(by, Act.DECIDE_REQUESTS))


def may_detach(one: Attachment, by: User) -> bool:
    """Who attached it, until somebody decided: what a decision rested on stays."""
    return one.by_id == by.pk and not one.request.over and not one.request.deciders


def attach(row: Request, files: list[Known], by: User, now: datetime) -> None:
    """Run inside a transaction: what it wrote to the disk goes if that is rolled back. Raises No."""
    if not may_attach(row, by):
        raise No("not_yours")
    Request.objects.select_for_update().get(pk=row.pk)  # one at a time: their number is bounded
    if row.attachments.count() + len(files) > MOST_FILES:
        raise No("file_many")
    with _Written(files) as stored:
        for one, name in zip(files, stored, strict=True):
            digest = sha256(one.data).hexdigest()
            row.attachments.create(
                name=one.name, kind=one.kind, nbytes=len(one.data), digest=digest, stored=name, by=by, at=now
            )
            note(row, Entry.Act.ATTACHED, by, now, one.name, digest=digest)


class _Written:
    """The files on the disk, by random names; gone again if what is done with them fails."""

    def __init__(self, files: list[Known]) -> None:
        self.files, self.names = files, [secrets.token_hex(16) for _ in files]

    def __enter__(self) -> list[str]:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        for one, name in zip(self.files, self.names, strict=True):
            path = folder() / name
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(one.data)
        return self.names

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            for name in self.names:
                (folder() / name).unlink(missing_ok=True)


def detach(one: Attachment, by: User, now: datetime) -> None:
    """Raises No."""
    if not may_detach(one, by):
        raise No("file_kept")
    with transaction.atomic():
        note(one.request, Entry.Act.DETACHED, by, now, one.name, digest=one.digest)
        name = one.stored
        one.delete()
        transaction.on_commit(lambda: (folder() / name).unlink(missing_ok=True))


# Handing out


def handed_out(one: Attachment) -> HttpResponse:
    """As a download: the browser neither shows it nor guesses what it is. Raises FileNotFoundError."""
    response = HttpResponse((folder() / one.stored).read_bytes(), content_type=one.kind)
    response.headers["Content-Disposition"] = content_disposition_header(True, one.name) or "attachment"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def orphans(now: datetime) -> Iterator[Path]:
    """Files whose rows are not there, a day after they were written."""
    known = set(Attachment.objects.values_list("stored", flat=True))
    for path in folder().iterdir() if folder().is_dir() else ():
        if path.name not in known and path.stat().st_mtime < (now - ORPHAN).timestamp():
            yield path

"""A folder of weights below one of the site's roots: opened with care, read no further than headers.

Paths come from people. What they lead to, links followed, must lie below a root; only plain files are opened.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from console.catalog.weights import config, tensors
from console.catalog.weights.problem import Code, Unreadable

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Weights:
    """`weights_mib`: all tensors, rounded up. `shards`: files they lie in."""

    config: config.Config
    weights_mib: int
    tensors: int
    shards: int
    types: dict[str, int]


def read(roots: Sequence[Path], path: str) -> Weights:
    """Of `path` below the first root that has it. Raises Unreadable."""
    root, folder = find(roots, path)
    with _opened(root, folder, config.FILE, Code.NO_CONFIG) as (file, _):
        shape = config.read(_at_most(file, config.MOST_BYTES, config.FILE))
    names = _names(root, folder)
    headers = [_header(root, folder, name) for name in names]
    types: dict[str, int] = {}
    for one in headers:
        for kind, nbytes in one.types.items():
            types[kind] = types.get(kind, 0) + nbytes
    nbytes = sum(one.nbytes for one in headers)
    return Weights(shape, -(-nbytes // MIB), sum(one.tensors for one in headers), len(names), types)


def find(roots: Sequence[Path], path: str) -> tuple[Path, Path]:
    """(root, folder), both with links followed. Raises Unreadable."""
    if not roots:
        raise Unreadable(Code.NO_ROOTS)
    check(path)
    outside = False
    for root in roots:
        base, found = _real(root), _real(root / path)
        if base is None or found is None or not found.is_dir():
            continue
        if found.is_relative_to(base):
            return base, found
        outside = True
    raise Unreadable(Code.OUTSIDE if outside else Code.NOT_THERE)


def check(path: str) -> None:
    """A relative path that stays below where it begins, as it is written. Raises Unreadable."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path or "\\" in path:
        raise Unreadable(Code.BAD_PATH)


def _real(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None


def _names(root: Path, folder: Path) -> list[str]:
    """Files that hold the weights: as the index says, else the one file."""
    if (folder / tensors.INDEX).exists():
        with _opened(root, folder, tensors.INDEX, Code.SHARD_MISSING) as (file, _):
            return tensors.files(_at_most(file, tensors.MOST_INDEX, tensors.INDEX))
    if not (folder / tensors.ONE).exists():
        raise Unreadable(Code.NO_WEIGHTS, tensors.ONE)
    return [tensors.ONE]


def _header(root: Path, folder: Path, name: str) -> tensors.Header:
    with _opened(root, folder, name, Code.SHARD_MISSING) as (file, size):
        told = tensors.length(_read(file, tensors.PREFIX, name), size, name)
        data = _read(file, told, name)
        if len(data) != told:
            raise Unreadable(Code.NOT_SAFETENSORS, name)
        return tensors.header(data, size, name)


@contextmanager
def _opened(root: Path, folder: Path, name: str, missing: Code) -> Iterator[tuple[int, int]]:
    """(file descriptor, bytes) of a plain file whose real place is below the root. Raises Unreadable."""
    real = _real(folder / name)
    if real is None:
        raise Unreadable(missing, name)
    if not real.is_relative_to(root):
        raise Unreadable(Code.OUTSIDE, name)
    try:
        file = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise Unreadable(Code.FORBIDDEN, name) from None
    try:
        known = os.fstat(file)
        if not stat.S_ISREG(known.st_mode):
            raise Unreadable(missing, name)
        yield file, known.st_size
    finally:
        os.close(file)


def _at_most(file: int, most: int, name: str) -> bytes:
    """The whole file, which is no longer than this. Raises Unreadable."""
    data = _read(file, most + 1, name)
    if len(data) > most:
        raise Unreadable(Code.TOO_LONG, name)
    return data


def _read(file: int, count: int, name: str) -> bytes:
    """So many bytes, fewer at the file's end. Raises Unreadable where the storage fails."""
    parts, left = [], count
    try:
        while left > 0 and (part := os.read(file, left)):
            parts.append(part)
            left -= len(part)
    except OSError:
        raise Unreadable(Code.FORBIDDEN, name) from None
    return b"".join(parts)

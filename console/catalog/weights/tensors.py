"""The header of a safetensors file, and the index of several: how many bytes of weights there are. Pure.

A file begins with 8 bytes, the length of its header, little end first; the header is JSON: tensor → type, shape, and
from where to where its bytes lie after the header. The bytes themselves are never read.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import msgspec

from console.catalog.weights.problem import Code, Unreadable

PREFIX = 8
MOST_HEADER = 16 * 2**20  # the format allows 100 MB; the longest of a real file are a few MiB
MOST_INDEX = 32 * 2**20  # of a trillion parameters: about 14 MB
MOST_FILES = 2000
INDEX = "model.safetensors.index.json"
ONE = "model.safetensors"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}\.safetensors")
METADATA = "__metadata__"
#: Bits a value takes; of a type that is not here the place it takes is believed.
BITS = {
    "F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8, "F4": 4,
}  # fmt: skip


class Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Header:
    """`types`: bytes by type of value."""

    tensors: int
    nbytes: int
    types: dict[str, int]


class Index(msgspec.Struct):
    weight_map: dict[str, str]


TENSORS = msgspec.json.Decoder(dict[str, msgspec.Raw])
TENSOR = msgspec.json.Decoder(Tensor)
INDEXES = msgspec.json.Decoder(Index)


def length(prefix: bytes, file_bytes: int, file: str) -> int:
    """Bytes of the header, of a file's first eight and its size. Raises Unreadable."""
    if len(prefix) != PREFIX:
        raise Unreadable(Code.NOT_SAFETENSORS, file)
    told = int.from_bytes(prefix, "little")
    if told > MOST_HEADER:
        raise Unreadable(Code.TOO_LONG, file)
    if told < len(b"{}") or PREFIX + told > file_bytes:
        raise Unreadable(Code.NOT_SAFETENSORS, file)
    return told


def header(data: bytes, file_bytes: int, file: str) -> Header:
    """Of the header's bytes and the size of its whole file. Raises Unreadable."""
    try:
        entries = TENSORS.decode(data)
        found = [TENSOR.decode(raw) for name, raw in entries.items() if name != METADATA]
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Unreadable(Code.NOT_SAFETENSORS, file) from None
    types: dict[str, int] = {}
    for tensor in found:
        types[tensor.dtype] = types.get(tensor.dtype, 0) + _taken(tensor, file)
    nbytes = _side_by_side(found, file)
    if PREFIX + len(data) + nbytes > file_bytes:
        raise Unreadable(Code.CUT_OFF, file)
    return Header(len(found), nbytes, types)


def _taken(tensor: Tensor, file: str) -> int:
    """Its bytes, as its place says and its shape confirms."""
    begin, end = tensor.data_offsets
    if not 0 <= begin <= end or any(size < 0 for size in tensor.shape):
        raise Unreadable(Code.BAD_OFFSETS, file)
    bits = BITS.get(tensor.dtype)
    if bits is not None and math.prod(tensor.shape) * bits != (end - begin) * 8:
        raise Unreadable(Code.BAD_OFFSETS, file)
    return end - begin


def _side_by_side(tensors: list[Tensor], file: str) -> int:
    """Bytes of all: places neither overlap nor leave holes, as the format demands."""
    end = 0
    for begin, until in sorted(tensor.data_offsets for tensor in tensors):
        if begin != end:
            raise Unreadable(Code.BAD_OFFSETS, file)
        end = until
    return end


def files(data: bytes) -> list[str]:
    """Names of the files an index speaks of: plain names, of the same folder. Raises Unreadable."""
    if len(data) > MOST_INDEX:
        raise Unreadable(Code.TOO_LONG, INDEX)
    try:
        found = sorted(set(INDEXES.decode(data).weight_map.values()))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Unreadable(Code.NOT_JSON, INDEX) from None
    if not found or not all(NAME.fullmatch(name) for name in found):
        raise Unreadable(Code.BAD_INDEX, INDEX)
    if len(found) > MOST_FILES:
        raise Unreadable(Code.TOO_MANY_FILES, INDEX)
    return found

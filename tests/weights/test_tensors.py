"""Headers of safetensors files, whole, cut, lying, and at random: sizes come out right or the file is refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.catalog.weights import tensors
from console.catalog.weights.problem import Code, Unreadable
from tests.weights.made import header

NAME = "model.safetensors"
TWO = {"a": ("BF16", [2, 3], 12), "b": ("F32", [4], 16)}


def whole(text: bytes, nbytes: int) -> int:
    """Size of a file with this header."""
    return tensors.PREFIX + len(text) + nbytes


def refused(read, *given: object) -> Code:
    with pytest.raises(Unreadable) as why:
        read(*given)
    return why.value.code


def test_a_header_says_how_many_bytes_of_which_type():
    text = header(TWO)
    found = tensors.header(text, whole(text, 28), NAME)
    assert (found.tensors, found.nbytes, found.types) == (2, 28, {"BF16": 12, "F32": 16})
    assert tensors.header(b"{}", 10, NAME).nbytes == 0


def test_a_type_of_tomorrow_is_believed_and_one_we_know_is_checked():
    text = header({"a": ("F6_E3M2", [4, 4], 12)})
    assert tensors.header(text, whole(text, 12), NAME).types == {"F6_E3M2": 12}
    text = header({"a": ("F4", [4, 4], 8)})
    assert tensors.header(text, whole(text, 8), NAME).nbytes == 8
    text = header({"a": ("BF16", [4, 4], 31)})
    assert refused(tensors.header, text, whole(text, 31), NAME) is Code.BAD_OFFSETS


@pytest.mark.parametrize("offsets", [[1, 13], [4, 2], [-2, 10], [0, 11]])
def test_places_that_cannot_be_are_refused(offsets):
    text = json.dumps({"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": offsets}}).encode()
    assert refused(tensors.header, text, 10_000, NAME) is Code.BAD_OFFSETS


def test_overlaps_and_negative_shapes_are_refused():
    entry = {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}
    text = json.dumps({"a": entry, "b": entry}).encode()
    assert refused(tensors.header, text, 10_000, NAME) is Code.BAD_OFFSETS
    text = json.dumps({"a": entry | {"shape": [-2, -2]}}).encode()
    assert refused(tensors.header, text, 10_000, NAME) is Code.BAD_OFFSETS


def test_a_file_that_was_cut_off_is_said_to_be():
    text = header(TWO)
    assert refused(tensors.header, text, whole(text, 27), NAME) is Code.CUT_OFF


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"null", b'{"a": 1}', b'{"a": {}}', b'{"a": {"dtype": "F32", "shape": [1.5]}}', b"[" * 10**6]
)
def test_what_is_no_header_is_refused(text):
    assert refused(tensors.header, text, 10**7, NAME) is Code.NOT_SAFETENSORS


@pytest.mark.parametrize(
    ("prefix", "size", "code"),
    [
        (b"", 0, Code.NOT_SAFETENSORS),
        (b"\x02\0\0", 3, Code.NOT_SAFETENSORS),
        ((1).to_bytes(8, "little"), 100, Code.NOT_SAFETENSORS),
        ((200).to_bytes(8, "little"), 100, Code.NOT_SAFETENSORS),
        ((2**63).to_bytes(8, "little"), 2**63, Code.TOO_LONG),
        (b"\xff" * 8, 2**40, Code.TOO_LONG),
        (b"PK\x03\x04\x14\0\0\0", 10**6, Code.TOO_LONG),
    ],
)
def test_the_length_of_the_header_has_bounds(prefix, size, code):
    assert refused(tensors.length, prefix, size, NAME) is code


def test_an_index_names_plain_files_of_its_own_folder():
    def index(*names: str) -> bytes:
        return json.dumps({"metadata": {"total_size": 9}, "weight_map": dict(enumerate(names))}).encode()

    assert tensors.files(index("b.safetensors", "a.safetensors", "b.safetensors")) == ["a.safetensors", "b.safetensors"]
    for name in (
        "../a.safetensors",
        "/etc/passwd",
        "a/b.safetensors",
        ".safetensors",
        "model.bin",
        "",
        "a\0.safetensors",
    ):
        assert refused(tensors.files, index(name)) is Code.BAD_INDEX
    assert refused(tensors.files, index()) is Code.BAD_INDEX
    assert refused(tensors.files, b'{"weight_map": [1]}') is Code.NOT_JSON
    assert refused(tensors.files, b" " * (tensors.MOST_INDEX + 1)) is Code.TOO_LONG
    many = index(*(f"{n}.safetensors" for n in range(tensors.MOST_FILES + 1)))
    assert refused(tensors.files, many) is Code.TOO_MANY_FILES


SIZES = st.lists(
    st.tuples(st.sampled_from(["BF16", "F32", "U8"]), st.lists(st.integers(0, 50), max_size=3)), max_size=8
)


@given(SIZES)
def test_a_well_formed_header_adds_up(given):
    laid: dict[str, tuple[str, list[int], int]] = {}
    for n, (kind, shape) in enumerate(given):
        count = 1
        for size in shape:
            count *= size
        laid[f"t{n}"] = (kind, shape, count * tensors.BITS[kind] // 8)
    text, nbytes = header(laid), sum(one for _, _, one in laid.values())
    found = tensors.header(text, whole(text, nbytes), NAME)
    assert (found.nbytes, sum(found.types.values()), found.tensors) == (nbytes, nbytes, len(given))


@given(st.binary(max_size=300), st.integers(0, 2**41))
def test_any_bytes_are_read_or_refused(data, size):
    for read, args in ((tensors.header, (data, size, NAME)), (tensors.length, (data[:8], size, NAME)),
                       (tensors.files, (data,))):  # fmt: skip
        with contextlib.suppress(Unreadable):
            read(*args)


ENTRY = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.text(max_size=5) | st.sampled_from(sorted(tensors.BITS)) | st.integers(),
        "shape": st.lists(st.integers(-(2**70), 2**70), max_size=4) | st.none(),
        "data_offsets": st.lists(st.integers(-5, 2**70), max_size=3),
    },
)


@given(st.dictionaries(st.text(max_size=6), ENTRY, max_size=5), st.integers(0, 2**40))
def test_lying_headers_never_say_more_than_the_file_has(entries, size):
    try:
        found = tensors.header(json.dumps(entries).encode(), size, NAME)
    except Unreadable:
        return
    assert 0 <= found.nbytes <= size

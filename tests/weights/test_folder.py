"""Folders below the roots: what may be opened, what is read of it, and that nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.catalog.weights import folder
from console.catalog.weights.problem import Code, Unreadable
from tests.weights.made import safetensors, weights


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def refused(root: Path, path: str = "own/model") -> tuple[Code, str]:
    with pytest.raises(Unreadable) as why:
        folder.read([root], path)
    return why.value.code, why.value.file


def test_one_file_and_several_are_added_up_and_rounded_up(root):
    weights(root / "one", [7])
    found = folder.read([root], "one")
    assert (found.weights_mib, found.shards, found.tensors, found.types) == (7, 1, 1, {"BF16": 7 * 2**20})
    assert found.config.kv_bytes_per_token == 147456
    weights(root / "several", [3, 4, 5])
    safetensors(root / "several" / "left-over.safetensors", {"x": ("U8", [1], 1)})
    assert (folder.read([root], "several").weights_mib, folder.read([root], "several").shards) == (12, 3)
    safetensors(root / "one" / "model.safetensors", {"x": ("U8", [1], 1)})
    assert folder.read([root], "one").weights_mib == 1


def test_a_trillion_bytes_take_no_longer_than_their_headers(root):
    """A sparse file of 600 GiB: its bytes are never read."""
    weights(root / "large", [200 * 1024, 200 * 1024, 200 * 1024])
    assert folder.read([root], "large").weights_mib == 600 * 1024


def test_the_first_root_that_has_it_counts(root, tmp_path):
    other = tmp_path / "other"
    weights(other / "own", [2])
    assert folder.read([tmp_path / "none", root, other], "own").weights_mib == 2
    weights(root / "own", [3])
    assert folder.read([root, other], "own").weights_mib == 3


@pytest.mark.parametrize("path", ["", ".", "/etc", "../root/own", "own/../../x", "own\\x", "own\0x"])
def test_a_path_that_leaves_is_refused_as_it_is_written(root, path):
    weights(root / "own", [1])
    assert refused(root, path)[0] is Code.BAD_PATH


def test_links_within_the_root_are_followed_and_others_refused(root, tmp_path):
    """As caches of models are laid out: a folder of links to blobs."""
    weights(root / "blobs", [2])
    (root / "snapshot").mkdir()
    for name in ("config.json", "model.safetensors"):
        (root / "snapshot" / name).symlink_to(Path("../blobs") / name)
    assert folder.read([root], "snapshot").weights_mib == 2
    away = weights(tmp_path / "away", [2])
    (root / "door").symlink_to(away)
    assert refused(root, "door") == (Code.OUTSIDE, "")
    (root / "mixed").mkdir()
    (root / "mixed" / "config.json").symlink_to(away / "config.json")
    assert refused(root, "mixed") == (Code.OUTSIDE, "config.json")
    (root / "loop").symlink_to(root / "loop")
    assert refused(root, "loop") == (Code.NOT_THERE, "")


def test_a_root_that_is_a_link_itself_is_one(root, tmp_path):
    weights(root / "own", [2])
    (tmp_path / "link").symlink_to(root)
    assert folder.read([tmp_path / "link"], "own").weights_mib == 2


def test_a_pipe_is_no_file_and_nobody_waits_for_it(root):
    made = weights(root / "own", [2])
    (made / "model.safetensors").unlink()
    os.mkfifo(made / "model.safetensors")
    assert refused(root, "own") == (Code.SHARD_MISSING, "model.safetensors")
    (made / "config.json").unlink()
    (made / "config.json").mkdir()
    assert refused(root, "own") == (Code.NO_CONFIG, "config.json")


def test_what_is_missing_is_named(root):
    assert refused(root) == (Code.NOT_THERE, "")
    made = weights(root / "own" / "model", [2, 3])
    (made / "model-00002-of-00002.safetensors").unlink()
    assert refused(root) == (Code.SHARD_MISSING, "model-00002-of-00002.safetensors")
    (made / "model.safetensors.index.json").unlink()
    assert refused(root) == (Code.NO_WEIGHTS, "model.safetensors")
    (made / "config.json").unlink()
    assert refused(root) == (Code.NO_CONFIG, "config.json")
    with pytest.raises(Unreadable) as why:
        folder.read([], "own/model")
    assert why.value.code is Code.NO_ROOTS


def test_a_file_half_copied_or_too_long_is_refused(root):
    made = weights(root / "own" / "model", [2])
    os.truncate(made / "model.safetensors", 2**20)
    assert refused(root) == (Code.CUT_OFF, "model.safetensors")
    os.truncate(made / "model.safetensors", 5)
    assert refused(root) == (Code.NOT_SAFETENSORS, "model.safetensors")
    (made / "config.json").write_text(" " * 2_000_000)
    assert refused(root) == (Code.TOO_LONG, "config.json")
    (made / "config.json").write_text("{}")
    os.truncate(made / "model.safetensors", 0)
    with (made / "model.safetensors").open("wb") as file:
        file.write(b"\xff" * 16)
    assert refused(root) == (Code.TOO_LONG, "model.safetensors")

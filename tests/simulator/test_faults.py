"""Switching faults on and off, from Python and from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.simulator.faults import KINDS, Faults, clear_faults, list_faults, main, set_fault


def test_a_fault_has_all_values_of_its_kind(tmp_path: Path) -> None:
    fault = set_fault(tmp_path, "load_delay", "service:a", seconds=4)
    assert fault.values == {"seconds": 4, "factor": 1.0}
    assert list_faults(tmp_path) == [fault]


def test_setting_again_replaces(tmp_path: Path) -> None:
    set_fault(tmp_path, "slow", factor=2)
    set_fault(tmp_path, "slow", factor=3)
    assert [one.number("factor") for one in list_faults(tmp_path)] == [3]


@pytest.mark.parametrize(
    ("kind", "target", "values"),
    [("nonsense", "*", {}), ("hang", "host:a", {}), ("hang", "*", {"seconds": 1}), ("slow", "*", {"factr": 1})],
)
def test_what_does_not_exist_is_refused(tmp_path: Path, kind: str, target: str, values: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no |target"):
        set_fault(tmp_path, kind, target, **values)


def test_the_most_specific_target_counts(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    targets = ("replica:1", "service:a", "card:x")
    assert faults.find("slow", *targets) is None
    for number, target in enumerate(("*", "card:x", "service:a", "replica:1")):
        set_fault(tmp_path, "slow", target, factor=number)
        found = faults.find("slow", *targets)
        assert found
        assert found.target == target
    assert faults.find("slow", "replica:2", "service:b").target == "*"  # type: ignore[union-attr]


def test_a_view_sees_changes_and_the_end(tmp_path: Path) -> None:
    faults = Faults(tmp_path)
    set_fault(tmp_path, "hang")
    assert faults.find("hang")
    set_fault(tmp_path, "slow")
    assert faults.find("slow")
    clear_faults(tmp_path)
    assert faults.find("hang") is None
    (tmp_path / "faults.json").unlink()
    assert faults.find("hang") is None


def test_clearing_by_kind_and_target(tmp_path: Path) -> None:
    for kind, target in (("hang", "service:a"), ("hang", "service:b"), ("slow", "service:a")):
        set_fault(tmp_path, kind, target)
    assert clear_faults(tmp_path, "hang", "service:b") == 1
    assert clear_faults(tmp_path, target="service:a") == 2
    assert list_faults(tmp_path) == []


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path)
    assert main([folder, "set", "load_crash", "service:a", "at_pct=62", "text=kaputt", "once=true"]) == 0
    assert main([folder, "set", "hang"]) == 0
    assert main([folder, "list"]) == 0
    shown = capsys.readouterr().out
    assert 'load_crash service:a {"at_pct": 62, "text": "kaputt", "once": true}' in shown
    assert "hang * {}" in shown
    assert main([folder, "clear", "hang"]) == 0
    assert "cleared 1" in capsys.readouterr().out
    assert main([folder, "set", "nonsense"]) == 2
    assert main([folder, "dance"]) == 2
    assert "python -m workers.simulator.faults" in capsys.readouterr().err


def test_every_kind_can_be_set_with_its_defaults(tmp_path: Path) -> None:
    for kind in KINDS:
        set_fault(tmp_path, kind)
    assert {one.kind for one in list_faults(tmp_path)} == set(KINDS)

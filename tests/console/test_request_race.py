"""Fifty approvals at the same moment: one wins, on whatever database this runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from tests.console import race

ROOT = Path(__file__).resolve().parents[2]


def in_a_file(home: Path) -> dict[str, object]:
    env = {"DATABASE_URL": f"sqlite:///{home / 'race.sqlite3'}", "GONGKA_HOME": str(home)}
    env |= {"DJANGO_SETTINGS_MODULE": "console.settings", "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "tests.console.race", str(home)]
    done = subprocess.run(argv, env=os.environ | env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.django_db(transaction=True)
def test_fifty_at_once_and_one_wins(tmp_path):
    found = race.run(tmp_path) if connection.vendor == "postgresql" else in_a_file(tmp_path)
    told = found["told"]
    assert len(told) == race.AT_ONCE
    assert told.count("overtaken") == race.AT_ONCE - 1
    winner = next(one for one in told if one != "overtaken")
    assert (found["state"], found["by"]) == ("in_force", winner)
    assert (found["approvals"], found["changes"]) == (1, 1)

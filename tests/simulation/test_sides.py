"""Both sides beside each other say what they say one after the other, and leave no process behind."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest

from scheduler.simulation.compare import compare as one_after_the_other
from tests.simulation.test_compare import QUICK, a_call, a_scene, done
from workers.jobs.sides import Broken, compare

OTHER = replace(QUICK, idle_unload_s=300)
SCENE = a_scene(calls=[a_call(60 + 900 * n) for n in range(40)])


def beside() -> list[psutil.Process]:
    return [p for p in psutil.Process().children() if "workers.jobs.sides" in p.cmdline()]


def test_it_says_the_same():
    found, said = done(compare(SCENE, QUICK, OTHER))
    assert found == done(one_after_the_other(SCENE, QUICK, OTHER))[0]
    assert said == sorted(said)
    assert beside() == []


def test_ended_on_the_way_it_takes_the_other_with_it():
    going = compare(SCENE, QUICK, OTHER)
    next(going)
    (other,) = beside()
    going.close()
    assert not other.is_running()


def test_a_process_that_dies_is_told():
    going = compare(SCENE, QUICK, OTHER)
    next(going)
    (other,) = beside()
    other.kill()
    with pytest.raises(Broken, match="-9"):
        done(going)


def test_who_is_not_listened_to_ends():
    words = [sys.executable, "-m", "workers.jobs.sides"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    with process.stdin as there:
        pickle.dump((SCENE, QUICK), there)
    assert process.wait(60) == 1
    with process.stderr as said:
        assert said.read() == b""

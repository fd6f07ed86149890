"""The real binding on a fake driver library, compiled here: it proves nothing of a real card's timing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from workers.host.engines.base import ROOT

SOURCE = Path(__file__).parent / "fake_nvml.c"


def stubs() -> str:
    """Every other symbol that the binding knows: a consumer that asks for more is told so, as by an old board."""
    known = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', Path(pynvml.__file__).read_text()))
    ours = set(re.findall(r"\bnvml\w+", SOURCE.read_text()))
    return "".join(f"int {name}(void) {{ return 3; }}\n" for name in sorted(known - ours))


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with libnvidia-ml.so.1."""
    folder = tmp_path_factory.mktemp("nvml")
    rest = folder / "stubs.c"
    rest.write_text(stubs())
    name = "libnvidia-ml.so.1"
    command = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(folder / name), str(SOURCE), str(rest)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


class Driver:
    """The state file of the fake, changed as a test goes on."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.path, self.library = folder / "driver.txt", library
        self.values: dict[str, str] = {}

    def set(self, **values: object) -> None:
        """A key of card 0 is written `c0_uuid`; None takes a key away."""
        for name, value in values.items():
            key = re.sub(r"^c(\d)_", r"\1.", name)
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = str(value)
        self.write()

    def put(self, key: str, value: object) -> None:
        self.values[key] = str(value)
        self.write()

    def write(self) -> None:
        new = self.path.with_suffix(".new")
        new.write_text("".join(f"{key}={value}\n" for key, value in self.values.items()))
        new.replace(self.path)

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.library),
            "FAKE_NVML": str(self.path),
            "PYTHONPATH": str(ROOT),
        }

    def python(self, code: str) -> str:
        """What a fresh process prints: the library is loaded once a process, by the loader's rules."""
        done = subprocess.run([sys.executable, "-c", code], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


def a_card(driver: Driver, index: int, **more: object) -> None:
    given = {
        "uuid": f"GPU-{index}",
        "name": "NVIDIA A800-SXM4-80GB",
        "capability": "8,0",
        "total": 81920,
        "reserved": 600,
        "used": 1000,
        "util": "37,12",
        "mig_mode": "0,0",
        "uncorrected": 0,
        "remapped": "0,0,0,0",
        "events": 8,
        "processes": "4242:900",
    }
    for key, value in (given | more).items():
        driver.values[f"{index}.{key}"] = str(value)
    driver.write()


@pytest.fixture
def driver(tmp_path: Path, library: Path) -> Driver:
    """Three cards."""
    found = Driver(tmp_path, library)
    found.set(count=3, driver="550.163.01")
    for index in range(3):
        a_card(found, index)
    return found

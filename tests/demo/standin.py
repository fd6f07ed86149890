"""A supervisor of stand-in processes: `python -m tests.demo.standin HOME NAME=CODE ...`; ends as demo.run does."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from demo.home import Home
from demo.run import Stopped, on_signals
from demo.supervisor import TICK_S, Part, Supervisor


def main(path: str, *named: str) -> int:
    home = Home(Path(path))
    home.make()
    on_signals(_stop)
    with home.lock():
        supervisor = Supervisor(home, home.kept("farm.id", 8), lambda text: print(text, flush=True))
        parts = []
        for wave, text in enumerate(named):
            name, code = text.split("=", 1)
            parts.append(Part(name, (sys.executable, "-c", code), {"PATH": os.environ["PATH"]}, wave, stop_s=1.0))
        try:
            supervisor.start(parts)
            print("started", flush=True)
            while True:
                supervisor.tend()
                time.sleep(TICK_S)
        except Stopped:
            pass
        return supervisor.stop()


def _stop(number: int, frame: object) -> None:
    on_signals(signal.SIG_IGN)
    raise Stopped


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

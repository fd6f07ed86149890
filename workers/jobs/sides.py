"""Two policies on one past beside each other: what would be runs in a process of its own, what is in ours.

The two have nothing to tell each other, and who waits for them is a person. The process knows neither Django nor Redis:
it is given its past on its standard input, tells shares and at last its side, and ends when nobody listens any more.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from scheduler.policy import Policy
from scheduler.simulation.compare import Comparison, Scene, Side, side

ROOT = Path(__file__).resolve().parents[2]
#: Between two looks at the other process once our own side is done.
LOOK_S = 0.5


class Broken(Exception):
    """The other process ended without its side."""


class Other:
    """The side in the other process: `share` done, 0..1, and `found` at last."""

    def __init__(self, scene: Scene, policy: Policy) -> None:
        words = [sys.executable, "-m", "workers.jobs.sides"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.share = 0.0
        self.found: Side | None = None
        self.listener = threading.Thread(target=self._listen, args=((scene, policy),), daemon=True)
        self.listener.start()

    def _listen(self, given: tuple[Scene, Policy]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            with self.process.stdin as there:
                pickle.dump(given, there)
            while self.found is None:
                told = pickle.load(self.process.stdout)  # noqa: S301  (our own process on our own pipe)
                if isinstance(told, Side):
                    self.found = told
                else:
                    self.share = told
        except (EOFError, OSError, pickle.UnpicklingError):
            return  # it ended too early: `wait` says so

    def wait(self, for_s: float) -> Side | None:
        """Its side, or None when it takes longer. Raises Broken."""
        self.listener.join(for_s)
        if self.listener.is_alive():
            return None
        if self.found is None:
            raise Broken(f"the simulation beside ended with status {self.process.wait()}")
        return self.found

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.listener.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def compare(scene: Scene, before: Policy, after: Policy) -> Generator[float, None, Comparison]:
    """As `scheduler.simulation.compare.compare`: yields the share done, 0..1; returns both sides. Raises Broken."""
    with _beside(scene, after) as other:
        going, old = side(scene, before), None
        while old is None:
            try:
                share = next(going)
            except StopIteration as end:
                old, share = end.value, 1.0
            yield (share + other.share) / 2
        while (new := other.wait(LOOK_S)) is None:
            yield (1.0 + other.share) / 2
        return Comparison(old, new)


@contextmanager
def _beside(scene: Scene, policy: Policy) -> Iterator[Other]:
    other = Other(scene, policy)
    try:
        yield other
    finally:
        other.end()


def main() -> int:
    scene, policy = pickle.load(sys.stdin.buffer)  # noqa: S301
    going = side(scene, policy)
    try:
        while True:
            try:
                _tell(next(going))
            except StopIteration as end:
                _tell(end.value)
                return 0
    except BrokenPipeError:
        sys.stdout = None  # nobody listens: there is nothing to flush either
        return 1


def _tell(what: float | Side) -> None:
    pickle.dump(what, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    raise SystemExit(main())

"""What a person must put right before the demo can run, said in Chinese and English."""

from __future__ import annotations

import sys


class Problem(Exception):
    """Ends the command with exit status 2 and both texts; never a traceback."""

    def __init__(self, zh: str, en: str) -> None:
        super().__init__(f"{zh}\n{en}")
        self.zh, self.en = zh, en


def tell(problem: Problem) -> int:
    """Writes both texts to standard error; the exit status to use."""
    print(f"\n✗ {problem.zh}\n  {problem.en}\n", file=sys.stderr, flush=True)
    return 2

"""A Django process of one farm, kept open: starting one for each statement costs a second of processor.

What is sent is done whole or not at all, and nobody sees half of it: a service that is there without its pools may be
loaded anywhere.

`python -m tests.farm.shell` answers each line of standard input, a JSON text of statements, by one JSON line
`[what they printed, traceback or ""]`.
"""

from __future__ import annotations

import contextlib
import io
import json
import select
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


class Shell:
    """The process, seen from the test. It ends when `close` is called, or when the test's process does."""

    def __init__(self, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.farm.shell"],
            cwd=ROOT,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, code: str, limit_s: float = 120.0) -> str:
        """What the statements print; AssertionError with their traceback, or when no answer comes."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()
        answered, _, _ = select.select([self.process.stdout], [], [], limit_s)
        assert answered, f"no answer within {limit_s:.0f} s: {code}"
        said, error = json.loads(self.process.stdout.readline() or '["", "the shell has ended"]')
        assert not error, error
        return str(said)

    def close(self) -> None:
        self.process.communicate(timeout=20)


def main() -> None:
    import django
    from django.db import connection, transaction

    django.setup()
    for line in sys.stdin:
        said, error = io.StringIO(), ""
        try:
            with contextlib.redirect_stdout(said), transaction.atomic():
                exec(json.loads(line), {})
        except Exception:
            error = traceback.format_exc()
        connection.close()  # as a process that ends does: nothing read here outlasts its statement
        print(json.dumps([said.getvalue(), error]), flush=True)


if __name__ == "__main__":
    main()

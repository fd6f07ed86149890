"""Ends a farm whose supervisor is gone, even by `kill -9`: `python -m demo.watchdog FARM`, supervisor's pipe on stdin.

The supervisor never writes; when it ends, however it ends, the pipe closes and what carries the farm's mark is ended.
A process and session of its own, so that nothing aimed at the supervisor's group reaches it.
"""

from __future__ import annotations

import os
import signal
import sys

from demo import marks

GRACE_S = 3.0


def main(farm: str) -> int:
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    while os.read(sys.stdin.fileno(), 4096):
        pass
    return 1 if marks.end(farm, GRACE_S) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))

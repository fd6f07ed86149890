"""The few words of the core that a host speaks. A host imports no core: tests compare these with `scheduler.world`."""

from __future__ import annotations

READY, DRAINED, ASLEEP, STOPPED = WANTS = ("ready", "drained", "asleep", "stopped")
STARTING, DRAINING, FAILED = "starting", "draining", "failed"
PHASES = (STARTING, READY, DRAINING, ASLEEP, STOPPED, FAILED)

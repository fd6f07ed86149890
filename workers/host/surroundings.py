"""What all replicas of a host share."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from workers.host.doorkeeper import DoorKeeper
from workers.host.launchers import Launcher
from workers.host.limits import Limits
from workers.host.settings import Settings
from workers.host.telemetry import Telemetry
from workers.host.turns import Turns


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`changed`: something is worth a report at once."""

    settings: Settings
    limits: Limits
    launcher: Launcher
    keeper: DoorKeeper
    telemetry: Telemetry
    turns: Turns
    changed: threading.Event

"""The control worker: the loop, and short periodic tasks on the queue `control`."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from console import garbage  # noqa: E402
from workers.app import make  # noqa: E402  (models must be loaded first)
from workers.control import money  # noqa: E402
from workers.control.loop import Loop  # noqa: E402

app = make("control", "control", "control:")
app.steps["worker"].add(Loop)
app.conf.imports = ["workers.control.periodic", "workers.control.money"]
app.conf.beat_schedule = {
    "roll-up": {"task": "control.roll_up", "schedule": 5.0, "options": {"expires": 5, "queue": "control"}},
    "jobs": {"task": "control.look_after_jobs", "schedule": 5.0, "options": {"expires": 5, "queue": "control"}},
    "starts": {"task": "control.count_starts", "schedule": 600.0, "options": {"expires": 600, "queue": "control"}},
    "fragmentation": {
        "task": "control.measure_fragmentation",
        "schedule": 20.0,
        "options": {"expires": 20, "queue": "control"},
    },
    "policies": {"task": "control.apply_policies", "schedule": 2.0, "options": {"expires": 2, "queue": "control"}},
    "requests": {"task": "control.run_requests", "schedule": 2.0, "options": {"expires": 2, "queue": "control"}},
    "told": {"task": "control.tell_requests", "schedule": 30.0, "options": {"expires": 30, "queue": "control"}},
    "watch": {"task": "control.watch", "schedule": 30.0, "options": {"expires": 30, "queue": "control"}},
    "reclaims": {"task": "control.count_reclaims", "schedule": 300.0, "options": {"expires": 300, "queue": "control"}},
    "forecast": {"task": "control.forecast", "schedule": 5.0, "options": {"expires": 5, "queue": "control"}},
    "repack": {"task": "control.look_at_repack", "schedule": 60.0, "options": {"expires": 60, "queue": "control"}},
    "tiers": {"task": "control.recompute_tiers", "schedule": 60.0, "options": {"expires": 60, "queue": "control"}},
} | money.BEAT
garbage.settle()

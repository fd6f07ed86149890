"""The jobs worker: work that lasts, one row each."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
django.setup()

from workers.app import make  # noqa: E402  (models must be loaded first)

app = make("jobs", "jobs", "jobs:")
app.conf.imports = ["workers.jobs.run"]

from __future__ import annotations

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "console.audit"

    def ready(self) -> None:
        from console.audit import comings, seen  # their receivers need the models

        seen.listen()
        comings.listen()

"""`manage.py demo_farm`: rows of the demo farm. Run again, it changes nothing that is there."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Create the demo farm: tenants, people, keys, hosts, cards, services. Safe to run again."

    def handle(self, *args: Any, **options: Any) -> None:
        from demo.farm import make  # a production site does not ship it

        made = make(settings.HOME)
        self.stdout.write(", ".join(f"{name} {count}" for name, count in made.items()))

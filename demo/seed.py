"""Database and simulated hosts of the demo: `python -m demo.seed HOME [--no-past]`.

Run at each start; later ones change nothing. A farm that nobody will call has no past either: what it does is then what
somebody asks of it.

Prints one JSON line on standard output: `{"hosts": [name, ...], "hot": [service, ...], "services": {name: id},
"check": {"stream": service, "plain": service}}`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import django
from django.core.management import call_command

from demo import applications
from demo.home import Home


def main(path: Path, *, past: bool = True) -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
    django.setup()
    call_command("migrate", verbosity=1, interactive=False, stdout=sys.stderr)
    call_command("demo_farm", stdout=sys.stderr)
    applications.make(path)
    if past:
        make_past()
    home = Home(path)
    hosts = make_hosts(home)
    print(json.dumps({"hosts": hosts, **services()}), flush=True)
    return 0


def make_past() -> None:
    from django.db import transaction
    from django.utils import timezone

    from demo import history

    with transaction.atomic():
        history.make(timezone.localtime(timezone=timezone.get_default_timezone()))


def make_hosts(home: Home) -> list[str]:
    """Each simulated host's folder: its cards and its door's token, the two things an agent is given by hand."""
    from console.fleet.models import Host
    from demo import farm
    from workers.simulator.cards import CardSpec, make_cards

    cards = farm.host_cards()
    tokens = dict(Host.objects.filter(name__in=cards).values_list("name", "door_token"))
    for name in tokens:
        folder = home.host(name)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.write_private(folder / "door.token", tokens[name])
        loading = farm.LOADING | {"bandwidth_mib_s": farm.FAST_MIB_S.get(name, farm.LOADING["bandwidth_mib_s"])}
        make_cards(folder / "sim", (CardSpec(**card) for card in cards[name]), **loading)
    return sorted(tokens)


def services() -> dict[str, Any]:
    """What the supervisor waits for (services that keep a replica at all times) and what the check calls."""
    from console.catalog.models import Service
    from demo import farm

    return {
        "hot": sorted(Service.objects.filter(min_replicas__gt=0).values_list("name", flat=True)),
        "services": dict(Service.objects.values_list("name", "pk")),
        "check": {"stream": farm.CHECK_STREAM, "plain": farm.CHECK_PLAIN},
    }


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), past="--no-past" not in sys.argv))

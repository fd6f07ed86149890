"""Fifty approvals of one request at once: `python -m tests.console.race HOME` in a database file of its own.

The tests' SQLite lives in memory, where threads share one cache and nobody waits for a lock: a site's does not.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

AT_ONCE = 50


def run(home: Path) -> dict[str, object]:
    """What each of them was told, and what is in the database afterwards."""
    from django.db import connections
    from django.utils import timezone

    from console import state
    from console.accounts.models import User
    from console.journal.models import Change
    from console.requests import deciding
    from console.requests.models import Entry, Request
    from console.requests.steps import No
    from tests.console import rows
    from tests.console.asking import filed, given

    rows.populate(home)
    people = [User.objects.create(username=f"a{n}", role="approver") for n in range(AT_ONCE)]
    row, rules, start = filed(), state.policy(), Barrier(AT_ONCE)

    def approve(person: User) -> str:
        mine = Request.objects.get(pk=row.pk)
        start.wait(120)
        try:
            deciding.decide(mine, person, given(), rules, timezone.now())
        except No as refused:
            return refused.code
        finally:
            connections.close_all()
        return person.username

    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = list(pool.map(approve, people))
    row.refresh_from_db()
    return {
        "told": told,
        "state": row.state,
        "by": row.first_by.username,
        "approvals": Entry.objects.filter(act=Entry.Act.APPROVED).count(),
        "changes": Change.objects.count(),
    }


def main() -> None:
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    print(json.dumps(run(Path(sys.argv[1]))))


if __name__ == "__main__":
    main()

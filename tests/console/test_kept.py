"""The farm that a process makes once: what a later test gets is what making it gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from django.db import transaction

from console.accounts.models import ApiKey, User
from console.fleet.models import Card
from demo.farm import KEYS, LOGINS
from tests.console import kept, rows

DRAWN = ("accounts_user", "accounts_apikey", "fleet_host")  # have texts that are drawn by lot


def found(populate: Callable[[Path], None], home: Path) -> dict[str, list[kept.Row]]:
    """What it puts into an empty database, without times and what is drawn by lot."""
    home.mkdir()
    with transaction.atomic():
        populate(home)
        tables = kept._tables()
        transaction.set_rollback(True)
    return {
        name: [tuple(value for value in row if not timed(value)) for row in tables[name]]
        for name in tables.keys() - set(DRAWN)
    }


def timed(value: object) -> bool:
    return isinstance(value, datetime) or (isinstance(value, str) and '"since"' in value)


def test_a_copy_is_what_making_it_gives(db: None, tmp_path: Path) -> None:
    found(kept.populate, tmp_path / "first")
    assert found(kept.populate, tmp_path / "copied") == found(rows.populate, tmp_path / "made")


def test_a_copy_is_of_now_and_its_files_belong_to_it(farm: Path) -> None:
    assert Card.objects.get(number=1).sampled_at.timestamp() == pytest.approx(rows.moment().timestamp(), abs=60)
    logins, keys = json.loads((farm / LOGINS).read_text()), json.loads((farm / KEYS).read_text())
    assert all(user.check_password(logins[user.username]) for user in User.objects.all())
    assert all(any(key.startswith(row.prefix) for key in keys.values()) for row in ApiKey.objects.all())

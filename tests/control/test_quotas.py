"""Quotas on a farm of real ticks: refused with numbers, lent while idle, got back by a drain, and written one way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from console import state
from console.catalog.models import Service
from console.fleet.models import Quota as QuotaRow
from console.fleet.quotas import Overpromised, Overtaken, put, quota_of, quotas
from console.journal.models import Decision
from scheduler.allotment import Quota
from scheduler.decision import Code, Refusal
from scheduler.lending import plannable_mib, shares
from tests import factories
from tests.control import promising
from tests.control.conftest import PaperFarm
from tests.control.test_tick import policy
from workers.control import words

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
ROOM = 81920 - 600 - 6554  # of a card, without driver and buffer


def set_quota(slug: str, guaranteed_mib: int, borrowable_mib: int) -> None:
    values = {"guaranteed_mib": guaranteed_mib, "borrowable_mib": borrowable_mib}
    QuotaRow.objects.update_or_create(tenant=factories.tenant(slug), pool=factories.pool(), defaults=values)


@pytest.fixture
def full(farm: PaperFarm) -> PaperFarm:
    """One card: the lab's large model fills it with important work, the airline has as much promised as it needs."""
    policy(min_loaded_s=10)
    factories.host("h1", cards=1)
    factories.service("wild", tenant=factories.tenant("lab"), weights_mib=50000, priority=90, profile="batch")
    factories.service("hotline", tenant=factories.tenant("air"), weights_mib=30000, priority=10, profile="batch")
    set_quota("air", 40000, 0)
    set_quota("lab", 10000, 60000)
    return farm


def test_the_world_has_them(farm: PaperFarm) -> None:
    set_quota("lab", 5, 7)
    assert state.world(farm.now).quotas == quotas() == {("lab", "default"): Quota(5, 7)}


def test_what_is_idle_is_lent_and_comes_back_to_who_was_promised_it(full: PaperFarm) -> None:
    full.call("wild")
    full.until(lambda: full.ready("wild"))
    rules = state.policy()
    lent = {share.tenant: share.lent_mib for share in shares(state.world(full.now, rules=rules), rules)}
    assert lent["air"] > 0
    for _ in range(12):
        full.tick()
    full.call("hotline")
    full.until(lambda: full.ready("hotline"))
    drain = Decision.objects.filter(verb="drain", reason="room", service=Service.objects.get(name="wild")).first()
    assert drain is not None
    assert (drain.numbers["room_for"], drain.numbers["borrowed_mib"]) == ("hotline", 47768)


def test_without_a_promise_the_important_one_stays(full: PaperFarm) -> None:
    QuotaRow.objects.all().delete()
    full.call("wild")
    full.until(lambda: full.ready("wild"))
    for _ in range(12):
        full.tick()
    full.call("hotline")
    for _ in range(5):
        full.tick()
    assert not Decision.objects.filter(verb="drain", service__name="wild").exists()


def test_beyond_it_callers_are_told_what_would_be_needed(full: PaperFarm) -> None:
    set_quota("lab", 10000, 20000)
    full.call("wild")
    full.tick()
    refused = Decision.objects.get(refusal=Code.QUOTA_EXCEEDED)
    needed = 50000 + 6144 + 1024 + 600 - 30000
    assert refused.numbers["needed_mib"] == needed
    told = words.refusal(Refusal(Code.QUOTA_EXCEEDED, refused.numbers))
    assert told is not None
    assert told["code"] == "quota_exceeded"
    assert all(str(needed) in told[language] and "?" not in told[language] for language in ("zh", "en"))


def test_no_more_is_promised_than_there_is_and_only_what_was_seen_is_overwritten(farm: PaperFarm) -> None:
    factories.host("h1", cards=1)
    pool, lab, air = factories.pool(), factories.tenant("lab"), factories.tenant("air")
    rules = state.policy()
    room = plannable_mib(state.world(farm.now, rules=rules), rules, "default")
    assert room == ROOM
    put(lab, pool, None, Quota(room - 100, 0), room)
    with pytest.raises(Overpromised) as over:
        put(air, pool, None, Quota(101, 0), room)
    assert (over.value.short_mib, quota_of(air.pk, pool.pk)) == (1, None)
    put(air, pool, None, Quota(100, 9), room)
    for seen, new in [(None, Quota(1, 1)), (Quota(100, 8), Quota(1, 1)), (Quota(99, 9), None)]:
        with pytest.raises(Overtaken):
            put(air, pool, seen, new, room)
    put(air, pool, Quota(100, 9), Quota(90, 10), room - 50)  # over-promised since a card went: less is always allowed
    put(air, pool, Quota(90, 10), None, room)
    assert quotas() == {("lab", "default"): Quota(room - 100, 0)}


def in_a_file(home: Path) -> dict[str, object]:
    env = {"DATABASE_URL": f"sqlite:///{home / 'promises.sqlite3'}", "GONGKA_HOME": str(home)}
    env |= {"DJANGO_SETTINGS_MODULE": "console.settings", "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "tests.control.promising"]
    done = subprocess.run(argv, env=os.environ | env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.django_db(transaction=True)
def test_twenty_at_once_are_not_promised_more_than_there_is(tmp_path):
    found = promising.run() if connection.vendor == "postgresql" else in_a_file(tmp_path)
    promised = promising.PARTS
    assert found["told"] == {"promised": promised, "over": promising.AT_ONCE - promised}
    assert found["mib"] == promising.THERE_MIB

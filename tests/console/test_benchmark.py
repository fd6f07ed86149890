"""The console's benchmark: its rows are a site one can look at, its addresses are all of them, its form is the one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.urls import get_resolver

from benchmarks import console, frame
from benchmarks.console_farm import Size, make
from console import state
from console.accounts.models import User
from console.catalog.models import Replica
from console.fleet.models import Card, Host
from console.journal.models import Decision
from scheduler.decision import Verb
from scheduler.planner import plan

SMALL = Size(cards=16, services=30, replicas=40, tenants=3, decisions=60, usage_hours=24)


@pytest.fixture
def site(db) -> None:
    make(SMALL, seed=3)


def test_the_same_seed_makes_the_same_site(site):
    assert (Card.objects.count(), Replica.objects.count(), Decision.objects.count()) == (16, 40, 60)
    phases = list(Replica.objects.order_by("pk").values_list("phase", flat=True))
    Decision.objects.all().delete()
    Replica.objects.all().delete()
    assert {"ready", "asleep"} <= set(phases)


def test_no_card_holds_more_than_it_has(site):
    assert not Card.objects.filter(free_mib=0).exists()


def test_every_address_is_asked_and_none_breaks(site):
    urls = list(console.addresses())
    named = [one for one in get_resolver().url_patterns if one.name and one.name not in console.LEFT_OUT]
    assert len(urls) == len(named) + sum(map(len, console.ALSO.values()))
    by = console.asked_by(urls)
    assert {url for theirs in by.values() for url in theirs} == set(urls), "who may see it?"
    for who in ("operator", "auditor", "account_officer"):
        client = Client()
        client.force_login(User.objects.get(username=who))
        assert [url for url in by[who] if client.get(url).status_code >= 400] == []


def test_only_the_addresses_one_names(site):
    assert set(console.addresses("^/services/$|wall")) == {"/services/", "/?wall=1"}


def test_the_site_is_heard_and_has_nothing_left_to_grant(site):
    """A silent farm is frozen, and its pages have nothing to work out."""
    now = datetime.now(UTC)
    Host.objects.update(seen_at=now - timedelta(hours=1))
    assert state.world(now.timestamp()).frozen
    console.report(now)
    world = state.world(now.timestamp())
    assert not world.frozen
    assert [d for d in plan(world, state.policy(), now.timestamp()) if d.verb is Verb.START] == []


def test_a_row_says_whether_its_goal_is_met(tmp_path: Path, capsys):
    one = console.Measured("operator", "/", 200, 10, 2048, [90.0] * 19 + [120.0], [200.0] * 20)
    rows = console.rows([one])
    assert (rows[0].ours, rows[0].met, rows[0].goal) == (120.0, False, "<= 100")
    asked = frame.arguments("console", "", ["--strict", "--json", str(tmp_path / "out.json")])
    assert frame.finish("console", rows, ["a note"], asked) == 1
    written = json.loads((tmp_path / "out.json").read_text())
    assert set(written) == {"benchmark", "commit", "machine", "rows", "notes"}
    assert {"measure", "ours", "unit", "peers", "goal", "met", "stretch"} == set(written["rows"][0])
    assert "MISSED" in capsys.readouterr().out
    lenient = frame.arguments("console", "", [])
    assert frame.finish("console", rows, [], lenient) == 0

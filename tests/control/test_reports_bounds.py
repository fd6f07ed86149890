"""A host that reports nonsense harms nobody but itself: every field of a report, with values that no column holds."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace

import msgspec
import pytest

from console.fleet.models import Card, Host
from scheduler.policy import DEFAULT
from tests import factories
from tests.control.paper import PaperHost
from workers.control import ingest
from workers.messages import CardSample, HostReport, Process, ReplicaReport, encode

NOW = 1_795_949_446.0
NUMBERS = (-1, 2**31, 2**63, 2**70, 10**300, -1e300, 1e300)
TEXTS = ("\x00", "x" * 5000, "\ud83d\ude00" * 40)
NUMERIC = {"int", "float", "Whole", "Small", "Long", "Number", "Moment"}
TEXTUAL = {"str", "Word", "Boot"}
PLACES = {
    "report": HostReport,
    "card": CardSample,
    "process": Process,
    "replica": ReplicaReport,
}


def hostile() -> list[tuple[str, str, object]]:
    """(place, field, value) of every number and text of a report."""
    found: list[tuple[str, str, object]] = []
    for place, kind in PLACES.items():
        for one in fields(kind):
            if one.name == "host" or str(one.type).startswith("list"):
                continue
            words = set(re.findall(r"\w+", str(one.type)))
            values = NUMBERS if words & NUMERIC else TEXTS if words & TEXTUAL else ()
            found += [(place, one.name, value) for value in values]
    return found


@pytest.fixture
def bodies(db: None) -> tuple[bytes, dict[str, object]]:
    """What the good host says, and what the other says before it is spoilt, as JSON."""
    good, bad = factories.host("h1", cards=1), factories.host("h2", cards=1)
    row = factories.replica(factories.service(), Card.objects.get(uuid="h2-c0"))
    papers = [PaperHost(one.name, [f"{one.name}-c0"]) for one in (good, bad)]
    said, spoilt = (paper.report(NOW) for paper in papers)
    seen = ReplicaReport(id=row.pk, attempt=1, phase="ready", cards=row.cards, since=NOW, took_s=4.0, took="start")
    cards = [replace(spoilt.cards[0], processes=[Process(1, 100)])]
    return encode(said), json.loads(encode(replace(spoilt, cards=cards, replicas=[seen])))


def place_in(report: dict, place: str) -> dict:
    card = report["cards"][0]
    return {"report": report, "card": card, "process": card["processes"][0], "replica": report["replicas"][0]}[place]


def test_the_list_of_fields_is_long_enough() -> None:
    assert len({(place, name) for place, name, _ in hostile()}) >= 40


@pytest.mark.django_db
def test_nonsense_in_any_field_is_refused_or_kept_small_and_others_are_heard(bodies) -> None:
    good, spoilt = bodies
    before = json.dumps(spoilt)
    for i, (place, name, value) in enumerate(hostile()):
        report, mine = json.loads(before), json.loads(good)
        mine["seq"] = report["seq"] = i + 10
        place_in(report, place)[name] = value
        found = {"h2": (NOW + i, json.dumps(report).encode()), "h1": (NOW + i, json.dumps(mine).encode())}
        heard = ingest.ingest(found, NOW + i, DEFAULT).hosts
        assert "h1" in heard, (place, name, value)
        assert Host.objects.get(name="h1").report_seq == i + 10, (place, name, value)


@pytest.mark.django_db
def test_more_free_than_there_is_is_no_negative_baseline(bodies) -> None:
    _, report = bodies
    card = report["cards"][0]
    card["per_process"], card["free_mib"] = False, card["total_mib"] + 5
    report["replicas"] = []
    assert ingest.ingest({"h2": (NOW, msgspec.json.encode(report))}, NOW, DEFAULT).hosts == {"h2"}
    assert (Card.objects.get(uuid="h2-c0").baseline_mib or 0) >= 0

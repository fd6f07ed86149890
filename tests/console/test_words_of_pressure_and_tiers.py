"""Rows that are about a card alone, and changes of tier, in the journal's words."""

from __future__ import annotations

import pytest
from django.utils import timezone, translation

from console.fleet.models import Card
from console.journal import telling, words
from console.journal.models import Decision
from console.journal.stories import Kind, Story
from tests import factories

pytestmark = pytest.mark.django_db


def test_an_alert_names_the_card_and_the_figures():
    factories.host("h1", cards=1)
    card = Card.objects.get()
    Card.objects.update(number=7)
    card.refresh_from_db()
    numbers = {"used_pct": 96.4, "external_mib": 79000, "short_mib": 12000, "cause": "external"}
    row = Decision(verb="drain", reason="pressure", refusal="no_victim", card=card, numbers=numbers, at=timezone.now())
    said = words.said(row, {})
    assert (said.service, said.reason, said.tone) == ("07 号卡", "显存压力", "bad")
    assert said.numbers == "已用 96.4%，外部占用 79,000 MiB，差 12,000 MiB"
    assert "没有可以让出的实例" in said.verb


def test_a_service_that_is_gone_is_still_called_gone():
    row = Decision(verb="stop", reason="pressure", numbers={}, at=timezone.now())
    assert words.said(row, {}).service == "已删除的业务"


@pytest.mark.parametrize(
    ("language", "verb", "numbers"),
    [
        ("zh-hans", "换档", "改为高频，七日 6,300 次，最忙一日 1,000 次"),
        ("en", "tier changed", "now hot"),
    ],
)
def test_a_change_of_tier_says_from_what(language, verb, numbers):
    figures = {"from": "warm", "to": "hot", "calls_7d": 6300, "busiest_day": 1000}
    row = Decision(verb="tier", reason="calls", service=factories.service(), numbers=figures, at=timezone.now())
    with translation.override(language):
        said = words.said(row, {})
    assert said.verb == verb
    assert said.numbers.lower().startswith(numbers)


def test_the_timeline_tells_of_both():
    factories.host("h1", cards=1)
    Card.objects.update(number=7)
    now = timezone.now()
    alert = Decision.objects.create(
        verb="drain",
        reason="pressure",
        refusal="no_victim",
        card=Card.objects.get(),
        numbers={"used_pct": 96.4},
        at=now,
    )
    service = factories.service(label="热线问答")
    moved = Decision.objects.create(verb="tier", reason="calls", service=service, numbers={"to": "hot"}, at=now)
    told = [telling.tell(Story(Kind.MOVE, row.service_id, [row]), {}) for row in (alert, moved)]
    assert [one.service for one in told] == ["07 号卡", "热线问答"]
    assert told[0].sentence.startswith("显存压力")
    assert told[1].sentence.startswith("近七日调用，换档")

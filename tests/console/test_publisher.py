"""What is published: only what changed, in messages of bounded size, under versions that rise by one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from console.board import messages, publish, publisher
from console.board.picture import CardNumbers, Group
from console.board.rows import Now
from console.board.scopes import Held
from console.live import Board

TOTAL = 46068


def card(pk: int, used: int = 1000, replica: int | None = None) -> CardNumbers:
    groups = [] if replica is None else [Group([("w", 9000)], "online", "ready", 1, replica, 7, 2)]
    free = TOTAL - sum(group.mib for group in groups) - 4000
    return CardNumbers(pk, TOTAL, groups, [("rel", 0), ("ext", 500), ("free", free), ("buf", 3500)], used, 10, 1.0)


def deltas(one: publisher.Publisher, *cards: CardNumbers) -> list[messages.Delta]:
    return list(one.deltas(Now(100.0, list(cards), {1: Held(2, 95.0)})))


def test_only_changed_cards_are_sent_and_versions_rise_by_one():
    one = publisher.Publisher()
    first = deltas(one, card(1), card(2))[0]
    second = deltas(one, card(1), card(2, used=2000))[0]
    third = deltas(one, card(1), card(2, used=2000))[0]
    assert [c.id for c in first.cards] == [1, 2]
    assert [c.id for c in second.cards] == [2]
    assert third.cards == []  # still sent: silence would mean disconnected
    assert [second.version - first.version, third.version - second.version] == [1, 1]


def test_a_new_sample_alone_is_no_change_but_an_old_one_is():
    one = publisher.Publisher()
    deltas(one, card(1))
    assert deltas(one, replace(card(1), sampled_at=2.0))[0].cards == []
    assert deltas(one, replace(card(1), sampled_at=2.0, stale=True))[0].cards[0].sampled_at == 2.0


def test_300_cards_stay_below_32_kb_a_message_and_arrive_whole():
    one, board = publisher.Publisher(), Board()
    cards = [card(pk, replica=pk) for pk in range(1, 301)]
    sent = deltas(one, *cards)
    assert all(len(messages.pack(delta)) <= messages.MAX_BYTES for delta in sent)
    for delta in sent:
        board.merge(messages.unpack(messages.pack(delta)))
    assert set(board.cards) == set(range(1, 301))


def test_a_tenants_message_has_nothing_of_others():
    own, foreign = card(1, replica=11), card(2, replica=12)
    foreign = replace(foreign, groups=[replace(foreign.groups[0], tenant=2, service=99)])
    mixed = replace(own, id=3, groups=[own.groups[0], foreign.groups[0]])
    told = messages.numbers([own, foreign, mixed], {2: Held(5, 1.0)}, tenant=1, version=9, at=100.0)
    assert set(told["cards"]) == {"1", "3"}
    assert [seat[0] for seat in told["cards"]["3"]["r"]] == [11]
    assert "99" not in json.dumps(told["cards"])
    assert next(key for key in told["keys"] if key[0] == "held")[1] == "0"


def test_p99_and_fragmentation_go_with_the_numbers_and_not_to_companies():
    own = card(1, replica=11)
    both = replace(own, groups=[replace(own.groups[0], p99_ms=300), replace(own.groups[0], tenant=2, p99_ms=900)])
    board, one = Board(), publisher.Publisher()
    for delta in one.deltas(Now(100.0, [both], None, 12.4)):
        board.merge(messages.unpack(messages.pack(delta)))
    staff, company = (json.loads(board.text(tenant)) for tenant in (None, 1))
    assert (staff["cards"]["1"]["p"], company["cards"]["1"]["p"]) == (900, 300)
    assert ["stranded", "12", "%"] in [key[:3] for key in staff["keys"]]
    assert "stranded" not in [key[0] for key in company["keys"]]


def test_a_missing_message_is_noticed():
    one, board = publisher.Publisher(), Board()
    first, second, third = (deltas(one, card(1, used=n))[0] for n in (1, 2, 3))
    assert board.merge(first)
    assert not board.merge(third)
    assert not Board().merge(replace(second, order=[1, 2]))  # names a card nobody told us of


@pytest.mark.django_db
def test_no_redis_is_no_reason_to_fail(settings):
    from channels.layers import channel_layers

    channel_layers.backends.clear()
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": ["redis://127.0.0.1:1/0"]},
        }
    }
    assert publish() is False
    channel_layers.backends.clear()

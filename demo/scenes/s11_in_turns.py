"""S11: two models are called in turn, with room for one. They swap once a stay, not once a call; the alarm says so."""

from __future__ import annotations

import time

from console.catalog.models import Replica
from console.fleet.models import Card
from console.journal.models import Notice
from demo.problem import Problem
from demo.scenes.stage import Stage
from demo.services import CHECK_PLAIN

PAIR = (CHECK_PLAIN, "product-copy")  # of one class of card, and none has room for both
CALLS, APART_S, STAY_S = 14, 8.0, 20


def play(stage: Stage) -> None:
    stage.quiet()
    for name in PAIR:
        stage.let_go(name)
        stage.undo.callback(stage.let_go, name)
        stage.for_service(name, min_loaded_s=STAY_S)
    card = _empty(stage)
    stage.cordon_all_but(card)
    stage.look("/timeline/", f"{' / '.join(PAIR)}: {card.host.name} · {card.index}")
    began, calls = time.monotonic(), []
    for turn in range(CALLS):
        calls.append(stage.call(PAIR[turn % 2], stream=True))
        stage.say(f"    {time.monotonic() - began:4.0f} s  {PAIR[turn % 2]}")
        time.sleep(APART_S)
    told = [call.result() for call in calls]
    took = time.monotonic() - began
    loads = len([d for name in PAIR for d in stage.decisions(name, verb="start", refusal="")])
    answered = sum(one.answered for one in told)
    stage.say(f"  {CALLS} calls in {took:.0f} s, {answered} answered, {loads} loads")
    if loads > took / STAY_S + 2 or answered < CALLS / 2:
        raise Problem("轮流调用变成了来回换载", "calls in turns became loads in turns")
    ringing = stage.wait(
        "the alarm: they swap",
        lambda: Notice.objects.filter(kind="thrash", closed_at=None, service__name__in=PAIR),
        120,
    )
    stage.look("/advice/", f"{', '.join(row.service.name for row in ringing)}: what one more slot costs")


def _empty(stage: Stage) -> Card:
    """A card of the pair's class that nobody is on."""
    taken = {uuid for cards in Replica.objects.filter(ended_at=None).values_list("cards", flat=True) for uuid in cards}
    classes = stage.service(PAIR[0]).card_classes
    free = Card.objects.filter(card_class__in=classes, cordoned=False).exclude(uuid__in=taken).select_related("host")
    if (card := free.first()) is None:
        raise Problem("没有空着的卡", "there is no card that nobody is on")
    return card

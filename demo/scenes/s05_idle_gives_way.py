"""S05: a model that nobody calls holds the memory that a hot one needs: it is announced, goes, and latency returns."""

from __future__ import annotations

from demo.problem import Problem
from demo.scenes.stage import Stage, Told
from demo.services import CHECK_PLAIN, RUSH, SERVICES

IDLE, HOT = CHECK_PLAIN, RUSH  # of one class of card, and none has room for both
WAITING = 3  # more calls than the hot one's copies run at once, fewer than one copy more would run
TOKENS = 120


def play(stage: Stage) -> None:
    stage.quiet()
    stage.for_service(HOT, scale_queue_calls=WAITING - 1)
    stage.for_service(IDLE, min_loaded_s=0)
    before = len(stage.make_ready(HOT, 2))
    (idle, *_) = stage.make_ready(IDLE)
    stage.undo.callback(stage.let_go, IDLE)
    card = stage.card_of(idle)
    stage.cordon_all_but(card)
    stage.look(f"/?q={card.host.name}", f"{card.host.name} · {card.index}: {IDLE}")
    alone = stage.call(HOT, stream=True, tokens=8).result()
    told = list[Told]()
    at_once = before * next(plan.max_num_seqs for plan in SERVICES if plan.name == HOT) + WAITING
    end = stage.keep_calling(HOT, at_once, tokens=TOKENS, told=told, stream=True)
    noticed = stage.wait("the idle one is announced", lambda: stage.decisions(IDLE, reason="room", refusal=""))[0]
    stage.look(f"/timeline/{noticed.pk}", f"{IDLE} → {noticed.numbers.get('room_for')}")
    stage.wait("it goes, without a call cut", lambda: not stage.ready_copies(IDLE))
    stage.wait(f"{HOT}: one copy more", lambda: len(stage.ready_copies(HOT)) > before)
    slow = max(one.first_s for one in told)
    past = len(told) + at_once
    again = stage.wait("latency returns", lambda: _last(told[past:], at_once, slow / 2))
    end()
    stage.say(f"  ✓ first words after {alone.first_s:.1f} s alone, {slow:.1f} s in the queue, {again:.1f} s now")
    if not all(one.answered for one in told):
        raise Problem("有调用没有得到回答", "a call was not answered")


def _last(told: list[Told], count: int, most_s: float) -> float | None:
    """The longest wait for a first word of the last calls, when it is short again."""
    longest = max((one.first_s for one in told[-count:]), default=0.0)
    return longest if len(told) >= count and longest <= most_s else None

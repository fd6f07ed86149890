"""S11: two models are called in turn. Both are answered, and neither is loaded anew for every call."""

from __future__ import annotations

import time

from demo.problem import Problem
from demo.scenes.stage import Stage

PAIR = ("contract-review", "meeting-minutes")
TURNS, APART_S = 4, 8.0


def play(stage: Stage) -> None:
    stage.quiet()
    for name in PAIR:
        stage.let_go(name)
        stage.undo.callback(stage.let_go, name)
    stage.look("/timeline/", " / ".join(PAIR))
    answered = 0
    for turn in range(2 * TURNS):
        told = stage.call(PAIR[turn % 2], stream=True).result()
        answered += told.answered
        stage.say(f"    {PAIR[turn % 2]}: {'answered' if told.answered else 'told why not'} after {told.seconds:.1f} s")
        time.sleep(APART_S)
    loads = len([d for name in PAIR for d in stage.decisions(name, verb="start", refusal="")])
    stage.say(f"  {2 * TURNS} calls, {answered} answered, {loads} loads")
    if answered < 2 * TURNS or loads > TURNS:
        raise Problem("轮流调用变成了来回换载", "calls in turns became loads in turns")

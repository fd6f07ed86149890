"""S14: a copy is drained while a long stream runs: it takes no new calls, and waits until the stream has ended."""

from __future__ import annotations

from demo.problem import Problem
from demo.scenes.stage import Stage
from scheduler.world import Act, Phase

MODEL = "contract-review"
TOKENS = 900


def play(stage: Stage) -> None:
    (copy, *_) = stage.make_ready(MODEL)
    stage.undo.callback(stage.let_go, MODEL)
    stream = stage.call(MODEL, stream=True, tokens=TOKENS)
    stage.wait("the stream runs", lambda: any((r.door_in_flight or 0) > 0 for r in stage.copies(MODEL)), 60)
    stage.order(Act.DRAIN, MODEL, copy.pk)
    stage.wait("draining", lambda: stage.copies(MODEL, Phase.DRAINING))
    stage.look(f"/services/{MODEL}", "draining, one call in flight")
    told = stream.result()
    if not told.answered or "[DONE]" not in told.text:
        raise Problem("长流被切断了", "the long stream was cut")
    stage.say(f"  ✓ the stream ended whole after {told.seconds:.1f} s")
    stage.wait("and then it went", lambda: not stage.copies(MODEL, Phase.READY, Phase.DRAINING))

"""S23: pools that only observe: the wish is written down as advice, nothing moves, and the caller is told so."""

from __future__ import annotations

from console.fleet.models import Pool
from console.journal.models import Advice
from demo.problem import Problem
from demo.scenes.stage import Stage

MODEL = "meeting-minutes"


def play(stage: Stage) -> None:
    stage.let_go(MODEL)
    for pool in Pool.objects.all():
        stage.mode(pool, Pool.Mode.OBSERVE)
    told = stage.call(MODEL).result()
    stage.look("/timeline/", "what would have been done")
    if told.status != 503 or "not_managed" not in told.text:
        raise Problem(f"调用者听到的不是 not_managed：{told.text[:120]}", "the caller was not told not_managed")
    stage.say(f"  ✓ told at once ({told.seconds:.1f} s): not_managed")
    stage.wait("advice is written down", lambda: Advice.objects.filter(service__name=MODEL).exists())
    if stage.copies(MODEL):
        raise Problem("观察的池里动了", "something moved in a pool that observes")

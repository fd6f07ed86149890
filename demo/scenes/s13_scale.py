"""S13: a queue brings copies; once it is gone for a while they go again, and no call is cut for it."""

from __future__ import annotations

from console.journal.models import Decision
from demo.problem import Problem
from demo.scenes.stage import Stage
from demo.services import RUSH

AT_ONCE = 40


def play(stage: Stage) -> None:
    stage.quiet()
    before = len(stage.make_ready(RUSH, 2))
    stage.for_service(RUSH, scale_in_s=60)
    stage.look(f"/services/{RUSH}", f"{before} ready")
    end = stage.keep_calling(RUSH, AT_ONCE, tokens=400)
    raised = stage.wait("more copies are decided", lambda: _raises(stage), 120)[0]
    stage.look(
        f"/timeline/{raised.pk}", f"{raised.numbers.get('running')} running, {raised.numbers.get('waiting')} waiting"
    )
    most = stage.wait(
        "they are ready", lambda: len(stage.ready_copies(RUSH)) if len(stage.ready_copies(RUSH)) > before else 0, 150
    )
    end()
    stage.say(f"  {most} ready; the calls end")
    stage.wait("fewer copies", lambda: len(stage.ready_copies(RUSH)) < most, 300)
    cut = [d for d in stage.decisions(RUSH, verb="stop") if d.numbers.get("lasted_s") and d.reason != "surplus"]
    if cut:
        raise Problem("缩容时切断了调用", "a scale-in cut calls")


def _raises(stage: Stage) -> list[Decision]:
    return [d for d in stage.decisions(RUSH, verb__in=("start", "wake"), refusal="") if d.reason in ("queue", "p99")]

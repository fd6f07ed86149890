"""S04: a model is about to be given up for idleness; a call within the grace takes the notice back."""

from __future__ import annotations

from demo.problem import Problem
from demo.scenes.stage import Stage
from scheduler.world import Phase

MODEL = "contract-review"
GRACE_S = 60


def play(stage: Stage) -> None:
    stage.make_ready(MODEL)
    stage.undo.callback(stage.let_go, MODEL)
    stage.policy(half_empty_pct=0)
    stage.for_service(MODEL, idle_unload_s=30, grace_s=GRACE_S, min_loaded_s=0)
    noticed = stage.wait("a notice", lambda: [r for r in stage.ready_copies(MODEL) if r.drain_at is not None])[0]
    stage.look(f"/services/{MODEL}", f"{noticed.drain_at:%H:%M:%S} UTC")
    told = stage.call(MODEL).result()
    if not told.answered:
        raise Problem("公告期内的调用没有得到回答", "the call within the grace was not answered")
    stage.wait("the notice is taken back", lambda: stage.decisions(MODEL, verb="wake", reason="call"))
    if stage.copies(MODEL, Phase.STARTING):
        raise Problem("它被卸载又加载了", "it was unloaded and loaded again")

"""S20: one of two copies dies as an engine dies; the other serves, and the lost one is there again."""

from __future__ import annotations

from demo.problem import Problem
from demo.scenes.stage import Stage

MODEL = "hotline-qa"


def play(stage: Stage) -> None:
    first, second, *_ = stage.make_ready(MODEL, 2)
    stage.look(f"/services/{MODEL}", f"{first.host.name}, {second.host.name}")
    if first.host_id == second.host_id:
        raise Problem("两个副本在同一台主机", "both copies are on one host")
    stage.fault(first.host.name, "crash", f"replica:{first.pk}", how="kill", once=True)
    calls = [stage.call(MODEL, tokens=8) for _ in range(8)]
    stage.wait("its engine is gone", lambda: first.pk not in {r.pk for r in stage.ready_copies(MODEL)}, 60)
    said = stage.call(MODEL, tokens=8).result()
    if not said.answered:
        raise Problem("备用副本没有顶上", "the standby did not serve")
    stage.say(
        f"  ✓ the standby answers in {said.seconds:.1f} s; {sum(c.result().answered for c in calls)} of 8 answered"
    )
    stage.end_fault(first.host.name, "crash", f"replica:{first.pk}")
    stage.wait("two copies again", lambda: len(stage.ready_copies(MODEL)) >= 2, 180)

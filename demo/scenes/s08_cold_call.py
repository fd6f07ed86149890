"""S08: a stream to a model that is not loaded: the wait is told with its estimate, then the answer comes."""

from __future__ import annotations

from demo.problem import Problem
from demo.scenes.stage import Stage

MODEL = "contract-review"


def play(stage: Stage) -> None:
    stage.let_go(MODEL)
    stage.look(f"/services/{MODEL}", MODEL)
    told = stage.call(MODEL, stream=True).result()
    for line in told.progress[:: max(1, len(told.progress) // 5)]:
        stage.say(f"    {line}")
    stage.undo.callback(stage.let_go, MODEL)
    if not told.answered or not told.progress:
        raise Problem("冷调用没有被告知加载、或没有得到回答", "the cold call was not told of loading, or not answered")
    stage.say(f"  ✓ answered after {told.seconds:.1f} s, told {len(told.progress)} times")

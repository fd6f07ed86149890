"""S05: a model that nobody calls holds memory; it is announced, then it goes, and its card has the room back."""

from __future__ import annotations

from demo.scenes.stage import Stage

MODEL = "contract-review"


def play(stage: Stage) -> None:
    (copy, *_) = stage.make_ready(MODEL)
    stage.undo.callback(stage.let_go, MODEL)
    card = stage.card_of(copy)
    stage.look(f"/?q={card.host.name}", MODEL)
    held = stage.wait("a sample of the card", lambda: stage.card_of(copy).free_mib)
    stage.policy(half_empty_pct=0)
    stage.for_service(MODEL, idle_unload_s=30, grace_s=15, min_loaded_s=0)
    stage.wait("announced", lambda: stage.decisions(MODEL, verb="drain", reason="idle", refusal=""))
    stage.look("/timeline/?reason=idle", "who goes, when, and how to keep it")
    stage.wait("gone, without a call cut", lambda: not stage.ready_copies(MODEL))
    stage.wait("its memory is back", lambda: (stage.card_of(copy).free_mib or 0) > held)

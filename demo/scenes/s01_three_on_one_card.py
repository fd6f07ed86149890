"""S01: an online model and two small ones on one card. What each holds and what is left adds up to the card."""

from __future__ import annotations

import time

from console import state
from console.wire import read_gateways
from demo.problem import Problem
from demo.scenes.stage import Stage
from scheduler.bar import bar_of
from scheduler.draft import Draft
from scheduler.world import Phase

THREE = ("contract-review", "fund-qa", "process-helper")


def play(stage: Stage) -> None:
    for name in THREE:
        stage.make_ready(name)
    stage.undo.callback(stage.let_go, THREE[0])  # the others would be there without us
    rules, now = state.policy(), time.time()
    draft = Draft(state.world(now, read_gateways(), rules=rules), rules, now)
    fullest = max(draft.cards(), key=lambda card: sum(r.phase is Phase.READY for r in draft.on_card(card.id)))
    row = stage.card_of(next(r for r in stage.copies(draft.on_card(fullest.id)[0].service) if fullest.id in r.cards))
    bar = bar_of(draft.book(fullest.id))
    stage.look(f"/?q={row.host.name}", f"{row.host.name} · {row.index}")
    for part in bar.segments:
        stage.say(
            f"    {part.service}: weights {part.weights_mib}, KV {part.kv_granted_mib}, headroom {part.headroom_mib}, "
            f"overhead {part.overhead_mib}, asleep {part.residue_mib} MiB"
        )
    stage.say(
        f"    driver {bar.driver_reserved_mib}, buffer {bar.buffer_mib}, free {bar.free_mib}, all {bar.sum_mib} of "
        f"{bar.total_mib} MiB; oversell {bar.oversell_pct:.0f} %"
    )
    if bar.sum_mib != bar.total_mib or len(bar.segments) < 2:
        raise Problem("这张卡的账不平，或只有一个模型", "the card's parts do not add up, or there is one model only")

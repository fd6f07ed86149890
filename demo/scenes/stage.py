"""What a scene is played with: calls, buttons, faults and numbers of the policy, each undone at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from django.utils import timezone

from console.accounts.models import User
from console.catalog.models import Order, Replica, Service
from console.fleet.models import Card, Pool
from console.journal.models import Decision
from console.policies import change
from console.policies.models import Layer
from console.wire import hurry
from demo.farm import KEYS, TRAFFIC
from demo.home import Home
from demo.problem import Problem
from demo.traffic import PAUSE
from scheduler.world import Act, Phase
from workers.simulator.faults import clear_faults, set_fault

LOOK_S = 0.3
ORDER_S = 600
CALL_S = 900.0
TEXT = "请概括这份材料的要点。"


@dataclass(slots=True)
class Told:
    """One call's end: status, answered or why not, seconds in all and to its first word, and what was said before."""

    status: int
    text: str
    seconds: float
    first_s: float = 0.0
    progress: list[str] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        return self.status == 200 and '"error"' not in self.text


class Stage:
    """A running demo. Everything that a scene changes goes through here and is put back by `undo`."""

    def __init__(self, home: Home, ready: dict[str, Any], say: Callable[[str], None]) -> None:
        self.home, self.ready, self.say = home, ready, say
        self.began = timezone.now()
        self.undo = ExitStack()
        self.calls: list[Future[Told]] = []
        self._threads = ThreadPoolExecutor(64)
        self._ended = False
        self.undo.callback(self._hang_up)

    # What a scene says

    def look(self, path: str, words: str) -> None:
        """A page to look at now."""
        self.say(f"  → {self.ready['web']}{path}  {words}")

    def wait(self, words: str, reached: Callable[[], Any], limit_s: float = 120.0) -> Any:
        """The first true value of `reached()`. Raises Problem past the limit."""
        self.say(f"  … {words}")
        began = time.monotonic()
        while time.monotonic() - began < limit_s:
            if value := reached():
                self.say(f"  ✓ {words} ({time.monotonic() - began:.1f} s)")
                return value
            time.sleep(LOOK_S)
        raise Problem(f"{limit_s:.0f} 秒内没有等到：{words}", f"not within {limit_s:.0f} s: {words}")

    # What a scene does

    def call(self, service: str, *, stream: bool = False, tokens: int = 16, text: str = TEXT) -> Future[Told]:
        """A call through the gateway, in a thread of its own."""
        future = self._threads.submit(self._call, service, stream, tokens, text)
        self.calls.append(future)
        return future

    def keep_calling(
        self,
        service: str,
        at_once: int,
        tokens: int = 64,
        *,
        text: str = TEXT,
        stream: bool = False,
        told: list[Told] | None = None,
    ) -> Callable[[], None]:
        """So many calls in flight until the returned function is called; their ends are added to `told`."""
        on = [True]

        def again() -> None:
            while on[0] and not self._ended:
                one = self._call(service, stream, tokens, text)
                if told is not None:
                    told.append(one)
                if not one.answered:
                    time.sleep(LOOK_S)

        for _ in range(at_once):
            self._threads.submit(again)

        def end() -> None:
            on[0] = False

        self.undo.callback(end)
        return end

    def policy(self, layer: Layer = Layer.GROUP, subject: str = "", **values: float) -> None:
        """Numbers of the policy for the length of the scene."""
        before = change.in_force(layer, subject)
        self._write(layer, subject, values)
        self.undo.callback(self._write, layer, subject, {name: before.get(name) for name in values})

    def for_service(self, service: str, **values: float) -> None:
        self.policy(Layer.SERVICE, service, **values)

    def order(self, act: Act, service: str, replica: int | None = None, count: int = 1) -> None:
        """A button, pressed by the operator."""
        now = timezone.now()
        Order.objects.create(
            service=Service.objects.get(name=service), replica_id=replica, act=act, count=count, by=self._operator(),
            at=now, until=now + timedelta(seconds=ORDER_S),
        )  # fmt: skip
        hurry(service)

    def fault(self, host: str, kind: str, target: str, **values: Any) -> None:
        """A fault of the simulated machines of a host."""
        folder = self.home.host(host) / "sim"
        set_fault(folder, kind, target, **values)
        self.undo.callback(clear_faults, folder, kind, target)

    def end_fault(self, host: str, kind: str, target: str) -> None:
        clear_faults(self.home.host(host) / "sim", kind, target)

    def mode(self, pool: Pool, mode: str) -> None:
        """A pool's mode for the length of the scene."""
        before = pool.mode
        Pool.objects.filter(pk=pool.pk).update(mode=mode)
        self.undo.callback(Pool.objects.filter(pk=pool.pk).update, mode=before)

    def cordon_all_but(self, card: Card) -> Callable[[], None]:
        """Nothing is loaded on any other card until the returned function is called."""
        others = list(Card.objects.filter(cordoned=False).exclude(pk=card.pk).values_list("pk", flat=True))

        def end() -> None:
            Card.objects.filter(pk__in=others).update(cordoned=False)

        self.undo.callback(end)
        Card.objects.filter(pk__in=others).update(cordoned=True)
        return end

    def quiet(self) -> None:
        """No traffic but the scene's own."""
        flag = Path(self.home.path / PAUSE)
        if not flag.exists():
            flag.touch()
            self.undo.callback(flag.unlink, missing_ok=True)

    # What a scene sees

    def service(self, name: str) -> Service:
        return Service.objects.select_related("model", "tenant").get(name=name)

    def copies(self, service: str, *phases: Phase) -> list[Replica]:
        rows = Replica.objects.filter(service__name=service, ended_at=None).select_related("host").order_by("pk")
        return list(rows.filter(phase__in=phases) if phases else rows)

    def on_card(self, card: Card) -> list[Replica]:
        rows = Replica.objects.filter(ended_at=None, host=card.host_id).select_related("service").order_by("pk")
        return [row for row in rows if card.uuid in row.cards]

    def ready_copies(self, service: str) -> list[Replica]:
        return [row for row in self.copies(service, Phase.READY) if row.want == "ready"]

    def card_of(self, replica: Replica) -> Card:
        return Card.objects.select_related("host", "pool").get(uuid=replica.cards[0])

    def decisions(self, service: str = "", **more: Any) -> list[Decision]:
        """What was decided since the scene began, oldest first."""
        rows = Decision.objects.filter(at__gte=self.began, **more).order_by("pk")
        return list(rows.filter(service__name=service) if service else rows)

    def make_ready(self, service: str, count: int = 1) -> list[Replica]:
        """At least so many ready copies, by button where there are fewer."""
        if len(self.ready_copies(service)) < count:
            self.order(Act.PRELOAD, service, count=count)
        self.wait(f"{service}: {count} ready", lambda: len(self.ready_copies(service)) >= count, 180)
        return self.ready_copies(service)

    def let_go(self, service: str) -> None:
        """Whatever is loaded of it is stopped: it is cold."""
        if self.copies(service):
            self.order(Act.STOP, service)
        self.wait(f"{service}: cold", lambda: not self.copies(service), 120)

    # Inside

    def _operator(self) -> User:
        return User.objects.get(username="operator")

    def _write(self, layer: Layer, subject: str, values: dict[str, float] | dict[str, float | None]) -> None:
        now = timezone.now()
        change.write(layer, subject, dict(values), by=self._operator(), note="scene", now=now)

    def _key(self, service: str) -> str:
        keys = self.home.read_json(KEYS)
        owner = Service.objects.values_list("tenant__slug", flat=True).get(name=service)
        return str(keys.get(owner, keys[TRAFFIC]))

    def _call(self, service: str, stream: bool, tokens: int, text: str) -> Told:
        asked = [{"role": "user", "content": text}]
        body = {"model": service, "messages": asked, "stream": stream, "max_tokens": tokens}
        headers = {"Authorization": f"Bearer {self._key(service)}"}
        began, first_s, lines = time.monotonic(), 0.0, list[str]()
        try:
            with httpx.Client(timeout=CALL_S, trust_env=False) as client:
                address = f"{self.ready['gateway']}/v1/chat/completions"
                with client.stream("POST", address, json=body, headers=headers) as answer:
                    for line in self._lines(answer):
                        first_s = first_s or (time.monotonic() - began if line.startswith("data:") else 0.0)
                        lines.append(line)
        except httpx.HTTPError as error:
            return Told(0, repr(error), time.monotonic() - began, first_s)
        progress = [line for line in lines if line.startswith(": gongka")]
        took = time.monotonic() - began
        return Told(answer.status_code, "\n".join(lines), took, first_s or took, progress)

    def _lines(self, answer: httpx.Response) -> Iterator[str]:
        for line in answer.iter_lines():
            if self._ended:
                return
            yield line

    def _hang_up(self) -> None:
        self._ended = True
        self._threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def on(home: Home, ready: dict[str, Any], say: Callable[[str], None]) -> Iterator[Stage]:
    """A stage, and what was changed on it is put back at the end."""
    stage = Stage(home, ready, say)
    try:
        yield stage
    finally:
        say("  ↺ 还原 / putting back what was changed")
        stage.undo.close()

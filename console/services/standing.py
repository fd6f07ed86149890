"""How a service stands now: one word, its tone, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from scheduler.faults import tried_out
from scheduler.lifecycle import seen_phase
from scheduler.policy import Policy
from scheduler.world import Failure, Phase, Want


class State(StrEnum):
    READY = "ready"
    RETRYING = "retrying"
    LOADING = "loading"
    ASLEEP = "asleep"
    DRAINING = "draining"
    DOWN = "down"
    COLD = "cold"


#: In the order in which one looks for trouble and movement when sorting by state.
WORDS: dict[State, tuple[Any, str]] = {
    State.DOWN: (gettext_lazy("装载失败"), "bad"),
    State.RETRYING: (gettext_lazy("重试中"), "warn"),
    State.LOADING: (gettext_lazy("装载中"), "warn"),
    State.DRAINING: (gettext_lazy("摘流中"), "warn"),
    State.READY: (gettext_lazy("就绪"), "ok"),
    State.ASLEEP: (gettext_lazy("休眠"), ""),
    State.COLD: (gettext_lazy("未装载"), ""),
}
DETAILS: dict[State, Any] = {
    State.LOADING: gettext_lazy("来的调用会等到它就绪"),
    State.ASLEEP: gettext_lazy("被调用时唤醒"),
    State.DRAINING: gettext_lazy("在途的做完就让出显存"),
    State.COLD: gettext_lazy("被调用时装载"),
}

Phases = Mapping[Phase, int]


@dataclass(frozen=True, slots=True)
class Standing:
    state: State
    detail: Any = ""  # put into words when it is drawn: a thousand are sorted, fifty shown

    @property
    def word(self) -> str:
        return str(WORDS[self.state][0])

    @property
    def tone(self) -> str:
        return WORDS[self.state][1]


def phase_of(row: Any) -> Phase:
    """The phase that counts: what was reported, read against what is wanted."""
    return seen_phase(Want(row.want), row.attempt, Phase(row.phase), row.phase_attempt)


def phases_of(rows: Iterable[Any]) -> dict[int, dict[Phase, int]]:
    """Service id → phase → how many replicas."""
    result: dict[int, dict[Phase, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        result[row.service_id][phase_of(row)] += 1
    return result


def standing(failures: list[dict[str, Any]], phases: Phases, rules: Policy, now: float) -> Standing:
    """`failures` are the service's since it was last ready. It is down only while the planner tries no card."""
    for phase, state in (
        (Phase.READY, State.READY),
        (Phase.STARTING, State.LOADING),
        (Phase.ASLEEP, State.ASLEEP),
        (Phase.DRAINING, State.DRAINING),
    ):
        if phases.get(phase):
            return Standing(state, DETAILS.get(state, ""))
    reason = str(failures[-1].get("message") or failures[-1].get("code", "")) if failures else ""
    if phases.get(Phase.FAILED):
        return Standing(State.RETRYING, reason or _("引擎起来又退了，停一停再试"))
    if not failures:
        return Standing(State.COLD, DETAILS[State.COLD])
    if tried_out([Failure(**one) for one in failures], rules, now) is not None:
        return Standing(State.DOWN, reason)
    cards = len({one["card"] for one in failures})
    text = ngettext(
        "在 %(n)d 张卡上没有装起来，被调用时换一张卡再试", "在 %(n)d 张卡上没有装起来，被调用时换一张卡再试", cards
    )
    return Standing(State.COLD, text % {"n": cards})

"""A story in words: one sentence that says what happened and how it ended, then its steps with times and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.journal.models import Decision, Event
from console.journal.stories import Kind, Story
from console.journal.words import REASONS, REFUSALS, VERBS, about_a_card, figures, reason_word, said, verb_word
from scheduler.decision import Reason, Verb
from scheduler.world import Phase

KIND_WORDS: dict[str, Any] = {
    Kind.LOAD: gettext_lazy("装载"),
    Kind.RECLAIM: gettext_lazy("回收"),
    Kind.FAULT: gettext_lazy("故障"),
    Kind.OPERATOR: gettext_lazy("人工"),
    Kind.MOVE: gettext_lazy("移动"),
}
ENDS: dict[str, Any] = {
    Phase.READY: gettext_lazy("就绪"),
    Phase.ASLEEP: gettext_lazy("已休眠"),
    Phase.STOPPED: gettext_lazy("已停止"),
    Phase.FAILED: gettext_lazy("失败"),
}
FAULTS: dict[str, Any] = {
    "bad_arguments": gettext_lazy("启动参数不对"),
    "bad_weights": gettext_lazy("权重不完整"),
    "out_of_memory": gettext_lazy("显存不足"),
    "crashed": gettext_lazy("进程崩溃"),
    "hung": gettext_lazy("进程没有响应"),
    "stalled": gettext_lazy("自称健康，但不再产出"),
    "exited": gettext_lazy("进程退出"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a story; `tone` is a class of the step list."""

    at: datetime
    title: str
    detail: str
    tone: str


@dataclass(frozen=True, slots=True)
class Told:
    """A story as printed. `pk` is its first decision's, the permalink; None: events alone."""

    pk: int | None
    kind: str
    service: str
    tenant: Any
    sentence: str
    tone: str
    start: datetime
    end: datetime
    steps: list[Step]

    @property
    def lasted_s(self) -> float:
        return (self.end - self.start).total_seconds()

    @property
    def url(self) -> str:
        """Its permalink; empty: it has none."""
        return "" if self.pk is None else f"{_address()}{self.pk}"


@lru_cache(maxsize=1)
def _address() -> str:
    """Of a story, without its number: looked up once, not for each of thirty stories a page."""
    return reverse("story", args=(0,)).removesuffix("0")


def tell(story: Story, labels: Mapping[str, str]) -> Told:
    """`labels`: label by name of the services the reader may see; any other is another company's."""
    service = next((row.service for row in story.rows if row.service_id == story.service), None)
    parts, tone = SENTENCES[story.kind](story, labels)
    return Told(
        story.decisions[0].pk if story.decisions else None,
        str(KIND_WORDS[story.kind]),
        service.label if service is not None else _unnamed(story),
        service.tenant if service is not None else None,
        _("，").join(_inside(part) for part in parts if part),
        tone,
        story.start,
        story.end,
        [_step(row, labels) for row in story.rows],
    )


def _inside(part: str) -> str:
    """Within a sentence: "Load on card 03" begins small there, "KV" and "P99" do not."""
    return part[:1].lower() + part[1:] if part[1:2].islower() else part


def _unnamed(story: Story) -> str:
    """What a story without a service is about: a card with an alert, or a service that is gone."""
    first = story.rows[0]
    if isinstance(first, Decision) and about_a_card(first):
        return said(first, {}).service
    return _("已删除的业务")


def _step(row: Decision | Event, labels: Mapping[str, str]) -> Step:
    if isinstance(row, Decision):
        one = said(row, labels)
        title = f"{one.service} {one.verb}"
        card = _("%s 号卡") % one.card if one.card else ""
        return Step(row.at, title, _("；").join(part for part in (one.reason, one.numbers, card) if part), one.tone)
    service = row.service.label if row.service is not None else _("已删除的业务")
    tone = {Phase.READY: "ok", Phase.FAILED: "bad"}.get(Phase(row.phase), "")
    details = [_("用时 %s 秒") % seconds(row.seconds) if row.seconds is not None else "", _fault(row), row.text]
    return Step(row.at, f"{service} {ENDS[row.phase]}", _("；").join(part for part in details if part), tone)


def seconds(value: float | None) -> str:
    return "—" if value is None else f"{value:,.1f}".removesuffix(".0")


def _fault(event: Event) -> str:
    return str(FAULTS.get(event.how, event.how)) if event.phase == Phase.FAILED else ""


def _number(rows: list[Decision], name: str) -> float | None:
    found = [row.numbers[name] for row in rows if isinstance(row.numbers.get(name), int | float)]
    return max(found, default=None)


def _outcome(story: Story, phase: Phase) -> Event | None:
    return next((one for one in story.events if one.phase == phase and one.service_id == story.service), None)


def _refusal(row: Decision, labels: Mapping[str, str]) -> str:
    figure = figures(row.numbers, labels)
    return _("，").join(part for part in (str(REFUSALS.get(row.refusal, row.refusal)), figure) if part)


def _started(story: Story) -> Decision | None:
    acts = [row for row in story.mine if not row.refusal and row.verb in (Verb.START, Verb.WAKE)]
    return acts[-1] if acts else None


def _where(row: Decision) -> str:
    card = row.card
    number = "" if card is None else f"{card.number:02d}" if card.number is not None else str(card)
    if not number:
        return str(verb_word(row.verb))
    return _("在 %(card)s 号卡%(verb)s") % {"card": number, "verb": verb_word(row.verb)}


def _arrival(story: Story) -> tuple[str, str]:
    """How a start or wake ended so far, and its tone."""
    ready, failed = _outcome(story, Phase.READY), _outcome(story, Phase.FAILED)
    if ready is not None:
        return (_("%s 秒后就绪") % seconds(ready.seconds) if ready.seconds is not None else _("已就绪")), "ok"
    if failed is not None:
        return _("失败：%s") % (_fault(failed) or failed.text or _("原因不明")), "bad"
    return "", ""


def _load(story: Story, labels: Mapping[str, str]) -> tuple[list[str], str]:
    held = _number(story.mine, "held")
    room = [row for row in story.decisions if row.service_id != story.service and row.verb == Verb.DRAIN]
    went = list(dict.fromkeys(row.service.label for row in room if row.service is not None))
    first = story.mine[0] if story.mine else story.decisions[0]
    why = ngettext("%d 个调用在等", "%d 个调用在等", round(held)) % held if held else str(reason_word(first.reason))
    parts = [why, _("%s让出显存") % _("、").join(went) if went else ""]
    if any(row.reason == Reason.THROTTLE for row in story.mine):
        return [*parts, _("邻居变慢，停下等待")], ""
    act = _started(story)
    if act is None:
        refused = [row for row in story.mine if row.refusal]
        return [*parts, _("未能装载：%s") % _refusal(refused[-1], labels) if refused else ""], "bad" if refused else ""
    end, tone = _arrival(story)
    return [*parts, _where(act), end], tone


def _reclaim(story: Story, labels: Mapping[str, str]) -> tuple[list[str], str]:
    idle = _number(story.decisions, "idle_s")
    first = _("空闲 %s 秒") % f"{idle:,.0f}" if idle is not None else str(REASONS.get(story.decisions[0].reason, ""))
    if any((row.verb, row.reason) == (Verb.WAKE, Reason.CALL) for row in story.decisions):
        first = first if idle is not None or story.decisions[0].reason != Reason.CALL else ""  # said by what follows
        return [first, _("通知让位后来了调用，留下")], "ok"
    for phase, text in ((Phase.ASLEEP, _("已休眠")), (Phase.STOPPED, _("已停止"))):
        if _outcome(story, phase) is not None:
            return [first, text], ""
    verbs = {row.verb for row in story.decisions if not row.refusal}
    last = _("转休眠") if Verb.SLEEP in verbs else _("停止") if Verb.STOP in verbs else _("通知让位")
    return [first, last], ""


def _faulty(story: Story, labels: Mapping[str, str]) -> tuple[list[str], str]:
    failures = [one for one in story.events if one.phase == Phase.FAILED]
    what = _fault(failures[0]) if failures else ""
    times = _("失败 %d 次") % len(failures) if len(failures) > 1 else ""
    act = _started(story)
    ready = _outcome(story, Phase.READY)
    if ready is not None:
        end, tone = _arrival(story)
        return [what or _("出了故障"), times, _where(act) if act is not None else "", end], tone
    given_up = any(row.verb == Verb.STOP for row in story.mine)
    return [what or _("出了故障"), times, _("放弃这张卡") if given_up else _("等待重试")], "bad"


def _by_hand(story: Story, labels: Mapping[str, str]) -> tuple[list[str], str]:
    last = story.decisions[-1]
    if last.refusal:
        return [_("人工%(verb)s未成：%(why)s") % {"verb": VERBS[last.verb], "why": _refusal(last, labels)}], "bad"
    end, tone = _arrival(story)
    if not end:
        ended = [one for one in story.events if one.phase in ENDS]
        end = str(ENDS[ended[-1].phase]) if ended else ""
    return [_("人工%s") % VERBS.get(story.decisions[0].verb, ""), end], tone


def _moved(story: Story, labels: Mapping[str, str]) -> tuple[list[str], str]:
    first = story.decisions[0]
    end, tone = _arrival(story)
    return [str(reason_word(first.reason)), _where(first), end], tone


SENTENCES = {
    Kind.LOAD: _load,
    Kind.RECLAIM: _reclaim,
    Kind.FAULT: _faulty,
    Kind.OPERATOR: _by_hand,
    Kind.MOVE: _moved,
}

"""The planner's answers in words, for the person who asked: cards by number, foreign services without a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.catalog.models import Service
from console.filters import gib
from console.fleet.models import Card
from console.journal.words import REFUSALS, figures
from console.services.fit import Answer, Fit
from scheduler.decision import Decision, Refusal, Verb
from scheduler.world import World


@dataclass(frozen=True, slots=True)
class Names:
    """What the reader may be told: cards by UUID, labels of the services they may see by name."""

    cards: Mapping[str, tuple[int | None, str, int]]  # number, host, index: put into words where one is named
    services: Mapping[str, str]

    @classmethod
    def read(cls, services: Mapping[str, str]) -> Names:
        rows = Card.objects.order_by().values_list("uuid", "number", "host__name", "index")
        return cls({uuid: (number, host, index) for uuid, number, host, index in rows}, services)

    def card(self, uuid: object) -> str:
        card = self.cards.get(str(uuid))
        return str(uuid) if card is None else card_name(*card)

    def several(self, names: tuple[str, ...]) -> str:
        """Known ones by label, the others as a number."""
        known = [self.services[name] for name in names if name in self.services]
        others = len(names) - len(known)
        if others:
            known.append(ngettext("其他公司的 %(n)d 个业务", "其他公司的 %(n)d 个业务", others) % {"n": others})
        return _("、").join(known)


def card_name(number: int | None, host: str, index: int) -> str:
    if number is None:
        return f"{host}/{index}"
    return _("%(number)02d 号卡（%(host)s）") % {"number": number, "host": host}


def visible(rows: QuerySet[Service]) -> Names:
    """`rows`: the services the reader may see. Two queries."""
    return Names.read(dict(rows.values_list("name", "label")))


def fits(fit: Fit, names: Names) -> str:
    """ "07 号卡（gpu-01），与 X、Y 同卡，之后剩 6.4 GiB，约 15 秒就绪"."""
    parts = [names.card(fit.card)]
    if fit.more:
        parts.append(_("同一台主机上另 %(n)d 张卡，每张都一样占") % {"n": len(fit.more)})
    if fit.beside:
        parts.append(_("与%(others)s同卡") % {"others": names.several(fit.beside)})
    else:
        parts.append(_("卡上没有别的业务"))
    parts.append(
        _("占 %(holds)s GiB，之后剩 %(left)s GiB") % {"holds": gib(fit.holds_mib), "left": gib(fit.leaves_mib)}
    )
    parts.append(ready_in(fit.seconds, fit.rough))
    return _("，").join(parts)


def ready_in(seconds: float, rough: bool) -> str:
    values = {"s": max(1, round(seconds))}
    return (_("大约 %(s)s 秒就绪（没有量过，粗估）") if rough else _("约 %(s)s 秒就绪")) % values


def refused(refusal: Refusal, names: Names) -> str:
    """The type in words, where it was nearest, and its numbers."""
    text = str(REFUSALS.get(refusal.code, refusal.code))
    numbers = figures(refusal.numbers, names.services)
    card = refusal.numbers.get("card")
    nearest = _("在%(card)s") if refusal.passing else _("最接近的是%(card)s")
    where = nearest % {"card": names.card(card)} if card else ""
    return _("，").join(part for part in (text, where, numbers) if part)


def each_card(answer: Answer) -> list[tuple[str, int]]:
    """Every card's reason with how many cards give it, the commonest first."""
    counts = sorted((answer.codes or {}).items(), key=lambda item: (-item[1], item[0]))
    return [(str(REFUSALS.get(code, code)), count) for code, count in counts]


def leaving(decision: Decision, world: World, names: Names) -> str:
    """Who would be asked to go, and how."""
    who = names.services.get(decision.service, _("其他公司的一个业务"))
    replica = world.replicas.get(decision.replica) if decision.replica is not None else None
    count = replica.in_flight if replica is not None else None
    if decision.verb is Verb.STOP:
        return _("%(who)s：休眠中或没人等的装载，停掉") % {"who": who}
    if count:
        return _("%(who)s：在用，在途 %(n)s 个，做完再走，一个也不切断") % {"who": who, "n": count}
    return _("%(who)s：空闲，先通知再走") % {"who": who}

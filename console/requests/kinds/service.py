"""A new service: the wizard's draft, registered once somebody agreed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from console.accounts.models import Role, User
from console.filters import gib
from console.requests import weigh
from console.requests.colder import NEXT, Colder, month_fen
from console.requests.kind import Filed, Kind, Stale
from console.requests.models import Request
from console.services import fit
from console.services.draft import DraftForm, save
from console.services.shapes import shape
from scheduler.world import Service as CoreService

HELD = "draft"


class ServiceForm(DraftForm):
    """The draft and why it is wanted."""

    why = forms.CharField(
        label=gettext_lazy("为什么"),
        max_length=400,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=gettext_lazy("决定的人和以后查账的人都看这一句。"),
    )


def _filled(row: Request) -> ServiceForm:
    """The draft as it was asked for, checked against the farm as it is."""
    form = ServiceForm(row.asked_by, _data(row.wanted[HELD], row.why))
    form.is_valid()  # reads the fields: what is wrong by now is in its errors
    return form


def _data(draft: Mapping[str, list[str]], why: str) -> QueryDict:
    data = QueryDict(mutable=True)
    for name, values in draft.items():
        data.setlist(name, values)
    data["why"] = why
    return data


class NewService(Kind):
    key = "service"
    label = gettext_lazy("新业务")
    about = gettext_lazy("登记一个新业务：模型、显存、给谁用。先在“试算新业务”里看放不放得下。")
    askers = frozenset({Role.OPERATOR, Role.TENANT_ADMIN, Role.TENANT_MEMBER})
    takes_back = False

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> Any:
        if data is None and HELD in initial:
            data = _data(initial[HELD], initial.get("why", ""))
        return ServiceForm(person, data)

    def filed(self, form: Any) -> Filed:
        names = [name for name in form.fields if name != "why"]
        draft = {name: form.given.getlist(name) for name in names if name in form.given}
        return Filed(form.cleaned_data["tenant"], None, form.cleaned_data["label"], {HELD: draft})

    def says(self, row: Request) -> list[tuple[Any, str]]:
        form = _filled(row)
        found: list[tuple[Any, str]] = [(gettext_lazy("显示名"), row.subject)]
        for name in ("name", "model", "profile", "tier", "audience", "min_replicas", "max_replicas"):
            found.append((form.fields[name].label, _shown(form, name)))
        if form.answerable():
            sizes = [gib(form.mib(name)) for name in ("weights", "kv_cap", "headroom")]
            found.append((gettext_lazy("权重 + KV 上限 + 余量，GiB"), " + ".join(sizes)))
        return found

    def fen_month(self, row: Request) -> int:
        return self.consequences(row, row.asked_at.timestamp())["fen_month"] or 0

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        """Where its least number of copies would go, beside whom, and what they cost if they stayed all month."""
        form, seen = _filled(row), weigh.look(now)
        if not form.answerable():
            return weigh.Weighed(facts=[("unclear", {})]).frozen(now)
        service = form.core(seen.rules)
        found = fit.answer(seen.world, seen.rules, service, now)
        cards = [(card, one.holds_mib) for one in found.fits for card in (one.card, *one.more)]
        ready_s = max((one.seconds for one in found.fits), default=0)
        facts = [("fits", {"n": len(found.fits), "s": round(ready_s)})] if found.fits else []
        facts += [("fits_not", {})] if found.refusal is not None else []
        return weigh.Weighed(
            cards=tuple(card for card, _ in cards),
            held_mib=sum(mib for _, mib in cards),
            colder=_leaving(found, seen, service),
            fen_month=month_fen(seen.world, cards),
            facts=facts,
        ).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        form = _filled(row)
        if not form.is_valid():
            raise Stale("name_taken" if "name" in form.errors else "invalid")
        service = save(form)
        row.service = service
        Request.objects.filter(pk=row.pk).update(service=service)
        return {"before": {}, "after": {"name": service.name}}

    def end(self, row: Request, now: datetime) -> None:
        raise AssertionError("a service is stopped and edited, not taken back")


def _shown(form: ServiceForm, name: str) -> str:
    """What was chosen, in its own words; once it is registered its name is taken, and its model is no new one."""
    value, field = form.cleaned_data.get(name), form.fields[name]
    if value is None and form.given is not None:
        value = form.given.get(name) or None
        if name == "model" and value is not None and (model := shape(value)) is not None:
            return model.name
    known = {str(key): str(label) for key, label in getattr(field, "choices", ())}
    return known.get(str(value), "—" if value is None else str(value))


def _leaving(found: fit.Answer, seen: weigh.Look, service: CoreService) -> list[Colder]:
    """Who would be asked to go for it."""
    replicas = [one for d in found.leaving if (one := seen.world.replicas.get(d.replica or 0)) is not None]
    waits = [(one.service, fit.back_s(seen.world, seen.rules, one, asleep=False)) for one in replicas]
    return [Colder(name, NEXT, wait_s, rough) for name, (wait_s, rough) in waits if name != service.name]

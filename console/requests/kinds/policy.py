"""A change of the policy: of the group, a pool or a service, with what follows at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.http import Http404, QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.accounts.models import Role, User
from console.catalog.models import Service
from console.forms import LongSelect
from console.jobs.models import Job
from console.policies.change import Wrong, in_force, write
from console.policies.models import Layer
from console.policy_pages import typed, words
from console.policy_pages.effect import changed
from console.policy_pages.scope import Scope, pools, scope_of
from console.previews import jobs
from console.requests import weigh
from console.requests.kind import AskForm, Filed, Kind, Stale
from console.requests.models import Request
from scheduler.settable import check, numbers

FIELD = "v."


def where() -> list[tuple[str, Any]]:
    """Layers as a select box names them: `layer:subject`."""
    found: list[tuple[str, Any]] = [("group:", _("集团默认"))]
    found += [(f"pool:{pool.subject}", f"{Layer.POOL.label} {pool.label}") for pool in pools()]
    services = Service.objects.order_by("tenant__ordinal", "name").values_list("name", "label")
    return found + [(f"service:{name}", f"{Layer.SERVICE.label} {label}") for name, label in services]


class PolicyForm(AskForm):
    """One number; or several at once, as the page that is asked before a change sends them (`v.NAME`)."""

    where = forms.ChoiceField(label=gettext_lazy("改哪里的"), widget=LongSelect)
    name = forms.ChoiceField(label=gettext_lazy("参数"), required=False)
    value = forms.CharField(
        label=gettext_lazy("改成"), max_length=40, required=False, help_text=gettext_lazy("留空：回到更宽一层的值。")
    )

    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, _renamed(data), **kwargs)
        self.fields["where"].choices = where()  # type: ignore[attr-defined]
        sections = [(one.title, [(name, words.label(name)) for name in one.words]) for one in words.SECTIONS]
        self.fields["name"].choices = [("", "—"), *sections]  # type: ignore[attr-defined]
        self.typed = {key: str(self.data[key]) for key in self.data if key.startswith(FIELD)}
        for key, text in self.typed.items():  # kept when something else is wrong
            self.fields[key] = forms.CharField(initial=text, required=False, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        layer, _colon, subject = given.get("where", "group:").partition(":")
        try:
            given["scope"] = scope_of(layer, subject)
        except Http404:
            raise ValidationError(_("没有这个资源池或业务。")) from None
        given["changes"] = self._changes(given["scope"], self._several(given))
        return given

    def _several(self, given: Mapping[str, Any]) -> dict[str, str]:
        several = {key.removeprefix(FIELD): text for key, text in self.typed.items()}
        if given.get("name"):
            several[given["name"]] = given.get("value", "")
        return {name: text for name, text in several.items() if name in numbers()}

    def _changes(self, scope: Scope, several: Mapping[str, str]) -> dict[str, float | None]:
        here, changes = in_force(scope.layer, scope.subject), {}
        for name, text in several.items():
            try:
                value = typed.read(name, text) if text.strip() else None
            except typed.Mistyped as mistyped:
                raise ValidationError({"value": str(mistyped)}) from None
            if value != here.get(name):
                changes[name] = value
        if not changes:
            raise ValidationError(_("没有什么不同，什么也没有改。"))
        if check({n: v for n, v in changes.items() if v is not None}, scope.core):
            raise ValidationError(_("这一层不能设这个参数。"))
        return changes


def _renamed(data: QueryDict | None) -> QueryDict | None:
    """The other page's words for the same things."""
    if data is None or "layer" not in data:
        return data
    data = data.copy()
    data["where"] = f"{data['layer'] or 'group'}:{data.get('subject', '')}"
    data["why"], data["starts_at"] = data.get("note", ""), data.get("when", "")
    return data


class PolicyChange(Kind):
    key = "policy"
    label = gettext_lazy("改策略")
    about = gettext_lazy("改调度用的一个数：集团的、一个资源池的或一个业务的；到时可以自己改回去。")
    askers = frozenset({Role.OPERATOR})

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        start = dict(initial)
        if data is None and "changes" in start:
            name, value = next(iter(start["changes"].items()))
            start |= {"where": f"{start['layer']}:{start['subject']}", "name": name}
            start["value"] = "" if value is None else f"{value:.10g}"
        return PolicyForm(person, data, initial=start)

    def filed(self, form: Any) -> Filed:
        scope, changes = form.cleaned_data["scope"], form.cleaned_data["changes"]
        here = in_force(scope.layer, scope.subject)
        wanted = {
            "layer": str(scope.layer),
            "subject": scope.subject,
            "changes": changes,
            "before": {name: here.get(name) for name in changes},
        }
        service = Service.objects.filter(name=scope.service).first() if scope.service else None
        return Filed(None, service, scope.label, wanted)

    def says(self, row: Request) -> list[tuple[Any, str]]:
        found: list[tuple[Any, str]] = [(gettext_lazy("改哪里的"), row.subject)]
        for name, value in row.wanted["changes"].items():
            before, after = (_said(name, one) for one in (row.wanted["before"].get(name), value))
            found.append((words.label(name), f"{before} → {after} {words.UNITS[numbers()[name]['unit']]}"))
        return found

    def tried(self, row: Request) -> Job | None:
        return jobs.latest(row.wanted["layer"], row.wanted["subject"], row.wanted["changes"])

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        seen = weigh.look(now)
        try:
            scope = scope_of(row.wanted["layer"], row.wanted["subject"])
        except Http404:
            return weigh.Weighed(facts=[("unclear", {})]).frozen(now)
        effects = weigh.difference(seen, seen.world, changed(seen.rules, scope, row.wanted["changes"]))
        return weigh.Weighed(effects=effects, facts=[] if effects else [("nothing_now", {})]).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        layer, subject = Layer(row.wanted["layer"]), row.wanted["subject"]
        here, before = in_force(layer, subject), row.wanted["before"]
        if any(here.get(name) != value for name, value in before.items()):
            raise Stale("changed")
        try:
            version = write(layer, subject, row.wanted["changes"], by=row.asked_by, note=_note(row), now=now)
        except Wrong:
            raise Stale("invalid") from None
        return {"before": before, "after": row.wanted["changes"], "version": version.pk if version else None}

    def end(self, row: Request, now: datetime) -> None:
        """Back, where nobody set something else meanwhile."""
        layer, subject = Layer(row.wanted["layer"]), row.wanted["subject"]
        here = in_force(layer, subject)
        back = {n: row.undo["before"][n] for n, value in row.undo["after"].items() if here.get(n) == value}
        if back:
            write(layer, subject, back, by=row.asked_by, note=_note(row), now=now)


def _said(name: str, value: float | None) -> str:
    return "—" if value is None else typed.shown(name, value)


def _note(row: Request) -> str:
    return f"#{row.pk} {row.why}"[:200]

"""Many services at once, from a file or from a form: what each would become, and all of it written or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.forms import ModelForm, modelform_factory
from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from console.accounts.models import Tenant, User
from console.catalog.models import Model, Service
from console.journal.models import Change
from console.model_pages.numbers import by_hand
from console.services.described import FACTS, FIXED, Typed, Unreadable, described, described_model, same
from console.services.draft import NAME, NAME_FORM, RESERVED
from console.services.edit import LABELS, EditForm, Overtaken, digest, save, values

MOST = 200  # services of one go: their forms are checked in one answer and written under one lock
MODEL_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,79}")
RELATED = ("tenant", "model", "fallback", "long_lane")
MODEL_FORM: type[ModelForm[Model]] = modelform_factory(Model, fields=FACTS)


@dataclass(slots=True)
class Line:
    """One service or model that would become another. `changes`: (field, before, after), of a new one all it is."""

    name: str
    form: Any = None
    new: bool = False
    changes: list[tuple[str, Any, Any]] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    later: dict[str, str] = field(default_factory=dict)  # field → a service that this file makes


@dataclass(slots=True)
class Batch:
    """`untouched`: how many are what they are already. `entries`: what of the file still matters."""

    models: list[Line]
    services: list[Line]
    untouched: int
    entries: Mapping[str, Mapping[str, Any]]
    seen: str

    @property
    def lines(self) -> list[Line]:
        return [*self.models, *self.services]

    @property
    def wrong(self) -> int:
        return sum(bool(line.errors) for line in self.lines)


class TooMany(Exception):
    """More than `MOST` would change at once."""


def propose(person: User, models: Mapping[str, Mapping[str, Any]], services: Mapping[str, Mapping[str, Any]]) -> Batch:
    """Reads; writes nothing. Raises TooMany."""
    known_models = {row.slug: row for row in Model.objects.filter(slug__in=models)}
    rows = Service.objects.select_related(*RELATED).prefetch_related("pools", "audience_tenants")
    known = {row.name: row for row in rows.filter(name__in=services)}
    models = {slug: given for slug, given in models.items() if _differs_model(known_models.get(slug), given)}
    todo = {name: given for name, given in services.items() if _differs(known.get(name), given)}
    if len(models) + len(todo) > MOST:
        raise TooMany
    found_models = [_model(slug, known_models.get(slug), given) for slug, given in models.items()]
    made = _Maker(person, set(services) - set(known), {line.name: line.form.instance for line in found_models})
    found = [made.line(name, known.get(name), given) for name, given in todo.items()]
    lines = [line for line in found if line.changes or line.errors]
    entries = {"models": models, "services": {line.name: todo[line.name] for line in lines}}
    befores = {line.name: line.form.before for line in lines if line.form is not None and not line.new}
    before_models = {slug: described_model(row) for slug, row in known_models.items() if slug in models}
    return Batch(found_models, lines, len(services) - len(lines), entries, digest({**befores, "": before_models}))


def _differs(row: Service | None, given: Mapping[str, Any]) -> bool:
    if row is None:
        return True
    known = described(row)
    return any(name not in known or not same(value, known[name]) for name, value in given.items())


def _differs_model(row: Model | None, given: Mapping[str, Any]) -> bool:
    known = described_model(row) if row is not None else {}
    return row is None or any(name not in known or not same(value, known[name]) for name, value in given.items())


def _model(slug: str, row: Model | None, given: Mapping[str, Any]) -> Line:
    line = Line(slug, new=row is None)
    known = described_model(row) if row is not None else {}
    line.errors = [(name, _("没有这一项。")) for name in given if name not in FACTS]
    if not MODEL_SLUG.fullmatch(slug):
        line.errors.append(("", _("标识只用字母、数字、点、冒号和连字符，最长 80。")))
    wanted = {name: str(value) for name, value in {**_defaults(), **known, **given}.items() if name in FACTS}
    line.form = MODEL_FORM(wanted, instance=row or Model(slug=slug))
    line.errors += [(name, one) for name, found in line.form.errors.items() for one in found]
    after = line.form.cleaned_data
    line.changes = [(name, known.get(name), after.get(name)) for name in FACTS if known.get(name) != after.get(name)]
    return line


def _defaults() -> dict[str, Any]:
    blank = Model()
    return {name: getattr(blank, name) for name in FACTS if getattr(blank, name) not in (None, "")}


class _Maker:
    """Turns entries into checked forms. `newcomers`: services that this file makes, which others of it may name."""

    def __init__(self, person: User, newcomers: set[str], models: Mapping[str, Model]) -> None:
        self.person, self.newcomers, self.typed = person, newcomers, Typed()
        self.tenants = {row.slug: row for row in Tenant.objects.all()}
        self.models = {row.slug: row for row in Model.objects.all()} | dict(models)

    def line(self, name: str, row: Service | None, given: Mapping[str, Any]) -> Line:
        line = Line(name, new=row is None)
        row = self._fixed(line, given) if row is None else self._kept(line, row, given)
        if row is None:
            return line
        data = self._data(line, row, given)
        blank = EditForm(self.person, row)
        data["seen"] = digest(blank.before)
        line.form = EditForm(self.person, row, data)
        line.errors += [(field, str(one)) for field, found in line.form.errors.items() for one in found]
        if not line.errors:
            line.changes = _changes(line.form) + [(field, None, other) for field, other in line.later.items()]
        return line

    def _fixed(self, line: Line, given: Mapping[str, Any]) -> Service | None:
        """The row of a new one, not saved; None where it cannot even be named."""
        if not re.search(NAME_FORM, line.name) or len(line.name) > 50 or line.name in RESERVED:
            line.errors.append(("", str(NAME.message)))
        tenant, model = self.tenants.get(str(given.get("tenant"))), self.models.get(str(given.get("model")))
        if tenant is None:
            line.errors.append(("tenant", _("没有这家公司。先建公司，这里写它的标识。")))
        if model is None:
            line.errors.append(("model", _("没有这个模型。写在 models: 下，或先登记一个用它的业务。")))
        if line.errors or tenant is None or model is None:
            return None
        return Service(name=line.name, tenant=tenant, model=model)

    def _kept(self, line: Line, row: Service, given: Mapping[str, Any]) -> Service:
        known = described(row)
        for name in FIXED:
            if name in given and not same(given[name], known[name]):
                line.errors.append((name, _("不能改：应用、账单和权重都认它。")))
        return row

    def _data(self, line: Line, row: Service, given: Mapping[str, Any]) -> QueryDict:
        data = QueryDict(mutable=True)
        line.errors += [(name, _("没有这一项。")) for name in given if name not in LABELS and name not in FIXED]
        for name, value in {**described(row), **given}.items():
            if name not in LABELS:
                continue
            if name in ("fallback", "long_lane") and value in self.newcomers:
                line.later[name] = str(value)
                continue
            try:
                data.setlist(name, list(self.typed.of(name, value)))
            except Unreadable as wrong:
                line.errors.append((wrong.field, str(wrong)))
        return data


def _changes(form: EditForm) -> list[tuple[str, Any, Any]]:
    """Before and after of what differs, as `values` says them."""
    found = []
    for name in LABELS:
        after = form.cleaned_data.get(name)
        said = sorted(str(one) for one in after or ()) if name in form.before_many else after
        if isinstance(after, Service):
            said = str(after)
        if form.before[name] != said and (form.before[name] or said):
            found.append((name, form.before[name] if form.instance.pk else None, said))
    return found


def write(batch: Batch, person: User) -> int:
    """All of it, or nothing; how many rows. Raises Overtaken: somebody changed one of them since it was proposed."""
    with transaction.atomic():
        for line in batch.models:
            _write_model(line)
        for line in batch.services:
            if line.new:
                _create(line, person)
            else:
                save(line.form, person)
        for line in batch.services:
            if line.later:
                others = Service.objects.in_bulk(line.later.values(), field_name="name")
                Service.objects.filter(name=line.name).update(**{k: others[v] for k, v in line.later.items()})
    return len(batch.lines)


def _write_model(line: Line) -> None:
    typed = [name for name, _before, _after in line.changes]
    if line.new:
        line.form.instance.origins = by_hand(line.form.instance, typed)
        line.form.save()
        return
    was = {name: before for name, before, _after in line.changes}
    becomes = {name: after for name, _before, after in line.changes}
    origins = by_hand(line.form.instance, typed)
    if Model.objects.filter(slug=line.name, **was).update(**becomes, origins=origins) != 1:
        raise Overtaken


def _create(line: Line, person: User) -> None:
    row: Service = line.form.instance
    row.model = Model.objects.get(slug=row.model.slug)
    line.form.save()
    after = values(Service.objects.get(pk=row.pk))
    name = person.full_name or person.username
    Change.objects.create(
        at=timezone.now(), by=person, by_name=name, subject=row.name, service=row, before={}, after=after
    )


def exported(rows: Iterable[Service]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Models and services of the file that a person takes away."""
    rows = list(rows)
    models = {row.model.slug: described_model(row.model) for row in sorted(rows, key=lambda row: row.model.slug)}
    return models, {row.name: described(row) for row in rows}

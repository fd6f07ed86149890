"""Who may call a service: its own company, named ones, or the whole group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import Sum
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from console.accounts.access import own
from console.accounts.models import Role, Tenant, User
from console.catalog.models import Service
from console.forms import Checks
from console.requests import weigh
from console.requests.kind import AskForm, Filed, Kind, Stale
from console.requests.models import Request
from console.service_field import ServiceField
from console.services.draft import check_audience
from console.state import moment
from console.usage.models import HourlyCalls

WEEK = timedelta(days=7)


class AudienceForm(AskForm):
    service = ServiceField(label=pgettext_lazy("one", "业务"))
    audience = forms.ChoiceField(label=gettext_lazy("谁可以调用"), choices=Service.Audience.choices)
    audience_tenants = forms.ModelMultipleChoiceField(
        Tenant.objects.all(),
        label=gettext_lazy("指定哪些公司"),
        required=False,
        widget=Checks,
        help_text=gettext_lazy("只在选“指定公司”时用；本公司总是可以调用。"),
    )

    def __init__(self, person: User, data: QueryDict | None = None, **kwargs: Any) -> None:
        super().__init__(person, data, **kwargs)
        self.fields["service"].queryset = own(Service.objects.all(), person)  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = super().clean()
        check_audience(self, given)
        return given


class Audience(Kind):
    key = "audience"
    label = gettext_lazy("开放范围")
    about = gettext_lazy("让别的公司，或整个集团，调用一个业务；或收回来。")
    askers = frozenset({Role.OPERATOR, Role.TENANT_ADMIN})

    def form(self, person: User, data: QueryDict | None, initial: Mapping[str, Any]) -> AskForm:
        return AudienceForm(person, data, initial=dict(initial))

    def filed(self, form: Any) -> Filed:
        given = form.cleaned_data
        service: Service = given["service"]
        tenants = sorted(given["audience_tenants"].values_list("pk", flat=True))
        wanted = {"service": service.name, "audience": given["audience"], "audience_tenants": tenants}
        return Filed(service.tenant, service, service.label, wanted)

    def says(self, row: Request) -> list[tuple[Any, str]]:
        found = [
            (pgettext_lazy("one", "业务"), row.subject),
            (gettext_lazy("谁可以调用"), _audience(row.wanted["audience"])),
        ]
        if names := Tenant.objects.filter(pk__in=row.wanted["audience_tenants"]).values_list("name", flat=True):
            found.append((gettext_lazy("指定哪些公司"), _("、").join(names)))
        return found

    def consequences(self, row: Request, now: float) -> dict[str, Any]:
        """Nobody is moved: who can call from then on, who no longer, and how much they called in the last week."""
        old = _callers(row.service) if row.service is not None else set()
        new = _reach(row.wanted["audience"], row.wanted["audience_tenants"], row.tenant_id)
        lost = Tenant.objects.filter(pk__in=old - new)
        slugs = list(lost.values_list("slug", flat=True))
        name, since = row.service.name if row.service is not None else "", moment(now) - WEEK
        calls = HourlyCalls.objects.filter(service=name, tenant__in=slugs, hour__gte=since).aggregate(n=Sum("calls"))
        facts = [("callers", {"gained": len(new - old), "lost": len(old - new), "all": len(new)})]
        if slugs:
            facts.append(("lost_calls", {"calls": calls["n"] or 0}))
        return weigh.Weighed(facts=facts).frozen(now)

    def apply(self, row: Request, now: datetime) -> dict[str, Any]:
        service = Service.objects.filter(pk=row.service_id or 0).first()
        if service is None:
            raise Stale("service_gone")
        was, before = _values(service), _said(service)
        _set(service, row.wanted)
        return {"before": before, "after": _said(service), "was": was, "is": _values(service)}

    def end(self, row: Request, now: datetime) -> None:
        service = Service.objects.filter(pk=row.service_id or 0).first()
        if service is not None and _values(service) == row.undo["is"]:
            _set(service, row.undo["was"])


def _audience(name: str) -> str:
    return str(Service.Audience(name).label)


def _values(service: Service) -> dict[str, Any]:
    tenants = sorted(service.audience_tenants.values_list("pk", flat=True))
    return {"audience": service.audience, "audience_tenants": tenants}


def _said(service: Service) -> dict[str, Any]:
    """For the record of changes, which names companies."""
    return {
        "audience": service.audience,
        "audience_tenants": sorted(str(one) for one in service.audience_tenants.all()),
    }


def _set(service: Service, wanted: Mapping[str, Any]) -> None:
    Service.objects.filter(pk=service.pk).update(audience=wanted["audience"])
    service.audience = wanted["audience"]
    service.audience_tenants.set(Tenant.objects.filter(pk__in=wanted["audience_tenants"]))


def _callers(service: Service) -> set[int]:
    values = _values(service)
    return _reach(values["audience"], values["audience_tenants"], service.tenant_id)


def _reach(audience: str, named: Collection[int], owner: int | None) -> set[int]:
    """Ids of the companies that may call."""
    if audience == Service.Audience.GROUP:
        return set(Tenant.objects.values_list("pk", flat=True))
    return {*(named if audience == Service.Audience.NAMED else ()), *([owner] if owner is not None else ())}

"""One box for everything that has a name: services, cards, hosts, replicas, companies, within the person's view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from console.accounts.access import Act, allowed, may, own, tenant_of
from console.accounts.models import Application, Tenant, User
from console.board.names import hue
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Host
from console.service_field import suggestions

EACH = 20  # of a kind; who sees more than that types another letter
LONGEST = 80


@dataclass(frozen=True, slots=True)
class Hit:
    title: str
    detail: str
    url: str
    mark: str = ""
    hue: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    label: str
    hits: list[Hit]

    @property
    def cut(self) -> bool:
        return len(self.hits) > EACH

    @property
    def shown(self) -> list[Hit]:
        return self.hits[:EACH]


def services(user: User, text: str) -> Iterator[Hit]:
    wanted = Q(name__icontains=text) | Q(label__icontains=text) | Q(model__name__icontains=text)
    for row in own(Service.objects.select_related("tenant", "model"), user).filter(wanted)[: EACH + 1]:
        url = reverse("service", args=[row.name])
        yield Hit(row.label, _("，").join((row.name, row.model.name)), url, row.tenant.mark, hue(row.tenant))


def _cards_of(user: User) -> Q:
    """Every card for staff; a tenant's people: where the tenant has replicas, as on the board."""
    tenant = tenant_of(user)
    if tenant is None:
        return Q()
    mine = Replica.objects.filter(ended_at=None, service__tenant_id=tenant).values_list("cards", flat=True)
    return Q(uuid__in={uuid for cards in mine for uuid in cards})


def cards(user: User, text: str) -> Iterator[Hit]:
    """By number; else by type or by the beginning of the UUID, as it is copied from a terminal."""
    wanted = Q(number=int(text[:9])) if text.isdecimal() else Q(uuid__istartswith=text) | Q(name__icontains=text)
    for row in Card.objects.filter(_cards_of(user), wanted).select_related("host")[: EACH + 1]:
        number = _("%(number)s 号卡") % {"number": f"{row.number:02d}" if row.number else "—"}
        yield Hit(number, _("，").join((row.host.name, row.name)), f"{reverse('board')}#card-{row.pk}")


def hosts(user: User, text: str) -> Iterator[Hit]:
    if not may(user, Act.SEE_HOSTS):
        return
    for row in Host.objects.filter(Q(name__icontains=text) | Q(rack__icontains=text))[: EACH + 1]:
        yield Hit(row.name, row.rack, reverse("host", args=[row.pk]))


def replicas(user: User, text: str) -> Iterator[Hit]:
    """By number (`12` or `#12`), or all of a service that is named exactly."""
    bare = text.removeprefix("#")
    wanted = Q(service__name__iexact=text) | Q(service__label__iexact=text)
    if bare.isdecimal():
        wanted |= Q(pk=int(bare[:18]))
    rows = own(Replica.objects.select_related("service__tenant", "host"), user, "service__tenant_id")
    for row in rows.filter(wanted, ended_at=None)[: EACH + 1]:
        name = _("%(service)s 的实例 #%(number)d") % {"service": row.service.label, "number": row.pk}
        url = reverse("service", args=[row.service.name])
        yield Hit(name, row.host.name, url, row.service.tenant.mark, hue(row.service.tenant))


def tenants(user: User, text: str) -> Iterator[Hit]:
    wanted = Q(name__icontains=text) | Q(slug__icontains=text) | Q(mark=text)
    for row in own(Tenant.objects.all(), user, "pk").filter(wanted)[: EACH + 1]:
        yield Hit(row.name, row.slug, reverse("tenant", args=[row.pk]), row.mark, hue(row))


def applications(user: User, text: str) -> Iterator[Hit]:
    wanted = Q(name__icontains=text) | Q(slug__icontains=text)
    for row in own(Application.objects.select_related("tenant"), user).filter(wanted)[: EACH + 1]:
        url = reverse("application", args=[row.pk])
        yield Hit(row.name, _("，").join((row.tenant.name, row.slug)), url, row.tenant.mark, hue(row.tenant))


def found(user: User, text: str) -> list[Kind]:
    """Kinds with at least one hit. A fixed number of queries, whatever is found."""
    finders: list[tuple[str, Callable[[User, str], Iterator[Hit]]]] = [
        (_("业务"), services),
        (pgettext("several", "公司"), tenants),
        (_("应用"), applications),
        (_("卡"), cards),
        (_("主机"), hosts),
        (_("实例"), replicas),
    ]
    kinds = [Kind(label, list(finder(user, text))) for label, finder in finders]
    return [kind for kind in kinds if kind.hits]


@allowed(Act.SEARCH)
def search(request: HttpRequest) -> HttpResponse:
    text = request.GET.get("q", "").strip()[:LONGEST]
    kinds = found(request.user, text) if text else []  # type: ignore[arg-type]
    return render(request, "search.html", {"kinds": kinds, "sought": text})


@allowed(Act.SEARCH)
def service_names(request: HttpRequest) -> HttpResponse:
    """Options of a box in which a service is typed (`service_field`), whatever the box is called."""
    typed = next(iter(request.GET.values()), "")[:LONGEST]
    return HttpResponse(suggestions(own(Service.objects.all(), request.user), typed))  # type: ignore[arg-type]

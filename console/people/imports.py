"""The addresses of imports of people and companies."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from console.accounts.access import allowed
from console.people.member_sheet import MemberSheet
from console.people.tenant_sheet import TenantSheet
from console.sheets import views


@allowed(MemberSheet.act)
def members(request: HttpRequest) -> HttpResponse:
    return views.page(request, MemberSheet(request.user))  # type: ignore[arg-type]


@allowed(MemberSheet.act)
def members_template(request: HttpRequest) -> HttpResponse:
    return views.template(request, MemberSheet(request.user))  # type: ignore[arg-type]


@allowed(MemberSheet.act)
def members_save(request: HttpRequest) -> HttpResponse:
    return views.save(request, MemberSheet(request.user))  # type: ignore[arg-type]


@allowed(TenantSheet.act)
def tenants(request: HttpRequest) -> HttpResponse:
    return views.page(request, TenantSheet(request.user))  # type: ignore[arg-type]


@allowed(TenantSheet.act)
def tenants_template(request: HttpRequest) -> HttpResponse:
    return views.template(request, TenantSheet(request.user))  # type: ignore[arg-type]


@allowed(TenantSheet.act)
def tenants_save(request: HttpRequest) -> HttpResponse:
    return views.save(request, TenantSheet(request.user))  # type: ignore[arg-type]

"""Who may do what: the one place that decides. Every view is wrapped by `allowed`, every query by `own`.

Staff of the centre (operator, approver, auditor, and a manager of the group) see everything; an account officer sees
every person and company; a tenant's people see their tenant. What a person may not see does not exist for them: 404,
never 403, for another tenant's objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, resolve_url
from django.utils import timezone

from console.accounts.models import Absence, Role, User

M = TypeVar("M", bound=Model)
View = Callable[..., HttpResponseBase]

EVERYONE = frozenset(Role)
#: Three officers apart: who makes accounts runs no cards, who runs cards makes no accounts, who audits changes nothing.
ANYBODY = EVERYONE - {Role.ACCOUNT_OFFICER}
STAFF = frozenset({Role.OPERATOR, Role.APPROVER, Role.AUDITOR})
#: Of no company.
CENTRE = STAFF | {Role.ACCOUNT_OFFICER}


#: Who names a deputy for an absence.
NAMERS = frozenset({Role.APPROVER, Role.TENANT_ADMIN})
#: Who of a company can stand in for its administrator.
STAND_INS = frozenset({Role.TENANT_MEMBER, Role.MANAGER})


class Act(StrEnum):
    """What a page or a button does. Several pages may share one act."""

    SEE_BOARD = "see_board"
    SEE_SERVICES = "see_services"
    SEE_DECISIONS = "see_decisions"
    SEE_ADVICE = "see_advice"
    APPROVE_ADVICE = "approve_advice"
    KEEP = "keep"
    SET_POOL_MODE = "set_pool_mode"
    ORDER = "order"
    DRAFT_SERVICE = "draft_service"
    REGISTER_SERVICE = "register_service"
    EDIT_SERVICE = "edit_service"
    SEE_MODELS = "see_models"
    EDIT_MODELS = "edit_models"
    SEE_REQUESTS = "see_requests"
    FILE_REQUESTS = "file_requests"
    DECIDE_REQUESTS = "decide_requests"
    DEPUTISE = "deputise"
    NAME_DEPUTY = "name_deputy"
    SEE_ABSENCE = "see_absence"
    SEE_HOSTS = "see_hosts"
    OPERATE_HOSTS = "operate_hosts"
    SEE_REPACK = "see_repack"
    REPACK = "repack"
    SEE_COSTS = "see_costs"
    SEE_BUDGETS = "see_budgets"
    EDIT_BUDGETS = "edit_budgets"
    SEE_QUOTAS = "see_quotas"
    EDIT_QUOTAS = "edit_quotas"
    SEE_PRICES = "see_prices"
    EDIT_PRICES = "edit_prices"
    APPROVE_PRICES = "approve_prices"
    SEE_CHECK_UP = "see_check_up"
    SEARCH = "search"
    OWN_ACCOUNT = "own_account"
    SEE_TENANTS = "see_tenants"
    EDIT_TENANTS = "edit_tenants"
    EDIT_APPLICATIONS = "edit_applications"
    SEE_MEMBERS = "see_members"
    EDIT_MEMBERS = "edit_members"
    SEE_KEYS = "see_keys"
    EDIT_KEYS = "edit_keys"
    SEE_POLICIES = "see_policies"
    EDIT_POLICIES = "edit_policies"
    SEE_AUDIT = "see_audit"


MAY: dict[Act, frozenset[Role]] = {
    Act.SEE_BOARD: ANYBODY,
    Act.SEE_SERVICES: ANYBODY,
    Act.SEE_DECISIONS: ANYBODY,
    Act.SEE_ADVICE: ANYBODY,
    Act.APPROVE_ADVICE: frozenset({Role.OPERATOR}),
    Act.SET_POOL_MODE: frozenset({Role.OPERATOR}),
    Act.KEEP: frozenset({Role.OPERATOR, Role.TENANT_ADMIN, Role.TENANT_MEMBER}),
    Act.ORDER: frozenset({Role.OPERATOR}),
    Act.DRAFT_SERVICE: frozenset({Role.OPERATOR, Role.APPROVER, Role.TENANT_ADMIN, Role.TENANT_MEMBER}),
    Act.REGISTER_SERVICE: frozenset({Role.OPERATOR}),
    Act.EDIT_SERVICE: frozenset({Role.OPERATOR, Role.TENANT_ADMIN}),
    Act.SEE_MODELS: STAFF,
    Act.EDIT_MODELS: frozenset({Role.OPERATOR}),
    Act.SEE_REQUESTS: ANYBODY,
    Act.FILE_REQUESTS: frozenset({Role.OPERATOR, Role.TENANT_ADMIN, Role.TENANT_MEMBER}),
    Act.DECIDE_REQUESTS: frozenset({Role.APPROVER}),
    Act.DEPUTISE: frozenset({Role.OPERATOR, Role.APPROVER}),
    Act.NAME_DEPUTY: NAMERS,
    Act.SEE_ABSENCE: EVERYONE,
    Act.SEE_HOSTS: STAFF,
    Act.OPERATE_HOSTS: frozenset({Role.OPERATOR}),
    Act.SEE_REPACK: STAFF,
    Act.REPACK: frozenset({Role.OPERATOR}),
    Act.SEE_COSTS: ANYBODY,
    Act.SEE_BUDGETS: ANYBODY,
    Act.EDIT_BUDGETS: frozenset({Role.OPERATOR}),
    Act.SEE_QUOTAS: ANYBODY,
    Act.EDIT_QUOTAS: frozenset({Role.OPERATOR}),
    Act.SEE_PRICES: STAFF,
    Act.EDIT_PRICES: frozenset({Role.OPERATOR}),
    Act.APPROVE_PRICES: frozenset({Role.APPROVER}),
    Act.SEE_CHECK_UP: ANYBODY,
    Act.SEARCH: ANYBODY,
    Act.OWN_ACCOUNT: EVERYONE,
    Act.SEE_TENANTS: EVERYONE,
    Act.EDIT_TENANTS: frozenset({Role.OPERATOR, Role.ACCOUNT_OFFICER}),
    Act.EDIT_APPLICATIONS: frozenset({Role.OPERATOR, Role.TENANT_ADMIN}),
    Act.SEE_MEMBERS: CENTRE | {Role.TENANT_ADMIN},
    Act.EDIT_MEMBERS: frozenset({Role.ACCOUNT_OFFICER, Role.TENANT_ADMIN}),
    Act.SEE_KEYS: STAFF | {Role.TENANT_ADMIN, Role.TENANT_MEMBER},
    Act.EDIT_KEYS: frozenset({Role.OPERATOR, Role.TENANT_ADMIN}),
    Act.SEE_POLICIES: STAFF,
    Act.EDIT_POLICIES: frozenset({Role.OPERATOR}),
    Act.SEE_AUDIT: frozenset({Role.AUDITOR}),
}


def may(user: Any, act: Act) -> bool:
    """False for who is not signed in, was deactivated, has a role that may not, or a password others know."""
    if not getattr(user, "is_authenticated", False) or not user.is_active:
        return False
    if user.must_change_password and act is not Act.OWN_ACCOUNT:
        return False
    return user.role in MAY[act] or (act is not Act.NAME_DEPUTY and is_one(user, MAY[act]))


def is_one(user: User, roles: Collection[Role]) -> bool:
    """Has the person one of the roles, as their own or while they stand in for their company's administrator?"""
    return user.role in roles or (Role.TENANT_ADMIN in roles and bool(stands_in(user)))


def stands_in(user: User) -> list[Absence]:
    """Absences of the company's administrators in which the person is the deputy now; asked once a request.

    A deputy names no deputy. An approver's deputy is another matter: `console.requests.rights`, request by request.
    """
    if user.role not in STAND_INS or user.tenant_id is None:
        return []
    if not hasattr(user, "_stands_in"):
        now = timezone.now()
        rows = Absence.objects.filter(deputy=user, starts_at__lte=now, until__gt=now, ended_at=None)
        of = {"person__is_active": True, "person__role": Role.TENANT_ADMIN, "person__tenant_id": user.tenant_id}
        user._stands_in = list(rows.filter(**of).select_related("person"))  # type: ignore[attr-defined]
    found: list[Absence] = user._stands_in  # type: ignore[attr-defined]
    return found


def tenant_of(user: User) -> int | None:
    """The tenant whose view the person has; None sees everything.

    A tenant role always has one (a constraint of the table); a manager without one is the group's.
    """
    return None if user.role in CENTRE else user.tenant_id


def own(rows: QuerySet[M], user: User, tenant: str = "tenant_id") -> QuerySet[M]:
    """The rows the person may see; `tenant` is the path to the owner's id. Look objects up in what this returns."""
    wanted = tenant_of(user)
    return rows if wanted is None else rows.filter(**{tenant: wanted})


def allowed(act: Act) -> Callable[[View], View]:
    """Wrap a view: sign in first, then the role must be allowed. `view.act` lets the test walk all URLs."""

    def wrap(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return sign_in(request)
            if request.user.must_change_password and act is not Act.OWN_ACCOUNT:
                return move(request, "password")
            if not may(request.user, act):
                raise PermissionDenied
            return view(request, *args, **kwargs)

        checked.act = act  # type: ignore[attr-defined]
        return checked

    return wrap


def sign_in(request: HttpRequest) -> HttpResponseBase:
    """To the login page and back here."""
    return move(request, "login", "?" + urlencode({"next": request.get_full_path()}, safe="/"))


def move(request: HttpRequest, name: str, query: str = "") -> HttpResponseBase:
    """To another page; a partial cannot be replaced by a form of another page, so it moves the whole page."""
    if "HX-Request" not in request.headers:
        return redirect(resolve_url(name) + query)
    response = HttpResponse(status=401)
    response.headers["HX-Redirect"] = resolve_url(name)
    return response

"""Whose page a button stands on: what an address changes is looked at before and after.

Most acts write by a conditional update, which no signal tells of; so the row that the address names is read twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Model

from console.accounts.models import Absence, ApiKey, Application, Tenant, User
from console.catalog.models import Model as CatalogModel
from console.catalog.models import Replica, Service
from console.fleet.models import Card, ForeignUse, Host, Pool, Quota
from console.jobs.models import Job
from console.journal.models import Advice, Notice
from console.money.models import CallBudget, CardBudget, Price
from console.policies.models import PolicyVersion
from console.repack.models import Move, Proposal
from console.requests.models import Request

#: Beginning of an address's name → (model, argument that says which); the longest that fits counts.
SUBJECTS: dict[str, tuple[type[Model], str]] = {
    "absence": (Absence, "pk"),
    "advice-approve": (Advice, "pk"),
    "advice-keep": (Notice, "pk"),
    "advice-mode": (Pool, "pk"),
    "application": (Application, "pk"),
    "board-cordon": (Card, "pk"),
    "call-budget": (CallBudget, "pk"),
    "card-budget": (CardBudget, "pk"),
    "host": (Host, "pk"),
    "host-foreign-end": (ForeignUse, "use"),
    "key": (ApiKey, "pk"),
    "member": (User, "pk"),
    "model": (CatalogModel, "pk"),
    "policy": (PolicyVersion, "pk"),
    "policy-preview": (Job, "pk"),
    "pool": (Pool, "pk"),
    "price": (Price, "pk"),
    "quota": (Quota, "pk"),
    "repack-approve": (Proposal, "pk"),
    "repack-cancel": (Job, "pk"),
    "repack-move": (Move, "pk"),
    "repack-search": (Pool, "pk"),
    "request": (Request, "pk"),
    "service": (Service, "name"),
    "service-replica": (Replica, "pk"),
    "tenant": (Tenant, "pk"),
}


def subject(url_name: str, arguments: Mapping[str, Any]) -> Model | None:
    """The row as it is now; None: the address names none, or it is not there."""
    fits = [start for start in SUBJECTS if url_name.startswith(start)]
    if not fits:
        return None
    model, name = SUBJECTS[max(fits, key=len)]
    if name not in arguments:
        return None
    field = "pk" if name == "use" else name
    return model._default_manager.filter(**{field: arguments[name]}).first()

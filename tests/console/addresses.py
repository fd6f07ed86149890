"""Every address of the console: how to ask for it, and whose object it shows. A new one is listed here, or tests fail.

`mine`: makes the arguments for an object of 置业公司, the company of the demo's tenant people, whose page every role
may open; `foreign`: for one of another company, which must be 404 to them. Pages without an object need no function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from console.accounts.models import Absence, ApiKey, Application, Tenant, User
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, ForeignUse, Host, Pool, Quota
from console.jobs.models import Job
from console.journal.models import Advice, Decision, Notice
from console.money.models import CallBudget, CardBudget, Price
from console.policies.models import PolicyVersion
from console.previews import jobs
from console.repack import searches
from console.repack.models import Move, Proposal
from console.requests import files
from console.requests.models import Request
from tests.console import tried

Arguments = Callable[[], dict[str, object]]
MINE, FOREIGN = "estate", "finance"
SERVICES = {MINE: "property-service", FOREIGN: "fund-qa"}


@dataclass(frozen=True)
class Address:
    mine: Arguments | None = None
    foreign: Arguments | None = None
    post: bool = False
    query: str = ""


def card(number: int) -> Arguments:
    return lambda: {"pk": Card.objects.get(number=number).pk}


def host(name: str) -> Arguments:
    return lambda: {"pk": Host.objects.get(name=name).pk}


def named(name: str) -> Arguments:
    """Services go by their name."""
    return lambda: {"name": name}


def foreign_use() -> dict[str, object]:
    """An entry in the foreign-use calendar of a host."""
    now = timezone.now()
    row, _ = ForeignUse.objects.get_or_create(
        host=Host.objects.get(name="gpu-01"),
        note="训练",
        defaults={"starts_at": now, "ends_at": now + timedelta(hours=1)},
    )
    return {"pk": row.host_id, "use": row.pk}


def tenant(slug: str) -> Arguments:
    return lambda: {"pk": Tenant.objects.get(slug=slug).pk}


def member(slug: str) -> Arguments:
    """Somebody of the company who is none of the demo's people: those sign in themselves."""

    def found() -> dict[str, object]:
        owner = Tenant.objects.get(slug=slug)
        somebody, _ = User.objects.get_or_create(username=f"someone-{slug}", defaults={"tenant": owner})
        return {"pk": somebody.pk}

    return found


def absence(slug: str) -> Arguments:
    def found() -> dict[str, object]:
        owner, now = Tenant.objects.get(slug=slug), timezone.now()
        away, _ = User.objects.get_or_create(
            username=f"away-{slug}", defaults={"tenant": owner, "role": "tenant_admin"}
        )
        deputy = User.objects.get(pk=member(slug)()["pk"])
        times = {"starts_at": now, "until": now + timedelta(days=1)}
        return {"pk": Absence.objects.get_or_create(person=away, deputy=deputy, defaults=times)[0].pk}

    return found


def application(slug: str) -> Arguments:
    def found() -> dict[str, object]:
        owner = Tenant.objects.get(slug=slug)
        row, _ = Application.objects.get_or_create(tenant=owner, slug="desk", defaults={"name": "工单系统"})
        return {"pk": row.pk}

    return found


def key(slug: str) -> Arguments:
    return lambda: {"pk": ApiKey.objects.get(tenant__slug=slug, name=f"demo {slug}").pk}


def copy(service: str) -> Arguments:
    """One replica of the service, and what a button asks of it."""
    return lambda: {"name": service, "pk": Replica.objects.filter(service__name=service).first().pk, "act": "stop"}


def a_model() -> dict[str, object]:
    return {"pk": Model.objects.get(slug="qwen3-8b-bf16").pk}


def decision(service: str) -> Arguments:
    def found() -> dict[str, object]:
        of = Service.objects.get(name=service)
        values = {"at": timezone.now(), "verb": "start", "reason": "hold", "numbers": {}}
        return {"pk": (Decision.objects.filter(service=of).first() or Decision.objects.create(service=of, **values)).pk}

    return found


def asked(service: str, state: str = "open") -> Arguments:
    """A request to keep it, by one of its company's people."""

    def found() -> dict[str, object]:
        of = Service.objects.get(name=service)
        people = User.objects.filter(username__in=("tenant_admin", "tenant_member", "manager"), tenant=of.tenant)
        values = {"tenant": of.tenant, "subject": of.label, "why": "评审", "asked_at": timezone.now()}
        values |= {"until": timezone.now() + timedelta(days=1), "wanted": {"service": of.name}}
        values |= {"asked_by": people.first() or User.objects.get(username="operator")}
        if state == "in_force":
            values |= {"first_by": User.objects.get(username="approver"), "first_at": timezone.now()}
        row, _ = Request.objects.get_or_create(service=of, kind="whitelist", state=state, defaults=values)
        return {"pk": row.pk}

    return found


def attached(service: str) -> Arguments:
    """A file of its request."""

    def found() -> dict[str, object]:
        row = Request.objects.get(pk=asked(service)()["pk"])
        name = f"{row.pk:032x}"
        files.folder().mkdir(exist_ok=True)
        (files.folder() / name).write_bytes(b"%PDF-1.7")
        values = {"name": "a.pdf", "kind": "application/pdf", "nbytes": 8, "digest": "0" * 64, "at": timezone.now()}
        one, _ = row.attachments.get_or_create(stored=name, defaults=values | {"by": row.asked_by})
        return {"pk": row.pk, "file": one.pk}

    return found


def of_request(**more: Any) -> Address:
    return Address(asked(SERVICES[MINE], **more), asked(SERVICES[FOREIGN], **more))


def an_advice(service: str) -> Arguments:
    """One that waits for a click."""

    def found() -> dict[str, object]:
        of, now = Replica.objects.filter(service__name=service).first(), timezone.now()
        pool = Card.objects.get(uuid=of.cards[0]).pool
        values = {"opened_at": now, "refreshed_at": now, "told": "awaiting_approval", "numbers": {"idle_s": 1300}}
        row, _ = Advice.objects.get_or_create(
            pool=pool,
            subject=f"replica {of.pk}",
            verb="drain",
            reason="idle",
            defaults={"service": of.service, "replica": of, **values},
        )
        return {"pk": row.pk}

    return found


def a_notice(service: str) -> Arguments:
    """Of a copy that is about to go."""

    def found() -> dict[str, object]:
        of, now = Replica.objects.filter(service__name=service).first(), timezone.now()
        numbers = {"at": now.timestamp() + 400, "held_mib": 20480, "noticed": 1}
        row, _ = Notice.objects.get_or_create(
            kind="reclaim",
            subject=f"replica {of.pk}",
            defaults={
                "service": of.service,
                "replica": of,
                "numbers": numbers,
                "opened_at": now,
                "refreshed_at": now,
            },
        )
        return {"pk": row.pk}

    return found


def card_budget() -> dict[str, object]:
    owner = Tenant.objects.get(slug=MINE)
    return {"pk": CardBudget.objects.get_or_create(tenant=owner, service=None, defaults={"limit_fen": 100})[0].pk}


def call_budget() -> dict[str, object]:
    owner = Tenant.objects.get(slug=MINE)
    return {"pk": CallBudget.objects.get_or_create(tenant=owner, key=None, defaults={"limit": 100})[0].pk}


def quota(slug: str = MINE) -> dict[str, object]:
    """Of the pool in which its company's service lives."""
    owner, pool = Tenant.objects.get(slug=slug), Pool.objects.get(name="shared-middle")
    values = {"guaranteed_mib": 40_960, "borrowable_mib": 81_920}
    return {"pk": Quota.objects.get_or_create(tenant=owner, pool=pool, defaults=values)[0].pk}


def price() -> dict[str, object]:
    """One that waits for a second person."""
    values = {"card_class": "a10", "fen_h": 99_999, "needs_second": True, "approved_at": None}
    row = Price.objects.filter(**values).first() or Price.objects.create(**values, starts_at=timezone.now())
    return {"pk": row.pk}


def service() -> Address:
    return Address(named(SERVICES[MINE]), named(SERVICES[FOREIGN]))


def tile() -> Address:
    """Card 10 has a replica of the company, card 17 has none."""
    return Address(card(10), card(17))


def proposal() -> dict[str, object]:
    """An open repack proposal of one move."""
    row = Proposal.objects.filter(closed_at=None).first()
    if row is None:
        now = timezone.now()
        sizes = {"free_mib": 100, "stranded_before_mib": 35, "stranded_after_mib": 12}
        row = Proposal.objects.create(
            pool=Pool.objects.first(), at=now, until=now + timedelta(hours=30), empty_before=0, empty_after=1, **sizes
        )
        copy = Replica.objects.filter(service__name=SERVICES[MINE]).first()
        where = {"source": copy.cards, "target": ["GPU-gone"], "after_pct": 12.0}
        Move.objects.create(proposal=row, number=1, service=copy.service, replica=copy, **where)
    return {"pk": row.pk}


def move() -> dict[str, object]:
    return {"pk": Move.objects.get(proposal=proposal()["pk"]).pk}


def search_job() -> dict[str, object]:
    pool = Pool.objects.first()
    searches.ask(pool, None)
    return {"pk": Job.objects.get(arguments__pool=pool.name, state="waiting").pk}


def preview() -> dict[str, object]:
    """One of the group's policy, with its result."""
    row = Job.objects.filter(kind=jobs.KIND).first()
    return {"pk": (row or tried.job(User.objects.get(username="operator"))).pk}


def version(waits: bool) -> Arguments:
    """One version of the group's policy, in force or still waiting."""

    def found() -> dict[str, object]:
        now = timezone.now()
        values = {"changes": {"grace_s": [None, 60]}, "values": {"grace_s": 60}, "note": "试", "by_name": "op"}
        times = {"at": now, "effective_at": now, "applied_at": None if waits else now}
        return {"pk": PolicyVersion.objects.create(layer="group", **values, **times).pk}

    return found


ADDRESSES: dict[str, Address] = {
    "audit": Address(),
    "audit-csv": Address(),
    "audit-xlsx": Address(),
    "policies": Address(),
    "policy-review": Address(post=True),
    "policy-save": Address(post=True),
    "policy-versions": Address(),
    "policy-roll-back": Address(version(waits=False), post=True),
    "policy-withdraw": Address(version(waits=True), post=True),
    "policy-proposal": Address(),
    "policy-previews": Address(),
    "policy-preview-ask": Address(post=True),
    "policy-preview": Address(preview),
    "policy-preview-csv": Address(preview),
    "policy-preview-cancel": Address(preview, post=True),
    "board": Address(),
    "board-hosts": Address(),
    "board-numbers": Address(),
    "board-tile": tile(),
    "board-drawer": tile(),
    "board-failure": tile(),
    "board-cordon": tile(),
    "services": Address(),
    "services-export": Address(),
    "services-import": Address(),
    "services-import-write": Address(post=True),
    "services-bulk": Address(),
    "service-new": Address(),
    "service-claim": Address(),
    "service-answer": Address(),
    "service-read": Address(post=True),
    "service-register": Address(),
    "service": service(),
    "service-now": service(),
    "service-preload": service(),
    "service-preloads": replace(service(), post=True),
    "service-prefetch": replace(service(), post=True),
    "service-stop": service(),
    "service-edit": service(),
    "service-edit-answer": service(),
    "service-whitelist": service(),
    "service-whitelist-end": service(),
    "service-replica": Address(copy(SERVICES[MINE]), copy(SERVICES[FOREIGN])),
    "models": Address(),
    "model": Address(a_model),
    "model-edit": Address(a_model),
    "model-read": Address(a_model),
    "decisions": Address(),
    "advice": Address(),
    "advice-badge": Address(),
    "advice-approve": Address(an_advice(SERVICES[MINE]), an_advice(SERVICES[FOREIGN])),
    "advice-mode": Address(lambda: {"pk": Pool.objects.first().pk}),
    "advice-keep": Address(a_notice(SERVICES[MINE]), a_notice(SERVICES[FOREIGN])),
    "timeline": Address(),
    "story": Address(decision(SERVICES[MINE]), decision(SERVICES[FOREIGN])),
    "check-up": Address(),
    "costs": Address(),
    "costs-csv": Address(),
    "card-hours": Address(card(10)),
    "budgets": Address(),
    "card-budget-new": Address(),
    "card-budget-end": Address(card_budget),
    "call-budget-new": Address(),
    "call-budget-end": Address(call_budget),
    "prices": Address(),
    "price-new": Address(),
    "price-approve": Address(price),
    "pool-owner": Address(lambda: {"pk": Pool.objects.get(name="shared-large").pk}),
    "hosts": Address(),
    "host": Address(host("gpu-01")),
    "host-cordon": Address(host("gpu-01")),
    "host-maintenance": Address(host("gpu-01")),
    "host-maintenance-end": Address(host("gpu-01")),
    "host-storage": Address(host("gpu-01")),
    "host-gone": Address(host("gpu-01")),
    "host-foreign": Address(host("gpu-01")),
    "host-foreign-end": Address(foreign_use),
    "repack": Address(),
    "repack-search": Address(lambda: {"pk": Pool.objects.last().pk}, post=True),
    "repack-cancel": Address(search_job, post=True),
    "repack-approve": Address(proposal, post=True),
    "repack-move-approve": Address(move, post=True),
    "repack-move-skip": Address(move, post=True),
    "requests": Address(),
    "requests-mine": Address(),
    "requests-review": Address(),
    "requests-badge": Address(),
    "request-choose": Address(),
    "request-new": Address(lambda: {"kind": "whitelist"}),
    "request": of_request(),
    "request-weighed": of_request(),
    "request-decision": replace(of_request(), post=True),
    "request-act": replace(of_request(), post=True),
    "request-end": replace(of_request(state="in_force"), post=True),
    "request-absences": Address(),
    "absence-end": Address(absence(MINE), absence(FOREIGN)),
    "request-draft": Address(lambda: {"kind": "whitelist"}, post=True),
    "request-attach": replace(of_request(), post=True),
    "request-file": Address(attached(SERVICES[MINE]), attached(SERVICES[FOREIGN])),
    "request-detach": Address(attached(SERVICES[MINE]), attached(SERVICES[FOREIGN]), post=True),
    "request-print": of_request(),
    "request-key": replace(of_request(), post=True),
    "request-again": replace(of_request(), post=True),
    "search": Address(query="?q=gpu"),
    "search-services": Address(query="?service=service"),
    "tenants": Address(),
    "tenant-new": Address(),
    "tenant-import": Address(),
    "tenant-import-template": Address(),
    "tenant-import-save": Address(post=True),
    "tenant": Address(tenant(MINE), tenant(FOREIGN)),
    "tenant-edit": Address(tenant(MINE)),
    "quotas": Address(),
    "quotas-csv": Address(),
    "quota-new": Address(),
    "quota-answer": Address(),
    "quota-edit": Address(quota),
    "quota-end": Address(quota),
    "application-new": Address(),
    "application": Address(application(MINE), application(FOREIGN)),
    "application-edit": Address(application(MINE), application(FOREIGN)),
    "application-remove": Address(application(MINE), application(FOREIGN)),
    "members": Address(),
    "member-new": Address(),
    "member-import": Address(),
    "member-import-template": Address(),
    "member-import-save": Address(post=True),
    "member": Address(member(MINE), member(FOREIGN)),
    "member-access": Address(member(MINE), member(FOREIGN)),
    "member-password": Address(member(MINE), member(FOREIGN)),
    "keys": Address(),
    "key-new": Address(),
    "key-rotate": Address(key(MINE), key(FOREIGN)),
    "key-application": Address(key(MINE), key(FOREIGN)),
    "key-revoke": Address(key(MINE), key(FOREIGN)),
    "password": Address(),
}
#: Signed messages instead of somebody signed in.
SIGNED = {"api-request-decision"}
OPEN = {"login", "logout", "language", "healthz"}


def patterns() -> list[URLPattern]:
    """Every address that wants somebody signed in."""
    found: list[URLPattern] = []
    for one in get_resolver().url_patterns:
        assert not isinstance(one, URLResolver), "walk nested addresses too"
        if one.name not in OPEN | SIGNED:
            found.append(one)
    return found


def names() -> list[str]:
    return [str(pattern.name) for pattern in patterns()]


def url(name: str, arguments: Arguments | None = None) -> str:
    """The address of `mine`, or of what `arguments` makes."""
    address = ADDRESSES[name]
    made = (arguments or address.mine or dict)()
    return reverse(name, kwargs=made) + address.query

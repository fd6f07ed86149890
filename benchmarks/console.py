"""Every page of the console on a large site: `python -m benchmarks.console [--quick] [--strict] [--json FILE]`.

300 cards, 1,000 services, 900 replicas, 20 tenants and 50,000 decisions in a SQLite file of its own. Each address of
`urls.py` is asked for through Django's test client as an operator and as a tenant's member. The time of an answer is
the processor time of the thread that made it: there is no network and no other process in it, and neighbours on the
machine do not count; the wall time stands beside it.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks import frame

GOAL_MS = 100.0
ROUNDS, ROUNDS_QUICK = 40, 4
BUSY = 3  # one card in so many works
HEARD_EVERY = 5  # addresses: within the 5 s after which a card's figures are old
#: Who asks; the last two only for what nobody before them may see.
PEOPLE = ("operator", "tenant_member", "auditor", "account_officer")
#: Addresses that end a session, or show nothing of ours.
#: Buttons that only take a form, and what neither an operator nor a member may open.
BUTTONS = {
    "policy-review", "policy-save", "policy-roll-back", "policy-withdraw", "policy-preview-ask",
    "policy-preview-cancel", "repack-search", "repack-cancel",
    "repack-approve", "repack-move-approve", "repack-move-skip", "price-approve",
    "request-decision", "request-act", "request-end", "request-again", "request-key", "api-request-decision",
    "request-draft", "request-attach", "request-detach",
    "request-absences", "service-read", "services-import-write", "member-import-save", "tenant-import-save",
}  # fmt: skip
#: Up to 100,000 lines: long, and expected to be.
FILES = {"audit-csv", "audit-xlsx", "services-export", "request-file", "policy-preview-csv"}
LEFT_OUT = frozenset({"logout", "language", "healthz"} | BUTTONS | FILES)
#: What is asked beside the bare address: the answers people really ask for.
ALSO = {
    "board": ("?dense=0", "?state=change", "?q=gpu-1", "?wall=1"),
    "costs": ("?by=application",),
    "audit": ("?q=gpu-1", "?act=member"),
    "timeline": ("?refused=1", "?reason=room", "?period=24h"),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """One address as one person, times in ms."""

    who: str
    address: str
    status: int
    queries: int
    size: int
    cpu: list[float]
    wall: list[float]


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main(argv: list[str] | None = None) -> int:
    parser = frame.parser("console", __doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="no other addresses than those that match")
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="gongka-console-") as folder:
        try:
            set_up(Path(folder), asked)
        except Exception as error:  # whatever it is: say it and end with 2
            print(f"could not be set up: {error!r}", file=sys.stderr)
            return 2
        found = list(measure(ROUNDS_QUICK if asked.quick else ROUNDS, asked.only))
    return frame.finish("console", rows(found), notes(found, asked), asked)


def set_up(folder: Path, asked: argparse.Namespace) -> None:
    """A database of its own, filled; Redis is not there, as on a page asked for while it is down."""
    os.environ |= {
        "GONGKA_HOME": str(folder),
        "DATABASE_URL": f"sqlite:///{folder / 'console.sqlite3'}",
        "REDIS_URL": f"unix://{folder / 'nobody.sock'}",
        "DJANGO_SETTINGS_MODULE": "console.settings",
    }
    import django

    django.setup()
    logging.disable(logging.CRITICAL)  # a 404 is an answer here, not a complaint
    from django.conf import settings
    from django.core.management import call_command

    from benchmarks.console_farm import Size, make

    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)
    make(Size(decisions=10_000) if asked.quick else Size(), asked.seed)


def addresses(only: str = "") -> Iterator[str]:
    """Every address of urls.py with an object where it wants one; `only`: those that this expression is found in."""
    from django.urls import URLPattern, get_resolver, reverse

    objects = _objects()
    for pattern in get_resolver().url_patterns:
        if isinstance(pattern, URLPattern) and pattern.name and pattern.name not in LEFT_OUT:
            wanted = pattern.pattern.converters
            url = reverse(pattern.name, kwargs={name: objects(pattern.name, name) for name in wanted})
            asked = (url, *(url + query for query in ALSO.get(pattern.name, ())))
            yield from (one for one in asked if re.search(only, one))


def _objects() -> Callable[[str, str], Any]:
    """(name of the address, its argument) → an object of the first tenant, which the member may see."""
    from django.utils import timezone

    from console.accounts.models import Absence, ApiKey, Application, Tenant, User
    from console.catalog.models import Replica, Service
    from console.fleet.models import Card, ForeignUse, Host, Quota
    from console.journal.models import Advice, Decision, Notice
    from console.money.models import CallBudget, CardBudget
    from console.requests.models import Request

    own = Tenant.objects.order_by("ordinal")[0]
    replica = Replica.objects.filter(service__tenant=own, phase="ready").select_related("service", "host")[0]
    now = timezone.now()
    use = ForeignUse.objects.create(host=replica.host, starts_at=now, ends_at=now + timedelta(hours=1))
    asked = Request.objects.create(
        kind="whitelist", service=replica.service, tenant=own, subject=replica.service.label, why="bench",
        until=now + timedelta(days=1), asked_by=User.objects.filter(tenant=own)[0], asked_at=now,
    )  # fmt: skip
    made = [Application(tenant=t, slug=f"a{n}", name=f"应用{n}") for t in Tenant.objects.all() for n in range(10)]
    application = Application.objects.bulk_create(made)[0]
    key = ApiKey.objects.create(tenant=own, application=application, name="bench", prefix="gk_bench", digest="0" * 64)
    stands = {"service": replica.service, "replica": replica, "opened_at": now, "refreshed_at": now}
    pool = Card.objects.get(uuid=replica.cards[0]).pool
    advised = Advice.objects.create(
        pool=pool, subject=f"replica {replica.pk}", verb="drain", reason="idle", told="awaiting_approval", **stands
    )
    numbers = {"at": now.timestamp() + 400, "held_mib": 20480, "noticed": 1}
    noticed = Notice.objects.create(kind="reclaim", subject=f"replica {replica.pk}", numbers=numbers, **stands)
    quota = Quota.objects.create(tenant=own, pool=pool, guaranteed_mib=81_920, borrowable_mib=163_840)
    pair = User.objects.filter(tenant=own).order_by("pk")[:2]
    absent = Absence.objects.create(person=pair[0], deputy=pair[1], starts_at=now, until=now + timedelta(days=1))
    by_address = {
        "absence-end": absent.pk,
        "advice-approve": advised.pk,
        "advice-keep": noticed.pk,
        "advice-mode": pool.pk,
        "card-budget-end": CardBudget.objects.create(tenant=own, limit_fen=10_000_000).pk,
        "call-budget-end": CallBudget.objects.create(tenant=own, limit=1_000_000).pk,
        "pool-owner": pool.pk,
        "policy-preview": _preview(replica.service.name).pk,
        "quota-edit": quota.pk,
        "quota-end": quota.pk,
    }
    by_prefix: dict[str, Any] = {
        "model": replica.service.model_id,
        "board": Card.objects.get(uuid=replica.cards[0]).pk,
        "story": Decision.objects.filter(service__tenant=own)[0].pk,
        "host": Host.objects.get(pk=replica.host_id).pk,
        "service": replica.pk,
        "tenant": own.pk,
        "member": User.objects.filter(tenant=own)[0].pk,
        "key": key.pk,
        "application": Application.objects.filter(tenant=own)[0].pk,
        "request": asked.pk,
    }
    by_argument: dict[str, Any] = {"name": replica.service.name, "act": "drain", "use": use.pk, "kind": "whitelist"}

    def found(address: str, argument: str) -> Any:
        if argument == "pk" and address in by_address:
            return by_address[address]
        if argument in by_argument:
            return by_argument[argument]
        return by_prefix.get(address.split("-")[0]) or Service.objects.filter(tenant=own)[0].pk

    return found


def _preview(service: str) -> Any:
    """With a result in which every service and company is there."""
    from dataclasses import asdict

    from console.accounts.models import Tenant, User
    from console.catalog.models import Service
    from console.jobs.models import Job
    from scheduler.simulation.compare import Comparison, Figures, Side

    services, tenants = (of.objects.values_list(name, flat=True) for of, name in ((Service, "name"), (Tenant, "slug")))
    sides = [
        Side(one, {"online": one}, dict.fromkeys(tenants, one), dict.fromkeys(services, one), 0)
        for one in (Figures(calls=9, cold_starts=4), Figures(calls=9, cold_starts=2))
    ]
    arguments = {"by": User.objects.get(username="operator").pk, "layer": "service", "subject": service}
    arguments |= {"changes": {"grace_s": 60}, "until": "2026-11-30T08:00:00+00:00", "seed": 7}
    about = {"since": 1.0, "until": 2.0, "calls": 9, "events": 9, "bunched": 0, "hours": 9, "took_s": 1.0}
    found = asdict(Comparison(*sides)) | about
    return Job.objects.create(kind="policy-preview", state="done", arguments=arguments, result=found)


def asked_by(urls: list[str]) -> dict[str, list[str]]:
    """Person → the addresses that are asked for."""
    from django.urls import resolve

    from console.accounts.access import may
    from console.accounts.models import User

    found: dict[str, list[str]] = {}
    for who in PEOPLE:
        user = User.objects.get(username=who)
        seen = {url for theirs in found.values() for url in theirs} if who in PEOPLE[2:] else set()
        acts: dict[str, Any] = {url: getattr(resolve(url.split("?")[0]).func, "act", None) for url in urls}
        found[who] = [url for url in urls if url not in seen and (acts[url] is None or may(user, acts[url]))]
    return found


def report(at: datetime) -> None:
    """Every host and card was heard of just now: a silent farm is frozen, and its pages have nothing to work out.

    One card in three works: it and its ready copies have other figures each time, and its services were just called.
    """
    from django.db.models import F

    from console.catalog.models import Replica, Service
    from console.fleet.models import Card, Host

    Host.objects.update(seen_at=at, cards_at=at)
    Card.objects.update(sampled_at=at)
    Card.objects.alias(one=F("pk") % BUSY).filter(one=0).update(util_pct=(F("util_pct") + 7) % 97)
    copies = Replica.objects.alias(one=F("pk") % BUSY).filter(one=0, phase="ready")
    copies.update(kv_used_pct=(F("kv_used_pct") + 3) % 90, last_call_at=at)
    Service.objects.alias(one=F("pk") % BUSY).filter(one=0, replicas__phase="ready").update(last_call_at=at)


def measure(rounds: int, only: str = "") -> Iterator[Measured]:
    """Round by round through all addresses, so that no page has the machine's quiet minute for itself."""
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext

    from console import garbage
    from console.accounts.models import User

    for who, urls in asked_by(list(addresses(only))).items():
        client = Client(raise_request_exception=False)
        client.force_login(User.objects.get(username=who))
        first = {}
        for i, url in enumerate(urls):
            if i % HEARD_EVERY == 0:
                report(datetime.now(UTC))
            with CaptureQueriesContext(connection) as asked:
                answer = client.get(url)
            first[url] = (answer.status_code, len(asked), len(answer.content))
        garbage.settle(garbage.PAGES)  # as the web process does
        times: dict[str, list[tuple[float, float]]] = {url: [] for url in urls}
        for _ in range(rounds):
            for i, url in enumerate(urls):
                if i % HEARD_EVERY == 0:
                    report(datetime.now(UTC))
                wall, cpu = time.perf_counter(), time.thread_time()
                client.get(url)
                times[url].append((1000 * (time.thread_time() - cpu), 1000 * (time.perf_counter() - wall)))
        for url in urls:
            yield Measured(who, url, *first[url], [c for c, _ in times[url]], [w for _, w in times[url]])


def rows(found: list[Measured]) -> list[frame.Row]:
    """One row an address and person: p95 against the goal."""
    result = []
    for one in found:
        measure = f"{one.who} {one.address} ({one.status}, {one.queries} queries, {one.size / 1024:,.0f} KiB)"
        peers = {"p50": round(statistics.median(one.cpu), 1), "wall p95": round(quantile(one.wall, 0.95), 1)}
        result.append(frame.at_most(measure, quantile(one.cpu, 0.95), "ms p95", GOAL_MS, peers=peers))
    broken = sum(one.status >= 500 for one in found)
    return [*result, frame.at_most("addresses that broke", broken, "", 0)]


def notes(found: list[Measured], asked: argparse.Namespace) -> list[str]:
    if not found:
        return ["no address matches"]
    worst = max(found, key=lambda one: quantile(one.cpu, 0.95))
    said = [
        f"slowest: {worst.address} as {worst.who}",
        "time: processor time of the answering thread; `wall p95` is what a clock said, neighbours included",
        "`peers` holds our own p50 and wall time here: nobody else's console shows this farm",
        f"one card in {BUSY} and its copies have other figures every {HEARD_EVERY} addresses; what stands still may be"
        " taken from memory where the database says the same as before",
    ]
    if asked.only:
        said.append(f"left out: every address that {asked.only!r} does not match")
    if asked.quick:
        said.append(f"quick: 10,000 decisions instead of 50,000, {ROUNDS_QUICK} rounds instead of {ROUNDS}")
    return said


if __name__ == "__main__":
    raise SystemExit(main())

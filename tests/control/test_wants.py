"""What hosts and gateways are told: claims as engine numbers, audiences, refusals in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from kombu import serialization

from console.accounts.models import Tenant
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Host
from scheduler.decision import Code, Refusal
from scheduler.policy import DEFAULT
from tests import factories
from workers.app import READY_JSON
from workers.control import routes, wants, words
from workers.messages import HostWant, read_want

pytestmark = pytest.mark.django_db


def test_a_claim_becomes_engine_numbers() -> None:
    service = factories.service(kv_cap_mib=8192)
    spec = wants.engine(service, 6000, DEFAULT)
    assert spec.fixed_mib == 14541 + 1024 + 600
    assert spec.kv_granted_mib == 6000
    per_call_mib = 57344 * DEFAULT.typical_tokens / 2**20
    assert spec.max_num_seqs == min(service.max_num_seqs, int(6000 / per_call_mib))


@pytest.mark.parametrize(("granted", "declared", "seqs"), [(1, 16, 1), (10**6, 16, 16), (1120, 64, 10)])
def test_concurrency_is_what_the_granted_kv_holds(granted: int, declared: int, seqs: int) -> None:
    service = factories.service(max_num_seqs=declared)
    assert wants.engine(service, granted, DEFAULT).max_num_seqs == seqs


def test_a_model_without_kv_keeps_what_is_declared() -> None:
    service = factories.service(max_num_seqs=9)
    type(service.model).objects.update(kv_bytes_per_token=0)
    assert wants.engine(service, 0, DEFAULT).max_num_seqs == 9


def test_a_want_is_whole_survives_the_wire_and_leaves_the_ended_out() -> None:
    host = factories.host("h1")
    card = host.cards.first()
    assert card is not None
    service = factories.service()
    first = factories.replica(service, card)
    factories.replica(service, card, ended_at=timezone.now())
    (want,) = wants.whole([host], DEFAULT, 5.0)
    assert [replica.id for replica in want.replicas] == [first.pk]
    assert read_want(told(want)) == want


def told(want: HostWant) -> dict[str, Any]:
    """The keyword arguments as a host unpacks them."""
    kind, encoding, payload = serialization.dumps(((), wants.packed(want), {}), serializer=READY_JSON)
    accept = serialization.prepare_accept_content(["json"])
    _args, kwargs, _embedded = serialization.loads(payload, kind, encoding, accept=accept)
    return dict(kwargs)


def test_what_is_wanted_is_packed_anew_where_it_changes_and_nowhere_else() -> None:
    host = factories.host("h1")
    card = Card.objects.filter(host=host)[0]
    rows = [factories.replica(factories.service(f"s{i}"), card) for i in range(2)]
    (before,) = wants.whole([host], DEFAULT, 5.0)
    first = wants.packed(before)
    Replica.objects.filter(pk=rows[0].pk).update(running=9, kv_used_pct=50.0, measured_mib=17)
    (again,) = wants.whole([host], DEFAULT, 6.0)
    assert again.replicas == before.replicas
    assert wants.packed(again)["replicas"] is first["replicas"]
    Replica.objects.filter(pk=rows[0].pk).update(want="stopped", force=True)
    Service.objects.filter(name="s1").update(max_num_seqs=3)
    (after,) = wants.whole([host], replace(DEFAULT, engine_stall_s=77), 7.0)
    assert [(r.want, r.force, r.stall_s) for r in after.replicas] == [("stopped", True, 77), ("ready", False, 77)]
    assert after.replicas[1].engine.max_num_seqs == 3
    assert read_want(told(after)) == after


def test_silence_parts_hosts() -> None:
    now = timezone.now()
    factories.host("h1", seen_at=now)
    factories.host("h2", seen_at=now - timedelta(seconds=wants.SILENT_S + 1))
    factories.host("h3", seen_at=None)
    assert [host.name for host in wants.live_hosts(now.timestamp())] == ["h1"]
    assert wants.silent_hosts(now.timestamp()) == ["h2", "h3"]


def audience(service: Service) -> list[str]:
    """As the routes say it."""
    (row,) = routes.ROWS.of(Service.objects.filter(pk=service.pk))
    return routes._audience(row, routes._named()[service.pk])


def test_audiences() -> None:
    service = factories.service()
    other: Tenant = factories.tenant("nengyuan")
    assert audience(service) == ["wuliu"]
    service.audience_tenants.add(other)
    assert audience(service) == ["wuliu"], "named, but not asked for"
    Service.objects.update(audience=Service.Audience.NAMED)
    assert audience(service) == ["nengyuan", "wuliu"]
    Service.objects.update(audience=Service.Audience.GROUP)
    assert audience(service) == ["*"]


def test_revisions_go_up_within_and_across_leaders() -> None:
    first, second = routes.Routes(3), routes.Routes(4)
    made = [first.next(1, {}, {}, 5.0, False), first.next(2, {}, {}, 6.0, False), second.next(2, {}, {}, 7.0, False)]
    revisions = [blob[0] for blob in made if blob]
    assert revisions == sorted(set(revisions))
    assert second.next(2, {}, {}, 9.0, False) is None, "nothing new"
    assert second.next(2, {}, {}, 9.0, True) is not None, "asked again: Redis lost it"


def test_doors_of_hosts() -> None:
    factories.host("h1", door_url="http://127.0.0.1:7101")
    factories.host("h2")
    assert routes.hosts() == {"h1": {"door": "http://127.0.0.1:7101"}}
    assert Host.objects.count() == 2
    assert Card.objects.count() == 4


@pytest.mark.parametrize("code", list(Code))
def test_every_refusal_has_words_in_both_languages(code: Code) -> None:
    told = words.refusal(Refusal(code))
    if Refusal(code).passing:
        assert told is None
        return
    assert told is not None
    assert told["zh"]
    assert told["en"]
    assert told["retry_after_s"] > 0


def test_a_refusal_carries_its_numbers() -> None:
    told = words.refusal(Refusal(Code.SHORT_OF_MEMORY, {"short_mib": 2310, "retry_after_s": 12.4}))
    assert told is not None
    assert "2310 MiB" in told["zh"]
    assert told["retry_after_s"] == 12
    assert words.refusal(None) is None
    assert words.advice("not_managed")["code"] == "not_managed"

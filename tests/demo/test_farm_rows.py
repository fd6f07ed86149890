"""The demo farm's rows: made once, never trodden on again, and every service of it has a place."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.management import call_command

from console import state
from console.accounts.keys import digest_of
from console.accounts.models import ApiKey, Role, Tenant, User
from console.catalog import catalogue
from console.catalog.models import Service
from console.fleet.models import Card, Host, Pool
from demo import applications, farm
from demo.services import SERVICES
from scheduler.decision import Verb
from scheduler.memory import book_of, start_grant
from scheduler.planner import plan
from scheduler.world import Demand, Phase, Replica, Want, World

pytestmark = pytest.mark.django_db
NOW = 1_800_000_000.0
CHECKS = (farm.CHECK_STREAM, farm.CHECK_PLAIN)


@pytest.fixture(autouse=True)
def _cheap_passwords(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def kept(home: Path, name: str) -> dict[str, str]:
    return json.loads((home / name).read_text())


def test_it_is_the_farm_we_promise(tmp_path):
    made = farm.make(tmp_path)
    assert made == {"tenant": 5, "user": 7, "apikey": 6, "host": 4, "card": 32, "model": 23, "service": 24}
    assert {user.role for user in User.objects.all()} == set(Role.values)
    assert len(set(Card.objects.values_list("card_class", flat=True))) == 3
    assert Pool.objects.count() == 3
    assert len({tenant.mark for tenant in Tenant.objects.all()}) == 5
    assert len(set(Host.objects.values_list("rack", flat=True))) == 2


def test_a_second_time_changes_nothing_that_is_there(tmp_path):
    farm.make(tmp_path)
    texts = {name: kept(tmp_path, name) for name in (farm.LOGINS, farm.KEYS)}
    tokens = dict(Host.objects.values_list("name", "door_token"))
    Service.objects.filter(name="hotline-qa").update(priority=11)
    farm.make(tmp_path)
    assert {name: kept(tmp_path, name) for name in texts} == texts
    assert dict(Host.objects.values_list("name", "door_token")) == tokens
    assert Service.objects.get(name="hotline-qa").priority == 11


def test_secrets_are_private_and_work(tmp_path):
    farm.make(tmp_path)
    for name in (farm.LOGINS, farm.KEYS):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    logins, keys = kept(tmp_path, farm.LOGINS), kept(tmp_path, farm.KEYS)
    assert all(User.objects.get(username=name).check_password(password) for name, password in logins.items())
    assert {digest_of(key) for key in keys.values()} == set(ApiKey.objects.values_list("digest", flat=True))
    assert set(keys) == {slug for slug, _, _ in farm.TENANTS} | {"traffic"}


def test_lost_secrets_are_made_anew_and_the_old_ones_end(tmp_path):
    farm.make(tmp_path)
    old = kept(tmp_path, farm.KEYS)["traffic"]
    for name in (farm.LOGINS, farm.KEYS):
        (tmp_path / name).unlink()
    farm.make(tmp_path)
    assert ApiKey.objects.count() == 6
    assert not ApiKey.objects.filter(digest=digest_of(old)).exists()
    assert User.objects.get(username="operator").check_password(kept(tmp_path, farm.LOGINS)["operator"])


def test_the_command_keeps_secrets_off_its_output(tmp_path, settings, capsys):
    settings.HOME = tmp_path
    call_command("demo_farm")
    said = capsys.readouterr().out
    assert "service 24" in said
    secrets = [*kept(tmp_path, farm.KEYS).values(), *kept(tmp_path, farm.LOGINS).values()]
    assert not any(secret in said for secret in secrets)


def world(home: Path) -> World:
    """The farm as its hosts first report: all cards empty."""
    farm.make(home)
    for card in Card.objects.all():
        card.free_mib = card.total_mib - card.reserved_mib
        card.save()
    Host.objects.update(seen_at=state.moment(NOW), memory_mib=512 * 1024, bandwidth_mib_s=2000)
    return state.world(NOW)


def seen(here: World, now: float) -> World:
    """Every host has just reported."""
    return replace(here, hosts={name: replace(host, seen_at=now) for name, host in here.hosts.items()})


def used_mib(here: World, replicas: dict[int, Replica], uuid: str) -> int:
    claims = [(here.services[one.service].claim, one) for one in replicas.values() if uuid in one.cards]
    return sum(claim.fixed_mib - claim.headroom_mib + one.kv_granted_mib for claim, one in claims)


def settled(here: World, now: float, ticks: int = 60) -> World:
    """Ticks of the real planner; what it starts is ready at the next one."""
    for _ in range(ticks):
        here = seen(here, now)
        starts = [one for one in plan(here, state.policy(), now) if one.verb is Verb.START and one.refusal is None]
        if not starts:
            return here
        replicas = dict(here.replicas)
        for one in starts:
            pk = len(replicas) + 1
            replicas[pk] = Replica(
                pk,
                one.service,
                one.cards,
                Want.READY,
                Phase.READY,
                kv_granted_mib=one.kv_granted_mib,
                since=now,
                want_since=now,
                loaded_at=now,
                last_call_at=now,
                in_flight=0,
            )
        cards = {
            uuid: replace(card, unavailable_mib=card.driver_reserved_mib + used_mib(here, replicas, uuid))
            for uuid, card in here.cards.items()
        }
        here, now = replace(here, replicas=replicas, cards=cards), now + 1
    raise AssertionError("the planner did not come to rest")


def test_every_service_has_a_card_where_it_gets_its_whole_claim(tmp_path):
    empty = world(tmp_path)
    for service in empty.services.values():
        cards = [card for card in empty.cards.values() if card.card_class in service.card_classes]
        grants = [start_grant(book_of(card, (), empty.services, state.policy()), service) for card in cards]
        assert service.claim.kv_cap_mib in grants, (service.name, grants[:1])


def test_what_is_kept_awake_fits_comfortably_and_pairs_stand_on_two_hosts(tmp_path):
    rested = settled(world(tmp_path), NOW)
    here = [one.service for one in rested.replicas.values()]
    for one in SERVICES:
        assert here.count(one.name) >= one.min_replicas
        if one.min_replicas >= 2:
            hosts = {rested.cards[r.cards[0]].host for r in rested.replicas.values() if r.service == one.name}
            assert len(hosts) >= 2, one.name
    busy = {uuid for one in rested.replicas.values() for uuid in one.cards}
    assert len(busy) <= len(rested.cards) / 2


def test_a_cold_call_of_the_check_finds_room_on_a_farm_in_full_use(tmp_path):
    """All that traffic calls is wished for at once: not all of it fits, and the check's two services still do."""
    empty = world(tmp_path)
    wished = {
        name: service if name in CHECKS else replace(service, demand=Demand(1, 1, NOW, NOW))
        for name, service in empty.services.items()
    }
    full = settled(replace(empty, services=wished), NOW)
    loaded = {one.service for one in full.replicas.values()}
    assert set(empty.services) - loaded - set(CHECKS), "everything fits at once: nothing would ever be shared"
    later = NOW + 90
    for name in CHECKS:
        called = replace(full.services[name], demand=Demand(1, 1, later, later))
        decisions = plan(seen(replace(full, services={**full.services, name: called}), later), state.policy(), later)
        assert [(one.verb, one.refusal) for one in decisions if one.service == name] == [(Verb.START, None)]


def test_the_checks_services_are_cold_and_long_enough_to_see(tmp_path):
    farm.make(tmp_path)
    for name, least_s in ((farm.CHECK_STREAM, 8), (farm.CHECK_PLAIN, 5)):
        service = Service.objects.get(name=name)
        reading_s = service.weights_mib / farm.LOADING["bandwidth_mib_s"]
        load_s = reading_s + farm.LOADING["init_s"] + farm.LOADING["warm_up_s"]
        assert (service.tier, service.min_replicas, service.audience) == ("cold", 0, "group")
        assert least_s <= load_s < service.hold_cap_s


def test_cards_of_a_host_are_the_same_every_time_and_known_to_the_catalogue(tmp_path):
    cards = farm.host_cards()
    assert cards == farm.host_cards()
    assert sum(len(one) for one in cards.values()) == 32
    assert {one["total_mib"] for one in cards["gpu-01"]} == {catalogue.card("a800-80")["total_mib"]}
    farm.make(tmp_path)
    assert set(Card.objects.values_list("uuid", flat=True)) == {one["uuid"] for many in cards.values() for one in many}


def test_what_the_catalogue_does_not_know_is_none():
    assert catalogue.card("v100-32")["total_mib"] is None
    assert len(catalogue.cards()) > 30
    assert len(catalogue.models()) > 60


def test_every_company_has_applications_with_keys_of_their_own(tmp_path):
    farm.make(tmp_path)
    assert applications.make(tmp_path) == 12
    keys = kept(tmp_path, farm.KEYS)
    for tenant in Tenant.objects.all():
        theirs = list(tenant.applications.all())
        assert len(theirs) in (2, 3)
        assert all(row.keys.exists() for row in theirs)
        called_with = applications.of(keys, tenant.slug)
        assert len(called_with) == len(theirs)
        found = ApiKey.objects.filter(digest__in=[digest_of(key) for key in called_with])
        assert {key.application_id for key in found} == {row.pk for row in theirs}
        assert ApiKey.objects.get(name=f"demo {tenant.slug}").application in theirs
    assert stat.S_IMODE((tmp_path / farm.KEYS).stat().st_mode) == 0o600


def test_applications_made_again_change_nothing_and_one_that_was_renamed_stays(tmp_path):
    farm.make(tmp_path)
    applications.make(tmp_path)
    keys, estate = kept(tmp_path, farm.KEYS), Tenant.objects.get(slug="estate")
    estate.applications.filter(slug="property").update(name="物业台")
    ApiKey.objects.filter(name="demo estate").update(application=None)
    farm.make(tmp_path)
    assert applications.make(tmp_path) == 12
    assert kept(tmp_path, farm.KEYS) == keys
    assert estate.applications.get(slug="property").name == "物业台"
    assert ApiKey.objects.get(name="demo estate").application is None


def test_a_farm_of_before_calls_with_its_companies_keys():
    assert applications.of({"estate": "gk_a", "energy/x": "gk_b"}, "estate") == ["gk_a"]

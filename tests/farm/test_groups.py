"""S27 and a move of S15 on the running farm: four cards as one, called, moved by night with a stream open, not cut."""

from __future__ import annotations

import json

import pytest

from tests.farm.harness import Farm, wait_for
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]

HOSTS = ("gpu-03", "gpu-04")
_MAKE = """
from console.accounts.models import Tenant
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, Pool
pool, _ = Pool.objects.get_or_create(name='teams', defaults={'label': '四卡一组'})
taken = {uuid for cards in Replica.objects.filter(ended_at=None).values_list('cards', flat=True) for uuid in cards}
for host in ('gpu-03', 'gpu-04'):
    free = Card.objects.filter(host__name=host).exclude(uuid__in=taken).order_by('-index')[:4]
    Card.objects.filter(pk__in=[card.pk for card in free]).update(pool=pool)
model, _ = Model.objects.get_or_create(slug='team-8g', defaults=dict(name='team', weights='team-8g',
    weights_mib=8000, kv_bytes_per_token=57344, max_context=32768))
row, _ = Service.objects.update_or_create(name='team', defaults=dict(label='team', tenant=Tenant.objects.first(),
    model=model, weights_mib=2000, kv_cap_mib=1024, headroom_mib=256, max_model_len=8192, tier='cold',
    profile='online', cards_per_replica=4))
row.pools.set([pool])
"""
_MOVE = """
from datetime import timedelta
from django.utils import timezone
from console.catalog.models import Replica, Service
from console.fleet.models import Card, Pool
from console.repack.models import Move, Proposal
copy = Replica.objects.get(service__name='team', ended_at=None)
target = list(Card.objects.filter(pool__name='teams').exclude(host=copy.host).values_list('uuid', flat=True))
now = timezone.now()
row = Proposal.objects.create(pool=Pool.objects.get(name='teams'), at=now, until=now + timedelta(hours=1), free_mib=1,
    stranded_before_mib=0, stranded_after_mib=0, empty_before=0, empty_after=0)
Move.objects.create(proposal=row, number=1, service=copy.service, replica=copy, source=copy.cards,
    target=sorted(target), after_pct=0)
"""


@pytest.fixture
def teams(farm: Farm, watched: Watcher) -> Farm:
    farm.django(_MAKE)
    farm.policy(repack_from_min=0, repack_until_min=1439)
    return farm


def status(farm: Farm) -> str:
    return farm.rows("select status from repack_move order by id desc limit 1")[0][0]


def test_four_cards_answer_as_one_and_move_as_one_without_cutting_a_call(teams: Farm) -> None:
    farm = teams
    wait_for("the gateway knows of it", lambda: farm.ask("team").status_code != 404, 30)
    assert farm.ask("team").status_code == 200
    ((first, host, cards),) = farm.replicas("team")
    assert len(set(cards)) == 4
    assert {
        h
        for (h,) in farm.rows(
            f"select distinct h.name from fleet_card c join fleet_host h on h.id = c.host_id"
            f" where c.uuid in ({','.join('?' * 4)})",
            *cards,
        )
    } == {host}
    (engine,) = farm.processes("engine", GONGKA_REPLICA=str(first))
    assert engine.environ()["GONGKA_SIM_CARDS"].split(",") == cards
    assert engine.cmdline()[engine.cmdline().index("--tensor-parallel-size") + 1] == "4"
    held = json.loads((farm.home / "hosts" / host / "sim" / "alloc" / alloc_of(farm, host, first)).read_text())
    assert {mib > 2000 for mib in held["held_mib"].values()} == {True}
    assert set(held["held_mib"]) == set(cards)

    stream = Caller(farm, "team", max_tokens=400)
    wait_for("the stream flows", lambda: stream.flowing, 60)
    farm.django(_MOVE)
    wait_for("the copy is ready beside it", lambda: len(farm.replicas("team")) == 2 or status(farm) == "done", 90)
    wait_for("moved", lambda: status(farm) == "done", 120)
    assert stream.join().whole, stream.error
    ((second, elsewhere, others),) = farm.replicas("team")
    assert second != first
    assert elsewhere != host
    assert len(set(others)) == 4
    assert farm.ask("team").status_code == 200


def alloc_of(farm: Farm, host: str, replica: int) -> str:
    """The file in which the engine recorded what it holds."""
    folder = farm.home / "hosts" / host / "sim" / "alloc"
    for path in folder.glob("*.json"):
        row = json.loads(path.read_text())
        if row["replica"] == str(replica) and len(row["held_mib"]) == 4:
            return path.name
    raise AssertionError("it recorded nothing")

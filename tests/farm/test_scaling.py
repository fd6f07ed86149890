"""Scaling on the running farm: a queue brings copies, quiet takes them away, and a stream keeps the copy it runs on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.farm.harness import Farm, wait_for
from tests.farm.streams import Caller
from tests.farm.watcher import Watcher
from workers.simulator import faults

pytestmark = [pytest.mark.farm, pytest.mark.timeout(420)]

NAME = "grows"
QUIET_S = 30  # of low load before copies go: longer than all that is looked at before
OVERDUE_S = 10
FACTOR = 5  # a token takes about 60 ms: long calls cost few chunks
_MAKE = """
from console.accounts.models import Tenant
from console.catalog.models import Model, Replica, Service
from console.fleet.models import Card, Pool
pool, _ = Pool.objects.get_or_create(name='grows', defaults={{'label': '四张卡'}})
taken = {{uuid for cards in Replica.objects.filter(ended_at=None).values_list('cards', flat=True) for uuid in cards}}
free = [c for c in Card.objects.order_by('-index') if c.uuid not in taken and c.total_mib >= 20000]
one_each = {{c.host_id: c for c in reversed(free)}}
Card.objects.filter(pk__in=[c.pk for c in one_each.values()]).update(pool=pool)
model, _ = Model.objects.get_or_create(slug='grows-2g', defaults=dict(name='grows', weights='grows-2g',
    weights_mib=2000, kv_bytes_per_token=57344, max_context=32768))
row, _ = Service.objects.update_or_create(name='{name}', defaults=dict(label='会扩容', tenant=Tenant.objects.first(),
    model=model, weights_mib=2000, kv_cap_mib=9216, headroom_mib=512, max_model_len=16384, tier='cold', tier_fixed=True,
    profile='online', min_replicas={least}, max_replicas=4, max_num_seqs={seqs}))
row.pools.set([pool])
"""


@dataclass
class Grown:
    """A pool of a card on each host, and one service of 2 to 4 copies in it."""

    farm: Farm

    def make(self, seqs: int, least: int = 2) -> None:
        self.farm.django(_MAKE.format(name=NAME, seqs=seqs, least=least))
        for host in self.hosts():
            faults.set_fault(host / "sim", "slow", f"service:{NAME}", factor=FACTOR)
        wait_for("its minimum is ready", lambda: len(self.farm.replicas(NAME)) == least, 90)

    def hosts(self) -> list[Path]:
        return [host for host in (self.farm.home / "hosts").iterdir() if (host / "sim").exists()]

    def hasten(self) -> None:
        """What was to be seen while the calls ran is seen: the rest of them at full speed."""
        for host in self.hosts():
            faults.clear_faults(host / "sim")

    def decisions(self, reason: str, verb: str) -> list[dict[str, float]]:
        rows = self.farm.rows(
            "select d.numbers from journal_decision d join catalog_service s on s.id = d.service_id"
            " where s.name = ? and d.reason = ? and d.verb = ? and d.refusal = ''",
            NAME,
            reason,
            verb,
        )
        return [json.loads(numbers) for (numbers,) in rows]

    def calls(self) -> dict[int, int]:
        """Replica → calls that its host's door counts."""
        rows = self.farm.rows(
            "select r.id, r.door_in_flight from catalog_replica r join catalog_service s on s.id = r.service_id"
            " where s.name = ? and r.ended_at is null",
            NAME,
        )
        return {number: calls or 0 for number, calls in rows}

    def wanted(self, want: str) -> list[int]:
        rows = self.farm.rows(
            "select r.id from catalog_replica r join catalog_service s on s.id = r.service_id"
            " where s.name = ? and r.want = ? and r.ended_at is null",
            NAME,
            want,
        )
        return [number for (number,) in rows]

    def least(self, copies: int) -> None:
        self.farm.django(
            f"from console.catalog.models import *\nService.objects.filter(name='{NAME}').update(min_replicas={copies})"
        )

    def remembered(self, column: str) -> int:
        query = (
            f"select c.{column} from catalog_scaling c join catalog_service s on s.id = c.service_id where s.name = ?"
        )
        return self.farm.rows(query, NAME)[0][0]

    def measured(self) -> set[int]:
        """Replicas of which control has told latencies: the gateway's slots, through Redis."""
        told = self.farm.django("from console import wire\nprint([*wire.read_gateways().latencies.replicas])")
        return set(json.loads(told.splitlines()[-1]))

    def stream_each(self, max_tokens: int) -> list[Caller]:
        """Streams, until each copy has one."""
        streams: list[Caller] = []
        while not self.calls() or not all(self.calls().values()):
            streams.append(Caller(self.farm, NAME, max_tokens=max_tokens))
            wait_for("counted", lambda: sum(self.calls().values()) >= len(streams), 30)
            assert len(streams) <= 20
        return streams


@pytest.fixture
def grown(farm: Farm, watched: Watcher) -> Grown:
    return Grown(farm)


def test_a_queue_brings_copies_and_quiet_takes_them_back_in_one_step(grown: Grown) -> None:
    farm = grown.farm
    farm.policy(scale_queue_calls=6, scale_in_s=QUIET_S)
    grown.make(seqs=4)
    callers = [Caller(farm, NAME, max_tokens=300) for _ in range(22)]  # 8 run, 14 wait
    wait_for("four copies", lambda: len(farm.replicas(NAME)) == 4, 90)
    grown.hasten()
    for caller in callers:
        assert caller.join().whole, caller.error
    raised = grown.decisions("queue", "start")
    assert len(raised) == 2
    assert all(numbers["waiting"] > 6 and numbers["desired"] >= 4 for numbers in raised)
    assert grown.remembered("raised_to") == 4
    wait_for("control knows their latencies", lambda: grown.measured() & set(grown.calls()), 30, 1.0)

    wait_for("two copies again", lambda: len(farm.replicas(NAME)) == 2, 200, 0.5)
    fewer = grown.decisions("surplus", "drain")
    assert [(numbers["came_from"], numbers["desired"]) for numbers in fewer] == [(4, 2), (4, 2)]
    assert grown.remembered("came_from") == 4
    assert len({host for _, host, _ in farm.replicas(NAME)}) == 2


def test_a_scale_in_leaves_a_stream_its_copy_and_gives_up_when_it_lasts(grown: Grown) -> None:
    farm = grown.farm
    farm.policy(scale_in_s=QUIET_S, drain_overdue_s=OVERDUE_S, left_alone_s=60)
    grown.make(seqs=16, least=4)
    streams = grown.stream_each(3000)
    grown.least(2)
    drained = wait_for("one drains, busy as it is", lambda: grown.wanted("drained"), 150)
    on = [(stream, stream.tokens) for stream in streams]
    wait_for("tokens flow on", lambda: all(s.tokens > before + 20 or s.done for s, before in on), 30)
    wait_for("they are given back", lambda: set(drained) <= set(grown.wanted("ready")), 60)
    left = farm.rows(f"select left_alone_until from catalog_replica where id in ({', '.join(map(str, drained))})")
    assert all(until for (until,) in left)
    assert all(numbers["lasted_s"] >= OVERDUE_S for numbers in grown.decisions("unneeded", "wake"))
    assert grown.decisions("unneeded", "wake")
    grown.hasten()
    for stream in streams:
        assert stream.join(200).whole, stream.error

"""S01 and S03 on the running farm: what shares a card adds up to it, and who grows there takes nothing."""

from __future__ import annotations

import math
import threading

import httpx
import pytest

from tests.farm.harness import Farm, body, wait_for
from tests.farm.person import Person
from tests.farm.plot import Plot
from tests.farm.watcher import Watcher
from workers.simulator import faults

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]


def a_claim(weights: float, kv: float, headroom: float) -> dict[str, int]:
    """From GB as people write them, each part rounded up."""
    parts = {"weights_mib": weights, "kv_cap_mib": kv, "headroom_mib": headroom}
    return {name: math.ceil(gb * 1024) for name, gb in parts.items()}


#: The field's three; `inst-a` first, for its standby needs the smaller card whole.
THREE = {
    "inst-a": a_claim(14.2, 18.0, 1.4) | {"profile": "online", "priority": 90, "min_replicas": 2, "max_replicas": 2},
    "inst-b": a_claim(6.4, 6.0, 0.6) | {"profile": "lowfreq", "min_replicas": 1},
    "inst-c": a_claim(3.1, 4.0, 0.5) | {"profile": "lowfreq", "min_replicas": 1},
}
FIXED_MIB = {"inst-a": 16575, "inst-b": 7769, "inst-c": 4287}


def test_s01_three_share_a_card_that_adds_up_and_the_standby_is_on_another_host(farm: Farm, watched: Watcher) -> None:
    plot = Plot(farm, "three", ["gpu-01", "gpu-02"], THREE)
    wait_for("all are ready", lambda: [len(farm.replicas(name)) for name in THREE] == [2, 1, 1], 120, 0.5)
    large, other = plot.uuids
    assert {plot.one(name)[2] for name in ("inst-b", "inst-c")} == {large}
    assert {(host, cards[0]) for _, host, cards in farm.replicas("inst-a")} == {("gpu-01", large), ("gpu-02", other)}

    operator = Person(farm, "operator")
    total, reserved = farm.rows("select total_mib, reserved_mib from fleet_card where uuid = ?", large)[0]
    card = wait_for("the board shows all three", lambda: shown(operator, plot.numbers[0], 3), 20, 0.5)
    assert sum(card["m"]) == total
    copies, (_, external, free, unknown, buffer) = card["m"][:-5], card["m"][-5:]
    each = [copies[i : i + 4] for i in range(0, len(copies), 4)]
    for name, (weights, kv_used, kv_free, spare) in zip(served(plot, large), each, strict=True):
        assert (weights, kv_used + kv_free) == (THREE[name]["weights_mib"], THREE[name]["kv_cap_mib"]), name
        assert weights + spare == FIXED_MIB[name], name
    assert (external, unknown, buffer) == (reserved, 0, math.ceil(total * 0.08))
    assert free == total - reserved - buffer - sum(FIXED_MIB.values()) - 18432 - 6144 - 4096

    drawer = operator.text(f"/board/cards/{plot.numbers[0]}/drawer")
    assert "KV 没有超卖" in drawer
    for figure in ("14.2", "18.0", "6.4", "6.0", "3.1", "4.0"):
        assert figure in drawer, figure
    operator.close()


def shown(person: Person, card: int, copies: int) -> dict[str, list[int]] | None:
    told = person.board()[str(card)]
    return told if len(told["r"]) == copies and {one[2] for one in told["r"]} == {"ready"} else None


def served(plot: Plot, card: str) -> list[str]:
    """Services with a copy on the card, in the order in which the board draws them."""
    found = [(pk, name) for name in THREE for pk, _, cards in plot.farm.replicas(name) if cards == [card]]
    return [name for _, name in sorted(found)]


HOTLINE, READER = "s03-hotline", "s03-reader"
TOKENS = 16384  # of the reader's KV
BESIDE = {
    HOTLINE: {"weights_mib": 2000, "kv_cap_mib": 2048, "headroom_mib": 512, "profile": "online", "priority": 90}
    | {"min_replicas": 1},
    READER: {"weights_mib": 2000, "kv_cap_mib": 2048, "headroom_mib": 512, "profile": "lowfreq", "min_replicas": 1}
    | {"kv_bytes_per_token": 2048 * 2**20 // TOKENS, "max_model_len": 4096, "hold_cap_s": 120},
}
AT_ONCE = 8  # texts in the reader's engine: as many typical ones as its KV holds
LONG = {"text": "长" * 1920, "max_tokens": 150}  # so many of these fill it, and then some, before they are answered
SLOW = 3  # a token of the reader's takes about 0.1 s: what is reported each second shall be seen
P99_PCT = 8
FEW = 40  # answers of the hotline that its P99 is of


def test_s03_whose_texts_grow_queues_in_its_own_engine_and_the_hotline_beside_it_stays_as_fast(
    farm: Farm, watched: Watcher
) -> None:
    """Both read short texts first, the reader as many as its engine runs at once: what is compared is the growing."""
    plot = Plot(farm, "beside", ["gpu-04"], BESIDE)
    wait_for("both are ready", lambda: all(farm.replicas(name) for name in BESIDE), 90, 0.5)
    assert plot.one(HOTLINE)[2] == plot.one(READER)[2] == plot.uuids[0]
    before, sim = engines(farm), farm.home / "hosts" / "gpu-04" / "sim"
    faults.set_fault(sim, "slow", f"service:{READER}", factor=SLOW)
    with Talk(farm, HOTLINE, 6, max_tokens=25) as hotline:
        with Talk(farm, READER, AT_ONCE, max_tokens=20):
            wait_for("the gateway knows how long answers are", lambda: len(hotline.took) >= FEW, 60)
            hotline.took.clear()
            wait_for("the hotline is measured", lambda: len(hotline.took) >= FEW, 60)
            usual = least_p99(hotline.took)
        wide = admitted(farm)
        with Talk(farm, READER, AT_ONCE + 4, **LONG) as long:
            wait_for("they queue in their own engine", lambda: reader(farm)["waiting"] > 0, 60)
            hotline.took.clear()
            wait_for("it is said that its KV is full", lambda: refusals(farm), 60)
            assert wait_for("gateways send it less", lambda: admitted(farm) < wide and admitted(farm), 30) > 0
            most = usual * (100 + P99_PCT) / 100
            wait_for("the hotline is as fast as ever", lambda: least_p99(hotline.took) <= most, 90)
            faults.clear_faults(sim)
    assert {*long.told, *hotline.told} == {200}
    assert engines(farm) == before, "nobody was killed, nobody began anew"
    assert moved(farm) == []


class Talk:
    """Callers of one service, each asking again as soon as it has its whole answer, until the block ends.

    `took`: seconds of each answer; `told`: its status. Both in the order of their ends.
    """

    def __init__(self, farm: Farm, service: str, callers: int, max_tokens: int, text: str = "今天的排班") -> None:
        self.farm, self.key = farm, farm.key(service)
        self.body = body(service, max_tokens, stream=False, text=text)
        self.took: list[float] = []
        self.told: list[int] = []
        self.halt = threading.Event()
        self.threads = [threading.Thread(target=self._again, daemon=True) for _ in range(callers)]

    def __enter__(self) -> Talk:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.halt.set()
        for thread in self.threads:
            thread.join(120)

    def _again(self) -> None:
        headers = {"Authorization": f"Bearer {self.key}"}
        with httpx.Client(base_url=self.farm.gateway, headers=headers, timeout=120) as client:
            while not self.halt.is_set():
                reply = client.post("/v1/chat/completions", json=self.body)
                self.told.append(reply.status_code)
                self.took.append(reply.elapsed.total_seconds())


def p99(seconds: list[float]) -> float:
    return sorted(seconds)[min(len(seconds) - 1, len(seconds) * 99 // 100)]


def least_p99(seconds: list[float]) -> float:
    """Of any FEW answers in a row: what else the machine does at times is no neighbour's doing."""
    return min((p99(seconds[at : at + FEW]) for at in range(len(seconds) - FEW + 1)), default=math.inf)


def engines(farm: Farm) -> list[tuple[str, int, int, str]]:
    """(service, id, start, phase) of every copy of the two there ever was."""
    query = (
        "select s.name, r.id, r.attempt, r.phase from catalog_replica r join catalog_service s on s.id = r.service_id"
        " where s.name in (?, ?) order by r.id"
    )
    return farm.rows(query, HOTLINE, READER)


def reader(farm: Farm) -> dict[str, float]:
    query = (
        "select r.waiting, r.kv_used_pct from catalog_replica r join catalog_service s on s.id = r.service_id"
        " where s.name = ? and r.ended_at is null"
    )
    ((waiting, used),) = farm.rows(query, READER)
    return {"waiting": waiting or 0, "kv_used_pct": used or 0.0}


def admitted(farm: Farm) -> int:
    """Tokens of calls that gateways may have in flight at the reader."""
    (copy,) = farm.routes()["services"][READER]["replicas"]
    return int(copy["tokens"])


def journal(farm: Farm, refused: bool) -> list[tuple[str, str, str, str]]:
    query = (
        "select s.name, d.verb, d.reason, d.refusal from journal_decision d"
        " join catalog_service s on s.id = d.service_id where s.name in (?, ?) order by d.id"
    )
    return [row for row in farm.rows(query, HOTLINE, READER) if bool(row[3]) == refused]


def refusals(farm: Farm) -> list[tuple[str, str, str, str]]:
    return [row for row in journal(farm, refused=True) if row[0] == READER and row[3] == "kv_full"]


def moved(farm: Farm) -> list[tuple[str, str, str, str]]:
    """What was done about the two but their first loads."""
    return [row for row in journal(farm, refused=False) if row[1:3] != ("start", "minimum")]

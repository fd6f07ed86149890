"""S01 on the running farm: what shares a card adds up to it, and a standby is on another host."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from tests.farm.harness import Farm, wait_for
from tests.farm.person import Person
from tests.farm.plot import Plot
from tests.farm.watcher import Watcher

pytestmark = [pytest.mark.farm, pytest.mark.timeout(300)]


@pytest.fixture
def plots(farm: Farm, watched: Watcher) -> Iterator[list[Plot]]:
    made: list[Plot] = []
    yield made
    for plot in made:
        plot.clear()


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


def test_s01_three_share_a_card_that_adds_up_and_the_standby_is_on_another_host(plots: list[Plot], farm: Farm) -> None:
    plot = Plot(farm, "three", ["gpu-01", "gpu-02"], THREE)
    plots.append(plot)
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

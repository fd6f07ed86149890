"""An engine over several cards on a real host: it runs, holds memory on each, answers, and gives each its own back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.host.harness import SPEC, HostHarness, until
from workers.messages import EngineSpec

TWO: EngineSpec = replace(SPEC, tp=2, weights_mib=2 * SPEC.weights_mib)


def used(host: HostHarness) -> list[int]:
    """MiB that processes of ours hold on each card."""
    report = host.control.report()
    assert report is not None
    return [sum(one.used_mib or 0 for one in card.processes) for card in sorted(report.cards, key=lambda c: c.index)]


def test_it_runs_on_all_of_its_cards_and_is_one_replica(host: HostHarness) -> None:
    host.want(1, "ready", cards=host.cards[:2], engine=TWO)
    host.until_phase(1, "ready")
    until(lambda: min(used(host)[:2]) > SPEC.weights_mib, "memory is seen on both")
    first, second = used(host)[:2]
    assert first == second
    seen = until(lambda: (one := host.see(1)) and one.measured_mib == first and one, "measured as on each card")
    assert seen.cards == host.cards[:2]
    answer = host.call(1)
    assert answer.status_code == 200
    host.want(1, "stopped")
    host.until_phase(1, "stopped")
    until(lambda: used(host) == [0] * len(host.cards), "back on both")


def test_a_count_that_does_not_match_its_cards_is_refused_before_anything_starts(host: HostHarness) -> None:
    host.want(1, "ready", cards=host.cards[:1], engine=TWO)
    failed = host.until_phase(1, "failed")
    assert (failed.fault, failed.fatal) == ("bad_arguments", True)
    assert host.processes(1) == []


def test_it_waits_for_its_turn_on_both_cards(make_host: Callable[..., HostHarness]) -> None:
    """One load at a time on a card: the one that has only the second card loads first, and the pair after it."""
    host = make_host(init_s=6.0)  # long enough to be seen on a busy machine
    host.start_agent()
    host.want(2, "ready", cards=host.cards[1:2])
    until(lambda: host.processes(2), "it has its turn: a process")
    host.want(1, "ready", cards=host.cards[:2], engine=TWO)
    until(lambda: (one := host.see(1)) and one.stage == "queued", "it queues")
    host.until_phase(2, "ready")
    host.until_phase(1, "ready")

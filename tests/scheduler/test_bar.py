"""The bar of a card: every MiB is somebody's, and all of them are the card."""

from __future__ import annotations

from scheduler.bar import bar_of
from scheduler.world import Phase
from tests.scheduler.build import a_card, a_draft, a_replica, a_service
from tests.scheduler.cases import cases


def bar(*things):
    return bar_of(a_draft(*things).book("c1"))


def test_an_empty_card():
    there = bar(a_card())
    assert (there.driver_reserved_mib, there.buffer_mib, there.free_mib) == (600, 6554, 74766)
    assert there.segments == ()
    assert there.sum_mib == 81920


def test_a_ready_replica_shows_its_claim_and_grant():
    (segment,) = bar(a_card(), a_service(), a_replica()).segments
    assert (segment.weights_mib, segment.kv_granted_mib, segment.headroom_mib, segment.overhead_mib) == (
        8000,
        4000,
        400,
        600,
    )
    assert segment.held_mib == 13000
    assert segment.drift_mib == segment.residue_mib == 0


def test_what_is_measured_above_the_claim_is_drift():
    (segment,) = bar(a_card(), a_service(), a_replica(measured_mib=15000)).segments
    assert (segment.drift_mib, segment.held_mib) == (2000, 15000)


def test_a_sleeper_shows_its_residue_only():
    (segment,) = bar(a_card(), a_service(), a_replica(phase=Phase.ASLEEP)).segments
    assert (segment.residue_mib, segment.held_mib) == (1300, 1300)


def test_an_imported_engine_shows_what_is_measured():
    (segment,) = bar(a_card(), a_service(), a_replica(external=True, measured_mib=5000)).segments
    assert segment.held_mib == 5000


def test_a_failed_replica_has_no_segment():
    assert bar(a_card(), a_service(), a_replica(phase=Phase.FAILED)).segments == ()


def test_external_and_releasing_have_segments_of_their_own():
    there = bar(a_card(unavailable_mib=600 + 3000 + 2000, releasing_mib=2000))
    assert (there.external_mib, there.releasing_mib) == (3000, 2000)
    assert there.sum_mib == there.total_mib


def test_an_unmeasured_card_says_unknown_rather_than_free():
    there = bar(a_card(unavailable_mib=None), a_service(), a_replica())
    assert there.external_mib is None
    assert there.free_mib is None
    assert there.unknown_mib == 81920 - 600 - 13000 - 6554
    assert there.sum_mib == there.total_mib


@cases("unavailable", [81920, 80000, 40000])
def test_an_overfull_card_still_adds_up(unavailable):
    services = [a_service(f"n{i}", weights=30000) for i in range(3)]
    there = bar(a_card(unavailable_mib=unavailable), *services, *(a_replica(i, f"n{i}") for i in range(3)))
    assert there.sum_mib == there.total_mib
    assert there.free_mib == 0

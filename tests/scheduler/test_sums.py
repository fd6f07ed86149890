"""Ledgers in numbers: the goldens of the field's card, and what bounds promise."""

from scheduler.draft import Draft
from scheduler.potential import FREE, potential_of
from scheduler.sums import NOTHING, Sums, part_asleep, part_of, start_of, sums_of, wake_of
from scheduler.world import Phase, Profile, Tier
from tests.scheduler.build import LONG, NOW, POLICY, a_card, a_draft, a_replica, a_service, a_world
from tests.scheduler.cases import cases


def sums(*things, **card):
    draft = a_draft(a_card(**card), *things)
    return sums_of(draft.book("c1"))


def test_an_empty_card_has_all_that_claims_may_use():
    assert sums() == Sums(74766, 0, 0, 0, 0)


def test_an_unmeasured_card_has_no_sums():
    assert sums(unavailable_mib=None) is None


def test_what_is_being_released_counts_as_back():
    assert sums(unavailable_mib=600 + 5000, releasing_mib=5000) == Sums(74766, 0, 0, 0, 0)


def test_a_seat_takes_fixed_and_grant_and_its_awake_place():
    found = sums(a_service(), a_replica(measured_mib=12000), unavailable_mib=12600)
    assert found == Sums(74766 - 13000, 4000, 4000, 1, 0)


def test_a_sleeper_takes_its_residue_and_keeps_its_kv_in_the_mix():
    found = sums(a_service(), a_replica(phase=Phase.ASLEEP, residue_mib=1100), unavailable_mib=1700)
    assert found == Sums(74766 - 1100, 4000, 4000, 0, 0)


@cases(("profile", "mixed"), [(Profile.ONLINE, 0), (Profile.LOWFREQ, 1), (Profile.BATCH, 1)])
def test_others_than_online_make_a_mix(profile, mixed):
    assert sums(a_service(profile=profile), a_replica()).mixed == mixed


def test_a_copy_of_a_service_nobody_knows_makes_a_mix_too():
    assert sums(a_replica(service="gone", measured_mib=3000), unavailable_mib=3600) == Sums(74766 - 4000, 0, 0, 1, 1)


def test_failed_and_imported_ones_have_no_kv_in_the_mix():
    failed = sums(a_service(), a_replica(phase=Phase.FAILED))
    assert failed == Sums(74766, 0, 0, 0, 0)
    imported = sums(a_service(), a_replica(external=True, measured_mib=9000), unavailable_mib=9600)
    assert imported == Sums(74766 - 9000, 0, 0, 1, 0)


def test_what_stops_leaves_whole_and_what_sleeps_leaves_its_kv_behind():
    draft = a_draft(a_service(), a_replica())
    seat = draft.book("c1").seats[0]
    assert part_of(seat, POLICY) == Sums(13000, 4000, 4000, 1, 0)
    assert part_asleep(seat, POLICY) == Sums(13000 - 1300, 0, 0, 1, 0)


def test_a_sleeper_that_goes_to_sleep_leaves_nothing():
    draft = a_draft(a_service(), a_replica(phase=Phase.ASLEEP))
    assert part_asleep(draft.book("c1").seats[0], POLICY) == NOTHING


@cases(
    ("there", "fits"),
    [
        (Sums(9000 + 4000, 0, 0, 0, 0), True),
        (Sums(9000 + 3479, 0, 0, 0, 0), True),  # 4000 / 1.15 rounded up
        (Sums(9000 + 3478, 0, 0, 0, 0), False),
        (Sums(9000 + 2963, 0, 0, 0, 1), True),  # a mix: 4000 / 1.35 rounded up
        (Sums(9000 + 2962, 0, 0, 0, 1), False),
        (Sums(9000 + 4000, 5000, 3000, 1, 1), True),  # 9000 of caps over 7000 granted: 29 %
        (Sums(9000 + 4000, 5000, 2000, 1, 1), False),  # over 6000: 50 %
        (Sums(9000 + 4000, 0, 0, 4, 0), False),
    ],
)
def test_where_a_start_fits(there, fits):
    assert start_of(a_service(), POLICY).fits(there) is fits


def test_one_request_must_fit_the_grant():
    assert start_of(a_service(one_request_mib=3600), POLICY).fits(Sums(9000 + 3600, 0, 0, 0, 0))
    assert not start_of(a_service(one_request_mib=3600), POLICY).fits(Sums(9000 + 3599, 0, 0, 0, 0))


def test_a_wake_needs_what_it_does_not_hold_yet():
    asleep = a_replica(phase=Phase.ASLEEP)
    wake = wake_of(asleep, a_service(), POLICY)
    assert wake.least_mib == 9000 + 4000 - 1300
    assert wake.fits(Sums(11700, 4000, 4000, 0, 0))
    assert not wake.fits(Sums(11699, 4000, 4000, 0, 0))
    assert not wake.fits(Sums(11700, 4000, 4000, 4, 0))
    assert not wake.fits(Sums(11700, 4000, 3000, 0, 0)), "33 % oversold among online ones"
    assert wake.fits(Sums(11700, 4000, 3000, 0, 1))


def full(**replica) -> Draft:
    """A card with one idle copy of 60 GiB and nothing else to give."""
    big = a_service("big", weights=60000, kv=8000, tier=Tier.COLD, priority=30)
    return a_draft(a_card(), big, a_service("s"), a_replica(service="big", kv_granted_mib=8000, **replica))


def test_bounds_say_what_room_costs_at_least():
    card = potential_of(full(last_call_at=NOW - 900), "c1")
    left = 74766 - 69000
    assert card.least_cost(left) == FREE
    assert card.least_cost(left + 1) == (0, 1, 30, NOW - 900)
    assert (card.left_mib, card.cheap_mib, card.idle_mib, card.now_mib, card.ever_mib) == (left, left, *[74766] * 3)


def test_one_in_use_costs_more_than_idle_ones():
    card = potential_of(full(in_flight=2, last_call_at=NOW), "c1")
    assert card.least_cost(20000) == (1, 0, 30, NOW)


def test_who_must_stay_a_while_bounds_the_wait():
    card = potential_of(full(loaded_at=NOW - 100), "c1")
    assert card.now_mib < 20000 <= card.ever_mib
    assert card.least_rest_s(20000, NOW) == POLICY.min_loaded_s - 100
    assert card.least_rest_s(5000, NOW) == 0.0
    assert card.ever_mib < 80000


def test_what_is_known_of_a_card_is_asked_again_once_something_changed_there():
    draft = full(last_call_at=NOW - LONG)
    before = potential_of(draft, "c1")
    assert potential_of(draft, "c1") is before
    draft.promise([draft.phantom("s", ("c1",), 100)])
    assert potential_of(draft, "c1").left_mib == before.left_mib - 9100


def test_cards_elsewhere_keep_their_answers():
    world = a_world(a_card("c1", "h1"), a_card("c2", "h2"), a_service("s"), a_replica(card="c1"))
    draft = Draft(world, POLICY, NOW)
    kept = potential_of(draft, "c2")
    draft.promise([draft.phantom("s", ("c1",), 100)])
    assert potential_of(draft, "c2") is kept

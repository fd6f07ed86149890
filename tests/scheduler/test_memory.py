"""The equations of one card, term by term and with the golden figures."""

from __future__ import annotations

from scheduler.decision import Code, Refusal
from scheduler.memory import (
    after_leaving,
    allocatable_mib,
    asleep_count,
    awake_count,
    book_limit_pct,
    book_of,
    buffer_mib,
    external_mib,
    held_mib,
    kv_sums,
    least_start_mib,
    ours_mib,
    oversell_pct,
    room_mib,
    start_grant,
    wake_fits,
    with_seats,
    within_oversell,
)
from scheduler.policy import Policy
from scheduler.world import Phase, Profile, Want
from tests.scheduler.build import POLICY, a_card, a_draft, a_replica, a_service
from tests.scheduler.cases import cases

LOW = Profile.LOWFREQ


def book(*things, policy: Policy = POLICY):
    return a_draft(*things, policy=policy).book("c1")


@cases(
    ("total", "pct", "expected"),
    [(81920, 8, 6554), (81920, 0, 0), (24576, 8, 1967), (100, 8, 8), (101, 8, 9), (1, 8, 1)],
)
def test_the_buffer_is_rounded_up(total, pct, expected):
    assert buffer_mib(a_card(total=total), Policy(buffer_pct=pct)) == expected


@cases(
    ("phase", "measured", "expected"),
    [
        (Phase.STARTING, None, 13000),
        (Phase.READY, None, 13000),
        (Phase.DRAINING, None, 13000),
        (Phase.READY, 9000, 13000),
        (Phase.READY, 14000, 14000),
        (Phase.ASLEEP, None, 1300),
        (Phase.ASLEEP, 1000, 1300),
        (Phase.ASLEEP, 2000, 2000),
        (Phase.FAILED, 5000, 0),
        (Phase.STOPPED, 5000, 0),
    ],
)
def test_what_a_replica_holds_by_phase(phase, measured, expected):
    service = a_service(weights=8000, kv=4000, headroom=400, overhead=600)
    assert held_mib(a_replica(phase=phase, measured_mib=measured), service, POLICY) == expected


def test_a_measured_residue_counts_instead_of_the_default():
    assert held_mib(a_replica(phase=Phase.ASLEEP, residue_mib=700), a_service(), POLICY) == 700


def test_an_imported_engine_holds_what_is_measured():
    assert held_mib(a_replica(external=True, measured_mib=7777), a_service(), POLICY) == 7777
    assert held_mib(a_replica(external=True), a_service(), POLICY) == 0


def test_a_replica_of_an_unknown_service_holds_at_least_its_grant():
    assert held_mib(a_replica(kv_granted_mib=4000), None, POLICY) == 4000


def test_ours_is_measured_or_the_ledger_without_headroom():
    seats = book(
        a_card(), a_service("a"), a_service("b"), a_replica(1, "a", measured_mib=9999), a_replica(2, "b")
    ).seats
    assert ours_mib(seats, POLICY) == 9999 + 12600


def test_ours_counts_a_sleepers_residue():
    assert ours_mib(book(a_card(), a_service(), a_replica(phase=Phase.ASLEEP)).seats, POLICY) == 1300


@cases(
    ("unavailable", "ours", "releasing", "expected"),
    [
        (600, 0, 0, 0),
        (10600, 0, 0, 10000),
        (10600, 9000, 0, 1000),
        (10600, 20000, 0, 0),
        (10600, 0, 4000, 6000),
        (None, 0, 0, None),
    ],
)
def test_external_is_what_nobody_of_ours_explains(unavailable, ours, releasing, expected):
    assert external_mib(a_card(unavailable_mib=unavailable, releasing_mib=releasing), ours) == expected


def test_allocatable_leaves_out_reserve_external_releasing_and_buffer():
    there = book(a_card(unavailable_mib=600 + 5000 + 2000, releasing_mib=2000))
    assert allocatable_mib(there) == 81920 - 600 - 5000 - 2000 - 6554


def test_an_empty_card_of_80_gb():
    assert allocatable_mib(book(a_card())) == room_mib(book(a_card())) == 74766


def test_an_unmeasured_card_has_no_room_rather_than_all():
    there = book(a_card(unavailable_mib=None), a_service())
    assert allocatable_mib(there) is None
    assert room_mib(there) is None
    assert start_grant(there, a_service()) == Refusal(Code.UNMEASURED, {"card": "c1"})


def test_room_is_allocatable_less_what_is_held():
    assert room_mib(book(a_card(), a_service(), a_replica())) == 74766 - 13000


def test_headroom_is_kept_from_newcomers_even_where_measured_memory_is_less():
    assert room_mib(book(a_card(), a_service(), a_replica(measured_mib=5000))) == 74766 - 13000


def test_foreign_memory_is_not_placed_upon():
    assert room_mib(book(a_card(unavailable_mib=70600))) == 74766 - 70000


@cases(
    ("profiles", "expected"),
    [([], 15), (["online"], 15), (["online", "online"], 15), (["online", "lowfreq"], 35), (["batch"], 35)],
)
def test_the_limit_goes_by_the_mix(profiles, expected):
    services = [a_service(f"s{i}", profile=Profile(p)) for i, p in enumerate(profiles)]
    there = book(a_card(), *services, *(a_replica(i, s.name) for i, s in enumerate(services)))
    assert book_limit_pct(there) == expected


def test_a_sleeper_counts_in_the_mix():
    lowfreq = a_service("b", profile=LOW)
    there = book(a_card(), a_service("a"), lowfreq, a_replica(1, "a"), a_replica(2, "b", phase=Phase.ASLEEP))
    assert book_limit_pct(there) == 35
    assert kv_sums(there) == (8000, 8000)


def test_what_failed_does_not_count_in_the_mix():
    there = book(a_card(), a_service(), a_replica(phase=Phase.FAILED))
    assert kv_sums(there) == (0, 0)


@cases(("granted", "expected"), [(4000, 0.0), (5000, 0.0), (3200, 25.0), (0, float("inf"))])
def test_oversell_in_percent(granted, expected):
    assert oversell_pct(book(a_card(), a_service(kv=4000), a_replica(kv_granted_mib=granted))) == expected


def test_oversell_of_an_empty_card_is_none():
    assert oversell_pct(book(a_card())) == 0


@cases(
    ("caps", "granted", "limit", "within"),
    [(115, 100, 15, True), (116, 100, 15, False), (0, 0, 15, True), (1, 0, 35, False), (13500, 10000, 35, True)],
)
def test_within_oversell_is_exact(caps, granted, limit, within):
    assert within_oversell(caps, granted, limit) is within


def test_the_least_room_of_a_start_is_rounded_up():
    assert least_start_mib(a_service(weights=8000, kv=4000), 15) == 9000 + 3479
    assert least_start_mib(a_service(weights=8000, kv=4000), 35) == 9000 + 2963


def test_a_start_is_granted_its_cap_where_there_is_room():
    assert start_grant(book(a_card(), a_service()), a_service()) == 4000


@cases(
    ("room_left", "expected"),
    [(13000, 4000), (12999, 3999), (12479, 3479), (12478, Code.SHORT_OF_MEMORY), (0, Code.SHORT_OF_MEMORY)],
)
def test_a_start_is_granted_what_is_left_down_to_its_limit(room_left, expected):
    got = start_grant(book(a_card(unavailable_mib=600 + 74766 - room_left)), a_service())
    assert (got.code if isinstance(got, Refusal) else got) == expected


def test_short_of_memory_says_by_how_much():
    got = start_grant(book(a_card(unavailable_mib=600 + 74766 - 10000)), a_service())
    assert got.numbers == {"card": "c1", "short_mib": 2479, "room_mib": 10000}


def test_a_lowfreq_newcomer_may_be_granted_less():
    got = start_grant(book(a_card(unavailable_mib=600 + 74766 - 12000)), a_service(profile=LOW))
    assert got == 3000


def test_a_newcomer_with_a_full_grant_may_join_a_card_over_its_limit_when_the_mix_is_within_after():
    there = book(a_card(), a_service("a", kv=1350), a_replica(1, "a", kv_granted_mib=1000))
    assert oversell_pct(there) == 35
    assert start_grant(there, a_service("b", kv=4000)) == 4000


def test_a_newcomer_is_refused_when_the_card_would_stay_over_its_limit():
    there = book(a_card(), a_service("a", kv=13500), a_replica(1, "a", kv_granted_mib=10000))
    got = start_grant(there, a_service("b", kv=1000))
    assert got.code is Code.OVERSELL
    assert got.numbers == {"card": "c1", "kv_caps_mib": 14500, "kv_granted_mib": 11000, "limit_pct": 15}


def test_one_whole_request_must_fit_in_the_grant():
    there = book(a_card(unavailable_mib=600 + 74766 - 12600))
    assert start_grant(there, a_service(one_request_mib=3600)) == 3600
    got = start_grant(there, a_service(one_request_mib=3601))
    assert (got.code, got.numbers["kv_granted_mib"]) == (Code.CONTEXT_TOO_LONG, 3600)


def test_a_service_without_kv_needs_its_fixed_part_only():
    assert start_grant(book(a_card()), a_service(kv=0)) == 0


def a_sleeper(room_left: int, *more, **fields):
    """A sleeper on a card with this much room besides it."""
    card = a_card(unavailable_mib=600 + 1300 + 74766 - 1300 - room_left)
    return book(card, a_service(), *more, a_replica(phase=Phase.ASLEEP, **fields))


@cases(("room_left", "code"), [(11700, None), (11699, Code.SHORT_OF_MEMORY)])
def test_a_wake_needs_what_it_does_not_hold_yet(room_left, code):
    there = a_sleeper(room_left)
    got = wake_fits(there, there.seats[0].replica, a_service())
    assert (got and got.code) == code
    assert got is None or got.numbers["short_mib"] == 1


def test_a_wake_needs_a_free_place_among_the_awake():
    services = [a_service(f"n{i}", weights=1000, kv=0) for i in range(4)]
    on = [a_replica(10 + i, s.name, kv_granted_mib=0) for i, s in enumerate(services)]
    there = book(a_card(), a_service(), *services, *on, a_replica(phase=Phase.ASLEEP))
    got = wake_fits(there, there.seats[0].replica, a_service())
    assert (got.code, got.numbers["awake"]) == (Code.REPLICA_LIMIT, 4)


def test_a_wake_leaves_no_oversell_above_the_limit():
    there = a_sleeper(60000, kv_granted_mib=3000)
    assert wake_fits(there, there.seats[0].replica, a_service()).code is Code.OVERSELL


def test_a_wake_on_an_unmeasured_card_is_refused():
    there = book(a_card(unavailable_mib=None), a_service(), a_replica(phase=Phase.ASLEEP))
    assert wake_fits(there, there.seats[0].replica, a_service()).code is Code.UNMEASURED


def test_awake_and_asleep_are_counted_apart():
    phases = [Phase.STARTING, Phase.READY, Phase.DRAINING, Phase.ASLEEP, Phase.FAILED, Phase.STOPPED]
    services = [a_service(f"n{i}") for i in range(6)]
    there = book(a_card(), *services, *(a_replica(i, f"n{i}", phase=p) for i, p in enumerate(phases)))
    assert (awake_count(there), asleep_count(there)) == (3, 1)


def test_leaving_frees_all_of_the_stopped_and_all_but_the_residue_of_sleepers():
    services = [a_service("a"), a_service("b")]
    there = book(
        a_card(releasing_mib=900, unavailable_mib=600 + 25200 + 900), *services, a_replica(1, "a"), a_replica(2, "b")
    )
    assert room_mib(there) == 74766 - 26000 - 900
    assert room_mib(after_leaving(there, {1})) == 74766 - 13000
    assert room_mib(after_leaving(there, (), {1})) == 74766 - 13000 - 1300
    assert room_mib(after_leaving(there, {2}, {1})) == 74766 - 1300


def test_a_seat_is_added_or_replaced_by_id():
    there = book(a_card(), a_service(), a_replica(phase=Phase.ASLEEP))
    services = {"s": a_service()}
    assert room_mib(with_seats(there, [a_replica()], services)) == 74766 - 13000
    assert room_mib(with_seats(there, [a_replica(2)], services)) == 74766 - 1300 - 13000


def test_the_book_leaves_out_who_is_stopped():
    there = book_of(a_card(), [a_replica(phase=Phase.STOPPED, want=Want.STOPPED)], {}, POLICY)
    assert there.seats == ()


def test_instances_are_admitted_one_by_one_until_the_sum_would_not_fit():
    """46,068 MiB, reserve 450, context 500 each, buffer 8 %: sixteen of 2,000 MiB, not twenty-four."""
    policy = Policy(max_replicas_per_card=16)
    card = a_card(total=46068, reserved=450)
    services = [a_service(f"n{i}", 2000, 0, 0, 500) for i in range(24)]
    on = []
    for i, service in enumerate(services):
        got = start_grant(book(card, *services, *on, policy=policy), service)
        if isinstance(got, Refusal):
            break
        on.append(a_replica(i, service.name, kv_granted_mib=0))
    assert len(on) == (46068 - 450 - 3686) // 2500 == 16
    assert got.numbers["short_mib"] == 2500 - (46068 - 450 - 3686 - 16 * 2500)

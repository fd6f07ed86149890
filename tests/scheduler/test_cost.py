"""A card-hour split: who pays for what, to the fen."""

from __future__ import annotations

from random import Random

from scheduler import cost
from scheduler.cost import (
    HOUR_S,
    CardHour,
    Part,
    Row,
    Span,
    Use,
    apportioned,
    host_memory,
    in_order,
    seconds_within,
    split,
    uses_of,
)
from tests.scheduler.cases import cases

START = 3600 * 100
TOTAL = 81920


def a_span(replica: int = 1, began: float = START, ended: float | None = None, **more) -> Span:
    more.setdefault("weights_mib", 14000)
    more.setdefault("kv_mib", 16000)
    more.setdefault("headroom_mib", 1400)
    more.setdefault("overhead_mib", 600)
    more.setdefault("service", "a")
    more.setdefault("tenant", "t")
    return Span(replica, began=began, ended=ended, **more)


def an_hour(*uses: Use, price: int = 515, **more) -> CardHour:
    more.setdefault("reserved", 450 * HOUR_S)
    more.setdefault("external", 0)
    more.setdefault("buffer", 6554 * HOUR_S)
    return CardHour(price, TOTAL * HOUR_S, uses=uses, owner="owner", **more)


def by_part(rows) -> dict[Part, int]:
    return {part: sum(r.mib_s for r in rows if r.part is part) for part in {r.part for r in rows}}


def test_a_replica_that_was_there_all_hour_pays_its_claim_in_parts():
    rows = split(an_hour(*uses_of([a_span()], START)))
    assert {part: n // HOUR_S for part, n in by_part(rows).items()} == {
        Part.WEIGHTS: 14000,
        Part.KV: 16000,
        Part.HEADROOM: 2000,
        Part.RESERVED: 450,
        Part.BUFFER: 6554,
        Part.IDLE: TOTAL - 14000 - 16000 - 2000 - 450 - 6554,
    }
    assert sum(r.fen for r in rows) == 515
    assert {r.tenant for r in rows if r.service == "a"} == {"t"}
    assert {r.tenant for r in rows if not r.service} == {"owner"}


@cases(("began", "ended", "seconds"), [
    (START - 500, START + 600, 600),
    (START + 600, START + 900, 300),
    (START + 3000, None, 600),
    (START - 900, START - 1, 0),
    (START + 3600, None, 0),
    (START + 10.4, START + 20.4, 10),
])  # fmt: skip
def test_only_the_seconds_within_the_hour_count(began, ended, seconds):
    assert seconds_within(a_span(began=began, ended=ended), START, START + HOUR_S) == seconds


def test_neighbouring_spans_add_up_whatever_their_fractions():
    dice = Random(1)
    moments = sorted(START + dice.uniform(0, HOUR_S) for _ in range(40))
    spans = [a_span(began=a, ended=b) for a, b in zip([START, *moments], [*moments, START + HOUR_S], strict=True)]
    assert sum(seconds_within(s, START, START + HOUR_S) for s in spans) == HOUR_S


def test_a_record_told_twice_or_late_counts_once():
    first, second = a_span(began=START, ended=START + 1000), a_span(began=START + 1000, kv_mib=8000)
    once = uses_of([first, second], START)
    assert uses_of([second, first, first, second], START) == once
    late = a_span(began=START, ended=None)  # its end was told only by the next one's beginning
    assert uses_of([late, second], START) == once
    assert [s.ended for s in in_order([late, second])] == [START + 1000, None]


def test_asleep_it_pays_its_residue():
    spans = [a_span(ended=START + 1800), Span(1, "a", "t", START + 1800, residue_mib=1300, host_mib=14000)]
    parts = by_part(split(an_hour(*uses_of(spans, START))))
    assert parts[Part.RESIDUE] == 1300 * 1800
    assert parts[Part.WEIGHTS] == 14000 * 1800


def test_what_is_measured_above_the_claim_is_drift():
    rows = split(an_hour(*uses_of([a_span()], START, {1: 35000})))
    parts = by_part(rows)
    assert parts[Part.DRIFT] == (35000 - 32000) * HOUR_S
    assert parts[Part.HEADROOM] == 2000 * HOUR_S


@cases("measured", [None, 20000, 30500])
def test_below_its_claim_the_claim_is_paid(measured):
    rows = split(an_hour(*uses_of([a_span()], START, {} if measured is None else {1: measured})))
    parts = by_part(rows)
    assert (parts[Part.WEIGHTS], parts[Part.KV], parts[Part.HEADROOM]) == tuple(
        n * HOUR_S for n in (14000, 16000, 2000)
    )


def test_others_memory_pushes_out_only_what_nobody_used():
    """A card over-full by somebody else: unused headroom and KV give way, then the buffer; measured memory never."""
    used = a_span(weights_mib=30000, kv_mib=30000, headroom_mib=10000)
    rows = split(an_hour(*uses_of([used], START, {1: 50600}), external=30000 * HOUR_S))
    parts = by_part(rows)
    assert parts[Part.EXTERNAL] == 30000 * HOUR_S
    assert parts[Part.WEIGHTS] == 30000 * HOUR_S
    assert parts[Part.KV] + parts[Part.HEADROOM] == (TOTAL - 450 - 30000 - 30000) * HOUR_S
    assert Part.BUFFER not in parts
    assert Part.IDLE not in parts


def test_an_unmeasured_card_bills_no_external():
    assert Part.EXTERNAL not in by_part(split(an_hour(external=None)))


def test_a_card_of_unknown_size_is_idle_at_its_price():
    assert split(CardHour(515, 0, owner="o")) == (Row(Part.IDLE, "o", 0, 515),)


def test_an_empty_card_is_its_owners():
    rows = split(an_hour())
    assert {r.part for r in rows} == {Part.RESERVED, Part.BUFFER, Part.IDLE}
    assert sum(r.fen for r in rows) == 515


@cases("amount", [0, 1, 7, 515, 10**9])
@cases("weights", [[1], [1, 1, 1], [0, 0], [5, 0, 3], [1, 10**12, 7]])
def test_apportioned_sums_and_is_within_one_of_the_quota(amount, weights):
    shares = apportioned(amount, weights)
    assert sum(shares) == amount
    whole = sum(weights)
    for share, weight in zip(shares, weights, strict=True):
        assert not whole or abs(share - amount * weight / whole) < 1


def test_ties_go_to_the_earlier():
    assert apportioned(1, [1, 1]) == [1, 0]
    assert apportioned(2, [1, 1, 1]) == [1, 1, 0]


def a_row(fen: int, service: str = "a", tenant: str = "t", part: Part = Part.KV) -> Row:
    return Row(part, tenant, fen * 1000, fen, service, 1)


def shared(rows, tokens) -> list[Row]:
    parts = cost.shared(rows, tokens)
    assert [sum(p.fen for p in of) for of in parts] == [r.fen for r in rows]
    return [part for of in parts for part in of]


def paid(rows) -> dict[str, int]:
    return {t: sum(r.fen for r in rows if r.tenant == t) for t in {r.tenant for r in rows}}


def test_a_shared_service_is_paid_by_its_callers_tokens():
    rows = shared([a_row(100), a_row(50, service="b"), a_row(30, service="")], {"a": {"x": 300, "y": 100}})
    assert paid(rows) == {"x": 75, "y": 25, "t": 80}
    assert sum(r.mib_s for r in rows) == 180_000


def test_an_hour_without_calls_stays_with_the_owner():
    assert shared([a_row(100)], {"a": {"x": 0}}) == [a_row(100)]
    assert shared([a_row(100)], {}) == [a_row(100)]


def test_roundings_are_carried_so_that_a_small_caller_pays_in_the_end():
    """A hundred rows of 1 fen at 3 %: row by row nobody would ever bill the small one."""
    rows = shared([a_row(1) for _ in range(100)], {"a": {"big": 97, "small": 3}})
    assert paid(rows) == {"big": 97, "small": 3}
    assert all(r.fen >= 0 for r in rows)


def test_shares_are_within_a_fen_for_random_callers():
    dice = Random(7)
    for _ in range(50):
        tokens = {f"t{i}": dice.randint(0, 10_000) for i in range(dice.randint(1, 6))}
        rows = [a_row(dice.randint(0, 400), part=dice.choice(list(Part))) for _ in range(dice.randint(1, 30))]
        found = shared(rows, {"a": tokens})
        assert sum(r.fen for r in found) == sum(r.fen for r in rows)
        assert min((r.fen for r in found), default=0) >= 0
        whole = sum(tokens.values())
        for tenant, n in tokens.items():
            exact = sum(r.fen for r in rows) * n / whole if whole else 0
            assert not whole or abs(paid(found).get(tenant, 0) - exact) <= 2


@cases(("fen_gib_h", "fen"), [(0, None), (2, 20), (3, 30)])
def test_host_memory_is_a_bill_of_its_own(fen_gib_h, fen):
    spans = [Span(1, "a", "t", START, residue_mib=1300, host_mib=10240), a_span(2)]
    rows = host_memory(spans, START, fen_gib_h)
    assert [r.fen for r in rows] == ([] if fen is None else [fen])

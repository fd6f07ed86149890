"""Each record is counted once, however often and in whatever batches it comes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from console.usage.models import HourlyCalls, UsageCursor
from workers.control import roll_up

AT = 1_795_949_446.0


def record(seq: int, gateway: str = "gw1", **fields: object) -> bytes:
    base = {
        "gateway": gateway,
        "seq": seq,
        "at": AT,
        "service": "hotline",
        "tenant": "wuliu",
        "key": 7,
        "outcome": "ok",
    }
    return msgspec.json.encode(base | fields)


def count(*bodies: bytes) -> dict[str, int]:
    return roll_up.count(roll_up.parse(bodies))


@pytest.mark.django_db
def test_it_counts_calls_tokens_and_outcomes_by_the_hour() -> None:
    count(
        record(1, prompt_tokens=5, generated_tokens=9),
        record(2, outcome="cut", state="cold", hold_ms=900),
        record(4, outcome="ok", state="cold", hold_ms=300),
        record(3, at=AT + 3600),
    )
    first, second = HourlyCalls.objects.order_by("hour")
    assert (first.calls, first.ok, first.cut, first.cold) == (3, 2, 1, 2)
    assert (first.prompt_tokens, first.generated_tokens, first.hold_ms) == (5, 9, 1200)
    assert (first.hold_max_ms, second.hold_max_ms) == (900, 0), "the longest of one call, not of all"
    assert second.calls == 1


@pytest.mark.django_db
def test_it_says_what_is_stored_also_for_what_it_had() -> None:
    assert count(record(1), record(2)) == {"gw1": 2}
    assert count(record(1)) == {"gw1": 2}
    assert HourlyCalls.objects.get().calls == 2


@pytest.mark.django_db
def test_gateways_do_not_hide_each_other() -> None:
    assert count(record(5, "gw1"), record(1, "gw2")) == {"gw1": 5, "gw2": 1}
    assert HourlyCalls.objects.get().calls == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"gateway": 1}', msgspec.json.encode({"gateway": "g", "seq": "x"})]
)
def test_what_is_no_record_is_left_out(body: bytes) -> None:
    assert count(body, record(1)) == {"gw1": 1}
    assert HourlyCalls.objects.get().calls == 1


@pytest.mark.django_db(transaction=True)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 12), max_size=6), st.integers(1, 12))
def test_repeated_and_overlapping_batches_count_once(ends: list[int], last: int) -> None:
    """A gateway sends in order and from its last acknowledged record on, as often as it must."""
    HourlyCalls.objects.all().delete()
    UsageCursor.objects.all().delete()
    acknowledged = 0
    for end in [*ends, last]:
        if end > acknowledged:
            acknowledged = count(*(record(seq) for seq in range(max(1, acknowledged - 2), end + 1)))["gw1"]
    assert HourlyCalls.objects.get().calls == acknowledged == max([*ends, last])

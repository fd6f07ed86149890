"""One card in numbers: whatever happens on it, the segments sum to the card."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from console.board.picture import CardFacts, CardNumbers, Facts, Group, ReplicaFacts, picture
from console.board.scopes import layout, seen_by, shape, state
from scheduler.policy import DEFAULT
from scheduler.world import Card, Claim, Host, Phase, Profile, Replica, Service, Tier, Want, World

NOW = 1_800_000_000.0
TOTAL = 46068


def world(*replicas: Replica, unavailable: int | None = 450, releasing: int = 0) -> World:
    card = Card("c1", "gpu-01", 0, "l20", TOTAL, 450, unavailable, releasing)
    services = {
        name: Service(name, name, Claim(9000, 6000, 2000), Profile.ONLINE, Tier.WARM) for name in ("own", "other")
    }
    return World({"gpu-01": Host("gpu-01", NOW)}, {"c1": card}, services, {one.id: one for one in replicas})


def replica(pk: int, service: str = "own", phase: Phase = Phase.READY, **more: object) -> Replica:
    return Replica(pk, service, ("c1",), Want.READY, phase, kv_granted_mib=6000, **more)


def draw(place: World, kv_used_pct: float | None = 50.0) -> CardNumbers:
    owners = {"own": 1, "other": 2}
    facts = Facts(
        {"c1": CardFacts(5, 37, NOW)},
        {
            pk: ReplicaFacts(owners[one.service] * 10, owners[one.service], kv_used_pct)
            for pk, one in place.replicas.items()
        },
    )
    return picture(place, facts, DEFAULT, NOW)[0]


replicas = st.lists(
    st.tuples(
        st.sampled_from(["own", "other"]),
        st.sampled_from(list(Phase)),
        st.one_of(st.none(), st.integers(0, 60000)),
        st.one_of(st.none(), st.floats(0, 1)),
    ),
    max_size=5,
)


@given(
    replicas,
    st.one_of(st.none(), st.integers(0, TOTAL)),
    st.integers(0, TOTAL),
    st.one_of(st.none(), st.floats(-5, 200)),
)
def test_segments_always_sum_to_the_card(drawn, unavailable, releasing, kv_used_pct):
    seats = [replica(i, name, phase, measured_mib=mib, progress=p) for i, (name, phase, mib, p) in enumerate(drawn, 1)]
    card = draw(world(*seats, unavailable=unavailable, releasing=releasing), kv_used_pct)
    for scope in (None, 1, 2, 3):
        for seen in seen_by([card], scope):
            assert sum(size for _, size in seen.segments) == TOTAL
            assert all(size >= 0 for _, size in seen.segments)


def test_a_ready_replica_shows_weights_kv_and_headroom():
    card = draw(world(replica(1), unavailable=450 + 15600))
    assert card.groups[0].segments == [("w", 9000), ("ku", 3000), ("kg", 3000), ("h", 2600)]
    assert dict(card.rest)["buf"] == -(-TOTAL * 8 // 100)


def test_unknown_kv_is_not_drawn_as_used():
    assert ("ku", 0) in draw(world(replica(1)), None).groups[0].segments


def test_a_card_that_cannot_be_measured_has_no_free_memory():
    card = draw(world(unavailable=None))
    assert card.mib("free") == 0
    assert card.mib("unk") > 0
    assert card.used_mib is None


def test_foreign_memory_is_one_block_without_a_name():
    card = draw(world(replica(1), replica(2, "other", in_flight=3, drain_at=NOW + 60)))
    seen = seen_by([card], 1)[0]
    assert seen.groups[1] == Group([("anon", 17600)], "online")
    assert state(card) == "notice"
    assert state(seen) == ""  # whose notice it is would be told by its state
    assert seen_by([card], 3) == []


def test_states_the_most_urgent_first():
    ready = draw(world(replica(1)))
    assert state(ready) == ""
    assert state(draw(world(replica(1, phase=Phase.STARTING)))) == "loading"
    assert state(draw(world(replica(1, phase=Phase.DRAINING)))) == "draining"
    assert state(draw(world(releasing=500))) == "releasing"
    assert state(replace(ready, stale=True, cordoned=True)) == "stale"
    assert state(replace(ready, cordoned=True)) == "cordoned"
    assert state(replace(ready, healthy=False)) == "sick"
    assert state(replace(ready, sampled_at=None)) == "unknown"


def test_the_shape_changes_only_when_the_tile_must_be_drawn_anew():
    one = draw(world(replica(1), unavailable=16000))
    assert shape(one) == shape(draw(world(replica(1, in_flight=4), unavailable=16100), 70.0))
    assert shape(one) != shape(draw(world(replica(1, phase=Phase.DRAINING))))
    assert shape(one) != shape(draw(world(replica(1), replica(2))))
    assert shape(one) != shape(replace(one, stale=True))
    assert layout([one]) != layout([])


def test_an_old_sample_is_stale_and_keeps_its_numbers():
    place = world(replica(1), unavailable=16000)
    facts = Facts({"c1": CardFacts(5, 37, NOW - 30)}, {1: ReplicaFacts(10, 1)})
    card = picture(place, facts, DEFAULT, NOW)[0]
    assert card.stale
    assert card.used_mib == 16000

"""Rules of a comparison on random pasts: equal policies have equal sides, and parts add up to the whole."""

from __future__ import annotations

from dataclasses import asdict
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from console.previews.trace import Hour, bunched, calls
from scheduler.simulation.compare import Scene, compare
from tests.properties.test_plan import SAME
from tests.properties.test_simulation import BEGAN, HASTY, HOURS, a_farm

FEW = settings(SAME, max_examples=8)


def a_scene(seed: int) -> Scene:
    farm, found = a_farm(seed)
    days = {name: [sum(c.calls for c in found if c.service == name)] * 7 for name in farm.world.services}
    return Scene(farm.world, BEGAN, BEGAN + HOURS * 3600, found, days)


def done(scene: Scene, *policies):
    going = compare(scene, *policies)
    while True:
        try:
            next(going)
        except StopIteration as end:
            return end.value


@FEW
@given(st.integers(0, 2**32))
def test_equal_policies_have_equal_sides_and_every_run_is_the_same(seed: int) -> None:
    scene = a_scene(seed)
    first = done(scene, HASTY, HASTY)
    assert first.old == first.new
    assert asdict(done(a_scene(seed), HASTY, HASTY)) == asdict(first)


@FEW
@given(st.integers(0, 2**32))
def test_classes_and_tenants_add_up_to_the_whole(seed: int) -> None:
    found = done(a_scene(seed), HASTY, HASTY).new
    for parts in (found.by_class, found.by_tenant, found.by_service):
        for name in ("calls", "cold_starts", "waited", "refused", "evictions", "reclaims", "harmful"):
            assert sum(getattr(one, name) for one in parts.values()) == getattr(found.whole, name), name


@st.composite
def hours(draw: st.DrawFn) -> list[Hour]:
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    return [
        Hour(name, 3600.0 * hour, n, ok=ok, ms=ok * draw(st.integers(0, 30_000)), prompt=n * 400, generated=n * 150)
        for hour in range(draw(st.integers(1, 4)))
        for name in names
        if (n := draw(st.integers(1, 900))) and (ok := draw(st.integers(0, n))) >= 0
    ]


@settings(SAME, max_examples=60)
@given(hours(), st.integers(0, 2**32))
def test_every_hour_has_its_calls_in_it(found: list[Hour], seed: int) -> None:
    made = calls(found, {}, seed)
    assert made == sorted(made)
    assert made == calls(found, {}, seed)
    for hour in found:
        own = [c for c in made if c.service == hour.service and hour.start <= c.at < hour.start + 3600]
        assert sum(c.calls for c in own) == hour.calls
    assert bunched(found) <= sum(hour.calls for hour in found)


@settings(SAME, max_examples=60)
@given(st.integers(1, 200), st.integers(1, 5), st.integers(0, 2**32))
def test_calls_lie_within_their_sessions(count: int, spans: int, seed: int) -> None:
    dice = Random(seed)
    begins = [600.0 * i + dice.uniform(0, 200) for i in range(spans)]
    sessions = [(a, a + dice.uniform(0, 300)) for a in begins]
    made = calls([Hour("a", 0.0, count)], {"a": sessions}, seed)
    assert all(any(a <= c.at <= b for a, b in sessions) for c in made)
    firsts = {a for a, _ in sessions[:count]}
    assert firsts <= {c.at for c in made}, "a session begins with its first call"

"""Every number of a rule: unit, range, reason; and the layers in which it may be set."""

from __future__ import annotations

from dataclasses import replace

from scheduler.layers import Overrides
from scheduler.policy import DEFAULT, Policy
from scheduler.settable import OF_POOL, OF_SERVICE, check, layer_of, may_set, numbers
from tests.scheduler.cases import cases

LAYERED = replace(
    DEFAULT,
    idle_unload_s=600,
    overrides=Overrides(
        pools={"night": {"idle_unload_s": 300, "buffer_pct": 12}},
        services={"hotline": {"idle_unload_s": 7200}, "ocr": {"grace_s": 30}},
    ),
)


def test_every_number_has_unit_range_and_reason():
    for name, about in numbers().items():
        assert about["low"] <= getattr(DEFAULT, name) <= about["high"], name
        assert len(about["why"]) > 10, name
        assert "unit" in about, name


def test_layers_name_numbers_only():
    assert OF_SERVICE < OF_POOL < numbers().keys()


@cases(
    ("values", "layer", "wrong"),
    [
        ({}, "group", set()),
        ({"buffer_pct": 8}, "group", set()),
        ({"buffer_pct": 31}, "group", {"buffer_pct"}),
        ({"x": 1}, "group", {"x"}),
        ({"grace_s": -1, "y": 0}, "group", {"grace_s", "y"}),
        ({"buffer_pct": 8, "grace_s": 60}, "pool", set()),
        ({"buffer_pct": 8, "grace_s": 60}, "service", {"buffer_pct"}),
        ({"silent_s": 20}, "pool", {"silent_s"}),
        ({"overrides": 1, "_narrow": 2}, "group", {"overrides", "_narrow"}),
    ],
)
def test_wrong_values_are_named(values, layer, wrong):
    assert set(check(values, layer)) == wrong


@cases(
    ("service", "pool", "idle_s", "grace_s", "buffer_pct"),
    [
        ("", "", 600, 300, 8),
        ("other", "day", 600, 300, 8),
        ("other", "night", 300, 300, 12),
        ("hotline", "night", 7200, 300, 12),
        ("hotline", "day", 7200, 300, 8),
        ("ocr", "night", 300, 30, 12),
    ],
)
def test_the_narrowest_value_wins(service, pool, idle_s, grace_s, buffer_pct):
    found = LAYERED.of_service(service, pool)
    assert (found.idle_unload_s, found.grace_s, found.buffer_pct) == (idle_s, grace_s, buffer_pct)
    assert found.of_service(service, pool) == found


def test_integers_stay_integers():
    policy = replace(DEFAULT, overrides=Overrides(pools={"p": {"buffer_pct": 12.0, "drain_factor": 2.0}}))
    assert isinstance(policy.of_pool("p").buffer_pct, int)
    assert isinstance(policy.of_pool("p").drain_factor, float)


def test_a_changed_policy_forgets_what_it_worked_out():
    assert LAYERED.of_pool("night").idle_unload_s == 300
    other = replace(LAYERED, overrides=Overrides(pools={"night": {"idle_unload_s": 60}}))
    assert other.of_pool("night").idle_unload_s == 60
    assert other != LAYERED


@cases(
    ("name", "pool", "service", "origin"),
    [
        ("idle_unload_s", "night", "hotline", "service"),
        ("idle_unload_s", "night", "other", "pool"),
        ("idle_unload_s", "day", "other", None),
        ("buffer_pct", "night", "hotline", "pool"),
    ],
)
def test_a_value_says_where_it_comes_from(name, pool, service, origin):
    assert LAYERED.overrides.origin(name, pool, service) == origin


def test_nothing_set_is_the_policy_itself():
    policy = Policy()
    assert policy.of_service("s", "p") is policy


@cases(("name", "layer"), [("buffer_pct", "pool"), ("grace_s", "service"), ("silent_s", "group")])
def test_a_field_has_a_narrowest_layer(name, layer):
    assert layer_of(name) == layer
    assert may_set(name, layer)
    assert may_set(name, "group")

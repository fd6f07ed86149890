"""Layers and versions of the policy: written, put in force once, withdrawn, rolled back; what the planner reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from console import state
from console.accounts.models import Role, User
from console.policies.change import Wrong, apply, apply_due, back_to, forget, in_force, withdraw, write
from console.policies.models import Layer, PolicyValue, PolicyVersion
from workers.control import periodic

NOW = datetime(2026, 3, 2, 2, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def by(db: None) -> User:
    return User.objects.create_user("op", role=Role.OPERATOR, full_name="值班员")


def group(by: User, now: datetime = NOW, **changes: float | None) -> PolicyVersion | None:
    return write(Layer.GROUP, "", changes, by=by, note="试", now=now)


def test_nothing_set_is_the_default(db: None) -> None:
    assert state.policy().idle_unload_s == 1200


def test_the_planner_reads_every_layer(by: User) -> None:
    group(by, idle_unload_s=600)
    write(Layer.POOL, "night", {"idle_unload_s": 300, "buffer_pct": 12}, by=by, note="夜间", now=NOW)
    write(Layer.SERVICE, "hotline", {"idle_unload_s": 7200}, by=by, note="热线", now=NOW)
    policy = state.policy()
    assert policy.idle_unload_s == 600
    assert policy.of_pool("night").buffer_pct == 12
    assert policy.of_service("hotline", "night").idle_unload_s == 7200
    assert policy.of_service("other", "night").idle_unload_s == 300
    assert isinstance(policy.of_pool("night").buffer_pct, int)


def test_a_version_tells_who_what_and_why(by: User) -> None:
    group(by, grace_s=120)
    version = group(by, grace_s=60, idle_unload_s=900)
    assert (version.by, version.by_name, version.note) == (by, "值班员", "试")
    assert version.changes == {"grace_s": [120.0, 60], "idle_unload_s": [None, 900]}
    assert version.values == {"grace_s": 60, "idle_unload_s": 900}
    assert version.applied_at == NOW


def test_what_changes_nothing_is_no_version(by: User) -> None:
    group(by, grace_s=120)
    assert group(by, grace_s=120) is None
    assert group(by, silent_s=None) is None
    assert PolicyVersion.objects.count() == 1


@pytest.mark.parametrize(
    ("layer", "changes", "wrong"),
    [
        (Layer.GROUP, {"buffer_pct": 99}, "buffer_pct"),
        (Layer.GROUP, {"nonsense": 1}, "nonsense"),
        (Layer.SERVICE, {"buffer_pct": 8}, "buffer_pct"),
        (Layer.POOL, {"silent_s": 20}, "silent_s"),
    ],
)
def test_what_may_not_be_set_is_refused_and_nothing_of_it_is_kept(
    by: User, layer: Layer, changes: dict[str, float], wrong: str
) -> None:
    with pytest.raises(Wrong) as error:
        write(layer, "x", changes | {"grace_s": 60}, by=by, note="", now=NOW)
    assert set(error.value.fields) == {wrong}
    assert not PolicyValue.objects.exists()
    assert not PolicyVersion.objects.exists()


def test_a_value_taken_back_comes_from_the_wider_layer_again(by: User) -> None:
    write(Layer.POOL, "night", {"buffer_pct": 12}, by=by, note="", now=NOW)
    write(Layer.POOL, "night", {"buffer_pct": None}, by=by, note="", now=NOW)
    assert state.policy().of_pool("night").buffer_pct == 8
    assert in_force(Layer.POOL, "night") == {}


def test_one_for_later_waits_for_its_time_and_is_put_in_force_once(by: User) -> None:
    version = write(Layer.GROUP, "", {"grace_s": 60}, by=by, note="", now=NOW, effective_at=NOW + HOUR)
    assert version.waits
    assert apply_due(NOW + HOUR / 2) == 0
    assert state.policy().grace_s == 300
    assert apply_due(NOW + HOUR) == 1
    assert apply_due(NOW + HOUR) == 0
    assert not apply(version, NOW + HOUR)
    assert state.policy().grace_s == 60


def test_the_loop_puts_in_force_what_is_due(by: User) -> None:
    write(Layer.GROUP, "", {"grace_s": 60}, by=by, note="", now=NOW, effective_at=NOW + HOUR)
    periodic.apply_policies()  # by the real clock its hour has passed long ago, or not come
    assert state.policy().grace_s == (60 if datetime.now(UTC) > NOW + HOUR else 300)


def test_one_that_waits_can_be_withdrawn_and_one_in_force_cannot(by: User) -> None:
    version = write(Layer.GROUP, "", {"grace_s": 60}, by=by, note="", now=NOW, effective_at=NOW + HOUR)
    assert withdraw(version, NOW)
    assert apply_due(NOW + HOUR) == 0
    assert not withdraw(group(by, grace_s=90), NOW)
    assert state.policy().grace_s == 90


def test_two_who_change_different_fields_do_not_undo_each_other(by: User) -> None:
    write(Layer.GROUP, "", {"grace_s": 60}, by=by, note="", now=NOW, effective_at=NOW + HOUR)
    group(by, idle_unload_s=900)
    apply_due(NOW + HOUR)
    assert in_force(Layer.GROUP) == {"grace_s": 60, "idle_unload_s": 900}


def test_back_to_a_version_is_a_change_like_any_other(by: User) -> None:
    first = group(by, grace_s=60)
    group(by, grace_s=90, idle_unload_s=900)
    changes = back_to(first)
    assert changes == {"grace_s": 60, "idle_unload_s": None}
    version = write(Layer.GROUP, "", changes, by=by, note="退回", now=NOW, back_to=first)
    assert in_force(Layer.GROUP) == {"grace_s": 60}
    assert version.back_to == first
    assert back_to(first) == {}


def test_a_pool_that_is_gone_sets_nothing(by: User) -> None:
    write(Layer.POOL, "night", {"buffer_pct": 12}, by=by, note="", now=NOW)
    forget(Layer.POOL, "night")
    assert not PolicyValue.objects.exists()
    assert PolicyVersion.objects.count() == 1

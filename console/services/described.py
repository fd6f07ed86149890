"""A service, or a model, as plain data for a file, and what was written in a file as a form would send it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _

from console.accounts.models import Tenant
from console.catalog.models import Model, Service
from console.fleet.models import Pool
from console.services.edit import LABELS

#: What a model is, besides its slug.
FACTS = (
    "name", "task", "weights", "weights_mib", "kv_bytes_per_token", "max_context", "min_compute_cap", "shards",
)  # fmt: skip
FIXED = ("tenant", "model")  # said once: callers, bills and weights hang on them
HOURS = frozenset({"resident_hours", "batch_hours"})
ROWS: Mapping[str, Callable[[], Mapping[str, int]]] = {
    "audience_tenants": lambda: dict(Tenant.objects.values_list("slug", "pk")),
    "pools": lambda: dict(Pool.objects.values_list("name", "pk")),
}
SERVICES = frozenset({"fallback", "long_lane"})
YES, NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off", ""})
EMPTY = frozenset({"", "null", "~"})


class Unreadable(Exception):
    """One value cannot be what it should. `field`: its name; the text says what to write."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def described(service: Service) -> dict[str, Any]:
    """Everything that may be edited and what is fixed; rows by the names that people and other sites know."""
    found: dict[str, Any] = {"tenant": service.tenant.slug, "model": service.model.slug}
    for name in LABELS:
        if name in ROWS:
            key = "slug" if name == "audience_tenants" else "name"
            rows = getattr(service, name).all() if service.pk is not None else ()
            found[name] = sorted(getattr(row, key) for row in rows)
        elif name in SERVICES:
            other = getattr(service, name)
            found[name] = other.name if other is not None else None
        else:
            found[name] = getattr(service, name)
    return found


def described_model(model: Model) -> dict[str, Any]:
    return {name: getattr(model, name) for name in FACTS}


def same(given: Any, known: Any) -> bool:
    """Is what stands in the file, where everything is text, what we would have written there?"""
    if isinstance(known, list):
        return isinstance(given, list) and len(given) == len(known) and all(map(same, given, known))
    if isinstance(known, dict):
        return isinstance(given, dict) and given.keys() == known.keys() and all(same(given[k], known[k]) for k in known)
    if isinstance(known, bool):
        return str(given).lower() in (YES if known else NO)
    return (str(given) in EMPTY) if known is None else str(given) == str(known)


class Typed:
    """Values of a file as a browser would send them. Looks each kind of rows up once."""

    def __init__(self) -> None:
        self._rows: dict[str, Mapping[str, int]] = {}

    def of(self, name: str, value: Any) -> list[str]:
        """What the field would send; [] for nothing. Raises Unreadable."""
        if name in ROWS:
            return [str(self._row(name, one)) for one in _texts(name, value)]
        if name in SERVICES:
            return [str(self._row(name, text))] if (text := _text(name, value)) not in EMPTY else []
        if name == "card_classes":
            return _texts(name, value)
        if name in HOURS and isinstance(value, list):
            return ["; ".join(_span(name, one) for one in value)]
        if Service._meta.get_field(name).get_internal_type() == "BooleanField":
            return _ticked(name, value)
        text = _text(name, value)
        return [] if text in EMPTY else [text]

    def _row(self, name: str, text: str) -> int:
        if name not in self._rows:
            self._rows[name] = ROWS[name]() if name in ROWS else dict(Service.objects.values_list("name", "pk"))
        if text not in self._rows[name]:
            raise Unreadable(name, _("没有叫 %(name)s 的。") % {"name": text[:60]})
        return self._rows[name][text]


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list | dict):
        raise Unreadable(name, _("要一个值，不是一列。"))
    return str(value)


def _texts(name: str, value: Any) -> list[str]:
    if value is None or (isinstance(value, str) and value in EMPTY):
        return []
    if not isinstance(value, list) or any(isinstance(one, list | dict) for one in value):
        raise Unreadable(name, _("要一列，写成 [一个, 又一个]；没有写 []。"))
    return [str(one) for one in value]


def _span(name: str, one: Any) -> str:
    if not isinstance(one, dict) or set(one) != {"days", "from", "to"}:
        raise Unreadable(name, _("每一段写 days、from、to，或整个写成：工作日 08:00-18:00; 星期六 09:00-12:00"))
    return f"{one['days']} {one['from']}-{one['to']}"


def _ticked(name: str, value: Any) -> list[str]:
    text = _text(name, value).lower()
    if text not in YES | NO:
        raise Unreadable(name, _("写 true 或 false。"))
    return ["on"] if text in YES else []

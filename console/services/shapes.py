"""Models to choose from: those in use here, those of the shipped catalogue by precision, or one described by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from console.catalog import catalogue
from console.catalog.models import Model

OTHER = "other"
USED, SHIPPED = "used:", "shipped:"
#: Least compute capability by precision (scheduling: bf16 8.0, fp8 8.9); the others run anywhere we schedule.
COMPUTE_CAP = {"bf16": 8.0, "fp8": 8.9}


@dataclass(frozen=True, slots=True)
class Shape:
    """What memory arithmetic needs of a model. `weights_mib`, `max_context` None: its sources did not say."""

    slug: str
    name: str
    weights: str
    weights_mib: int | None
    kv_bytes: int
    max_context: int | None
    task: str
    min_compute_cap: float


def card_class(one: str) -> str:
    """The catalogue's name of a class of cards; its id where we do not know it."""
    try:
        return str(catalogue.card(one)["name"])
    except KeyError:
        return one


def choices() -> list[Any]:
    """(group, [(value, label)]) for a select box."""
    used = list(Model.objects.order_by("name"))
    known = {row.slug for row in used}
    shipped = [
        (f"{SHIPPED}{row['id']}:{dtype}", f"{row['name']}, {dtype}")
        for row in catalogue.models()
        for dtype in row["weights_mib"]
        if row["kv_bytes_per_token"] is not None and f"{row['id']}-{dtype}" not in known
    ]
    return [
        ("", _("选一个模型")),
        (_("已在用"), [(f"{USED}{row.slug}", row.name) for row in used]),
        (_("目录"), shipped),
        (OTHER, _("其他模型（自己填权重路径）")),
    ]


def shape(choice: str, weights_path: str = "", kv_bytes: int | None = None) -> Shape | None:
    """Of a value of `choices`; None when it is not one, or is described too little."""
    if choice.startswith(USED):
        row = Model.objects.filter(slug=choice.removeprefix(USED)).first()
        return None if row is None else _of_row(row)
    if choice.startswith(SHIPPED):
        return _shipped(*choice.removeprefix(SHIPPED).rsplit(":", 1))
    if choice == OTHER and weights_path and kv_bytes:
        slug = weights_path.strip("/").replace("/", "-").lower()[:80]
        return Shape(slug, weights_path[:120], weights_path, None, kv_bytes, None, "chat", COMPUTE_CAP["bf16"])
    return None


def _of_row(row: Model) -> Shape:
    return Shape(
        row.slug,
        row.name,
        row.weights,
        row.weights_mib,
        row.kv_bytes_per_token,
        row.max_context,
        row.task,
        row.min_compute_cap,
    )


def _shipped(model: str, dtype: str = "") -> Shape | None:
    try:
        facts = catalogue.model(model)
        weights_mib = facts["weights_mib"][dtype]
    except KeyError:
        return None
    name = facts["name"] if dtype == facts["native_dtype"] else f"{facts['name']} {dtype}"
    cap = COMPUTE_CAP.get(dtype, 0.0)
    slug, kv_bytes = f"{model}-{dtype}", facts["kv_bytes_per_token"]
    return Shape(slug, name, slug, weights_mib, kv_bytes, facts["max_context"], "chat", cap)


def model_row(known: Shape, weights_mib: int) -> Model:
    """The catalogue's row of a shape, made when it is new."""
    defaults = {
        "name": known.name,
        "task": known.task,
        "weights": known.weights,
        "weights_mib": known.weights_mib or weights_mib,
        "kv_bytes_per_token": known.kv_bytes,
        "max_context": known.max_context or 0,
        "min_compute_cap": known.min_compute_cap,
    }
    return Model.objects.get_or_create(slug=known.slug, defaults=defaults)[0]

"""Models to choose from: those in use here, those of the shipped catalogue by precision, or one described by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Any

from django.core import signing
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from console.catalog import catalogue
from console.catalog.models import Model, Origin
from console.model_pages.numbers import COMPUTE_CAP, Found

OTHER = "other"
USED, SHIPPED = "used:", "shipped:"
SALT = "weights as they were read"
SLUG_LENGTH, MARK_LENGTH = 80, 8


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
    origins: Mapping[str, str] = field(default_factory=dict)  # field of Model → Origin; none: it has a row already
    shards: int | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)


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


def shape(choice: str, weights_path: str = "", kv_bytes: int | None = None, seal: str = "") -> Shape | None:
    """Of a value of `choices`; None when it is not one, or is described too little. `seal`: what was read, `sealed`."""
    if choice.startswith(USED):
        row = Model.objects.filter(slug=choice.removeprefix(USED)).first()
        return None if row is None else _of_row(row)
    if choice.startswith(SHIPPED):
        return _shipped(*choice.removeprefix(SHIPPED).rsplit(":", 1))
    if choice == OTHER and weights_path and kv_bytes is not None:
        return _described(weights_path, kv_bytes, _unsealed(seal, weights_path, kv_bytes))
    return None


def sealed(weights_path: str, found: Found) -> str:
    """What was read of a path, signed: a form brings it back, and nobody writes "read" who did not read."""
    return signing.dumps([weights_path, dict(found.numbers), dict(found.shape)], salt=SALT, compress=True)


def _unsealed(seal: str, weights_path: str, kv_bytes: int) -> Found | None:
    """None: of another path, or other numbers were typed since, or it is not ours."""
    try:
        path, numbers, parts = signing.loads(seal, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    same = path == weights_path and numbers.get("kv_bytes_per_token") in (None, kv_bytes)
    return Found(Origin.READ, numbers, parts) if same else None


def _described(path: str, kv_bytes: int, read: Found | None) -> Shape:
    """By hand, and by its files where they were read."""
    numbers = read.numbers if read is not None else {}
    return Shape(
        slug=slug_of(path),
        name=path[:120],
        weights=path,
        weights_mib=numbers.get("weights_mib"),
        kv_bytes=kv_bytes,
        max_context=numbers.get("max_context"),
        task="chat",
        min_compute_cap=numbers.get("min_compute_cap", COMPUTE_CAP["bf16"]),
        origins={"kv_bytes_per_token": Origin.HAND.value} | dict.fromkeys(numbers, Origin.READ.value),
        shards=numbers.get("shards"),
        parts=read.shape if read is not None else {},
    )


def slug_of(path: str) -> str:
    """A name for a path: readable, and of two paths never the same; so never that of the shipped catalogue either."""
    readable = re.sub(r"[^a-z0-9._]+", "-", path.lower()).strip("-._") or "model"
    mark = blake2s(path.encode(), digest_size=MARK_LENGTH // 2).hexdigest()
    return f"{readable[: SLUG_LENGTH - MARK_LENGTH - 1]}-{mark}"


def described_otherwise(path: str, kv_bytes: int) -> Model | None:
    """A model with these weights of which other numbers are known: one folder is one model."""
    return Model.objects.filter(weights=path).exclude(kv_bytes_per_token=kv_bytes).first()


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
    parts = {key: facts[key] for key in ("attention", "layers", "kv_layers", "kv_heads", "head_dim")}
    parts = {key: value for key, value in {**parts, "precision": dtype}.items() if value is not None}
    return Shape(
        slug,
        name,
        slug,
        weights_mib,
        kv_bytes,
        facts["max_context"],
        "chat",
        cap,
        _from_catalogue(facts["max_context"]),
        parts=parts,
    )


def _from_catalogue(max_context: int | None) -> dict[str, str]:
    known = ["weights_mib", "kv_bytes_per_token", "min_compute_cap", *(["max_context"] if max_context else [])]
    return dict.fromkeys(known, Origin.CATALOGUE.value)


def model_row(known: Shape, weights_mib: int) -> Model:
    """The catalogue's row of a shape, made when it is new. Run inside a transaction."""
    if (row := _standing(known)) is not None:
        return row
    numbers = {
        "weights_mib": known.weights_mib or weights_mib,
        "kv_bytes_per_token": known.kv_bytes,
        "max_context": known.max_context or 0,
        "min_compute_cap": known.min_compute_cap,
        "shards": known.shards or 1,
    }
    try:
        with transaction.atomic():
            return Model.objects.create(
                slug=known.slug,
                name=known.name,
                task=known.task,
                weights=known.weights,
                shape=dict(known.parts),
                origins={"weights_mib": Origin.HAND.value, **known.origins},
                read_at=timezone.now() if Origin.READ in known.origins.values() else None,
                **numbers,
            )
    except IntegrityError:  # another page made it a moment ago
        return Model.objects.get(slug=known.slug)


def _standing(known: Shape) -> Model | None:
    """By its slug; one described by hand by its weights too, whatever it was called when it came in by file."""
    row = Model.objects.filter(slug=known.slug).first()
    if row is None and known.slug == slug_of(known.weights):
        row = Model.objects.filter(weights=known.weights, kv_bytes_per_token=known.kv_bytes).first()
    return row

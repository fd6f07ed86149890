"""A model's numbers from its files or from the shipped catalogue, beside those that it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from hashlib import blake2s
from typing import Any

from django.conf import settings

from console.catalog import catalogue
from console.catalog.models import Model, Origin
from console.catalog.weights import folder
from console.catalog.weights.problem import Unknown

#: Fields that carry a number whose origin is told.
NUMBERS = ("weights_mib", "kv_bytes_per_token", "max_context", "min_compute_cap", "shards")
#: Least compute capability by precision (scheduling: bf16 8.0, fp8 8.9); the others run anywhere we schedule.
COMPUTE_CAP = {"bf16": 8.0, "fp8": 8.9}


@dataclass(frozen=True, slots=True)
class Found:
    """`numbers`: by field of `Model`, those that the source says. `unknown`: why it has no KV."""

    origin: Origin
    numbers: Mapping[str, Any]
    shape: Mapping[str, Any] = field(default_factory=dict)
    unknown: Unknown | None = None


def of_files(path: str) -> Found:
    """Reads headers below the site's roots. Raises Unreadable."""
    found = folder.read(settings.WEIGHTS_ROOTS, path)
    config = found.config
    numbers = {
        "weights_mib": found.weights_mib,
        "kv_bytes_per_token": config.kv_bytes_per_token,
        "max_context": config.max_context,
        "min_compute_cap": COMPUTE_CAP.get(config.precision, 0.0) if config.precision else None,
        "shards": found.shards,
    }
    shape = {name: value for name, value in asdict(config).items() if name in SHAPE}
    shape |= {"precision": config.precision, "tensors": found.tensors}
    return Found(Origin.READ, _told(numbers), _told(shape), config.unknown)


SHAPE = frozenset(
    {"architecture", "attention", "layers", "kv_layers", "sliding_layers", "kv_heads", "head_dim", "hidden"}
)


def of_catalogue(slug: str) -> Found | None:
    """What the shipped catalogue says of `model-precision`; None: it does not know it."""
    model, _, dtype = slug.rpartition("-")
    try:
        facts = catalogue.model(model)
        weights_mib = facts["weights_mib"][dtype]
    except KeyError:
        return None
    numbers = {"weights_mib": weights_mib, "min_compute_cap": COMPUTE_CAP.get(dtype, 0.0)}
    numbers |= {name: facts[name] for name in ("kv_bytes_per_token", "max_context")}
    shape = {name: facts[name] for name in ("attention", "layers", "kv_layers", "kv_heads", "head_dim")}
    return Found(Origin.CATALOGUE, _told(numbers), _told({**shape, "precision": dtype}))


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def seen(row: Model, found: Found) -> str:
    """Of the row as it is and what was found: what is written is what the person looked at."""
    was = {name: getattr(row, name) for name in (*NUMBERS, "weights")}
    text = json.dumps([was, row.origins, found.origin, found.numbers, found.shape], sort_keys=True, default=str)
    return blake2s(text.encode(), digest_size=12).hexdigest()


def take(row: Model, found: Found, now: datetime) -> bool:
    """Writes what was found over what the row was when it was read; False: somebody changed it meanwhile."""
    still = Model.objects.filter(pk=row.pk, **{name: getattr(row, name) for name in (*NUMBERS, "weights")})
    origins = row.origins | dict.fromkeys(found.numbers, found.origin.value)
    written = {**found.numbers, "shape": dict(found.shape), "origins": origins}
    if found.origin is Origin.READ:
        written["read_at"] = now
    return still.update(**written) == 1


def by_hand(row: Model, changed: list[str]) -> dict[str, str]:
    """Origins after a person typed these fields; a new path leaves nothing that was read at the old one."""
    kept = {name: origin for name, origin in row.origins.items() if "weights" not in changed or origin != Origin.READ}
    return kept | {name: Origin.HAND.value for name in changed if name in NUMBERS}

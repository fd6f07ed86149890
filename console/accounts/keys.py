"""Callers' keys: made once, shown once, kept as a hash."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

PREFIX_LENGTH = 12


class NewKey(NamedTuple):
    key: str  # shown once, never stored
    prefix: str  # to recognise it by
    digest: str  # what is stored


def new_key() -> NewKey:
    """`gk_` and 32 random bytes."""
    key = "gk_" + secrets.token_urlsafe(32)
    return NewKey(key, key[:PREFIX_LENGTH], digest_of(key))


def digest_of(key: str) -> str:
    """SHA-256 of the whole key in hex; 256 random bits need neither salt nor stretching."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()

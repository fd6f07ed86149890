"""Keys and door tokens, read from the database once a second into memory. A database away leaves the last ones."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db import Error, connections, transaction
from django.db.models import Q

from console.accounts.keys import digest_of
from console.accounts.models import ApiKey
from console.fleet.models import Host
from console.gateway.errors import invalid_key
from console.gateway.limits import Limits

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Key:
    id: int
    tenant: str
    services: frozenset[str]  # empty: all that its tenant may call
    progress_content: bool
    expires_at: float | None

    def may_call(self, service: str) -> bool:
        return not self.services or service in self.services


@dataclass(frozen=True, slots=True)
class Picture:
    keys: Mapping[str, Key]  # by digest
    door_tokens: Mapping[str, str] = field(repr=False)  # by host name


def read() -> Picture:
    """Two queries; runs in the snapshot's thread."""
    rows = ApiKey.objects.filter(revoked_at=None).values_list(
        "digest", "pk", "tenant__slug", "services", "progress_content", "expires_at"
    )
    keys = {
        digest: Key(pk, tenant, frozenset(services), progress, expires.timestamp() if expires else None)
        for digest, pk, tenant, services, progress, expires in rows
    }
    return Picture(keys, dict(Host.objects.values_list("name", "door_token")))


def write_last_used(used: Mapping[int, float]) -> None:
    """Never moves a key's last use back: another gateway may know better."""
    with transaction.atomic():
        for key, at in used.items():
            moment = datetime.fromtimestamp(at, UTC)
            older = Q(last_used_at=None) | Q(last_used_at__lt=moment)
            ApiKey.objects.filter(older, pk=key).update(last_used_at=moment)


class Snapshot:
    """What the hot path knows of the database."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._picture: Picture | None = None
        self._used: dict[int, float] = {}
        self._flush_at = time.monotonic() + limits.last_used_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="snapshot")

    @property
    def ready(self) -> bool:
        return self._picture is not None

    def authenticate(self, authorization: str) -> Key:
        """The key of a `Bearer` header. Raises `Refused` (401)."""
        scheme, _, text = authorization.partition(" ")
        keys = self._picture.keys if self._picture and scheme.lower() == "bearer" else {}
        found = keys.get(digest_of(text.strip()))
        now = time.time()
        if found is None or (found.expires_at is not None and found.expires_at <= now):
            raise invalid_key()
        self._used[found.id] = now
        return found

    def door_token(self, host: str) -> str:
        """Empty for a host the database did not name: its door will refuse."""
        return self._picture.door_tokens.get(host, "") if self._picture else ""

    async def follow(self) -> None:
        """Read again every `snapshot_s`. Runs until cancelled."""
        while True:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._turn)
            await asyncio.sleep(self._limits.snapshot_s)

    def _turn(self) -> None:
        try:
            self._picture = read()
            if time.monotonic() >= self._flush_at:
                self._flush()
        except Error as error:
            log.warning("database away, keys and hosts stay as they were: %s", type(error).__name__)
            connections.close_all()

    def _flush(self) -> None:
        self._flush_at = time.monotonic() + self._limits.last_used_s
        used, self._used = self._used, {}
        try:
            write_last_used(used)
        except Error:
            self._used = used | self._used  # newer ones win
            raise

    async def close(self) -> None:
        """Write what is left and close the connection, in the thread that owns it."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._end)
        self._thread.shutdown()

    def _end(self) -> None:
        try:
            self._flush()
        except Error as error:
            log.warning("last use of keys not written: %s", type(error).__name__)
        finally:
            connections.close_all()

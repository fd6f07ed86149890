"""What a card-hour costs whom: its price split by MiB·seconds into rows that add up to it, exactly.

Every amount of memory here is MiB·seconds within one hour of one card, every price integer fen. A card-hour is filled
in one order, each part with at most what is left of the card: what the driver reserves, what replicas were measured to
hold, what others took, what replicas claim and did not use, the buffer; the rest is idle. So a claim nobody uses never
pushes aside memory that somebody really has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

#: An hour is the unit that prices are given for.
HOUR_S = 3600
MIB_PER_GIB = 1024


class Part(StrEnum):
    """What a row of a card-hour is for. The first five are a replica's, the others the pool owner's."""

    WEIGHTS = "weights"
    KV = "kv"
    HEADROOM = "headroom"  # headroom and process overhead
    RESIDUE = "residue"  # asleep
    DRIFT = "drift"  # measured above the claim
    RESERVED = "reserved"
    EXTERNAL = "external"
    BUFFER = "buffer"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class Span:
    """One replica held so much of one card from `began` to `ended` (seconds; None: still). Sizes are MiB.

    A sleeper has only `residue_mib` on the card; `host_mib` is what its weights take of the host's memory.
    """

    replica: int
    service: str
    tenant: str
    began: float
    ended: float | None = None
    weights_mib: int = 0
    kv_mib: int = 0
    headroom_mib: int = 0
    overhead_mib: int = 0
    residue_mib: int = 0
    host_mib: int = 0


@dataclass(frozen=True, slots=True)
class Use:
    """What one replica held of the card within the hour, MiB·seconds. `measured` None: nobody could measure it."""

    replica: int
    service: str
    tenant: str
    weights: int = 0
    kv: int = 0
    headroom: int = 0
    overhead: int = 0
    residue: int = 0
    measured: int | None = None

    @property
    def claimed(self) -> tuple[tuple[Part, int], ...]:
        """In the order in which measured memory is told apart: headroom is what was needed last."""
        return (
            (Part.WEIGHTS, self.weights),
            (Part.HEADROOM, self.overhead),
            (Part.KV, self.kv),
            (Part.RESIDUE, self.residue),
            (Part.HEADROOM, self.headroom),
        )


@dataclass(frozen=True, slots=True)
class CardHour:
    """One hour of one card: `total` is its memory x 3600, the other parts MiB·seconds. `external` None: unmeasured."""

    price_fen: int
    total: int
    reserved: int = 0
    external: int | None = None
    buffer: int = 0
    owner: str = ""  # tenant that owns the pool; empty: the centre
    uses: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the bill: `tenant` pays `fen` for `mib_s`. No service or replica: a part of the pool owner's."""

    part: Part
    tenant: str
    mib_s: int
    fen: int
    service: str = ""
    replica: int | None = None


def seconds_within(span: Span, start: int, end: int) -> int:
    """Whole seconds of the span within [start, end). Both ends are rounded alike, so that neighbours add up."""
    ended = end if span.ended is None else round(span.ended)
    return max(0, min(end, ended) - max(start, round(span.began)))


def in_order(spans: Iterable[Span]) -> list[Span]:
    """The spans of one replica, none over another: a later one ends the one before, one told twice counts once."""
    ordered = sorted(spans, key=_told)
    cut = []
    for i, span in enumerate(ordered):
        following = ordered[i + 1].began if i + 1 < len(ordered) else None
        if following is not None and (span.ended is None or span.ended > following):
            span = replace(span, ended=following)
        cut.append(span)
    return cut


def _told(span: Span) -> tuple[float, ...]:
    ended = float("inf") if span.ended is None else span.ended
    sizes = (span.weights_mib, span.kv_mib, span.headroom_mib, span.overhead_mib, span.residue_mib, span.host_mib)
    return (span.began, ended, *sizes)


def uses_of(spans: Iterable[Span], start: int, measured: Mapping[int, int] | None = None) -> tuple[Use, ...]:
    """Each replica's use of the card in the hour from `start`, by replica. `measured`: replica → mean MiB it had."""
    by_replica: dict[int, list[Span]] = {}
    for span in spans:
        by_replica.setdefault(span.replica, []).append(span)
    found = (_use(in_order(own), start, (measured or {}).get(replica)) for replica, own in sorted(by_replica.items()))
    return tuple(use for use in found if use is not None)


def _use(spans: Sequence[Span], start: int, measured_mib: int | None) -> Use | None:
    weights = kv = headroom = overhead = residue = seconds = 0
    for span in spans:
        lasted = seconds_within(span, start, start + HOUR_S)
        weights += lasted * span.weights_mib
        kv += lasted * span.kv_mib
        headroom += lasted * span.headroom_mib
        overhead += lasted * span.overhead_mib
        residue += lasted * span.residue_mib
        seconds += lasted
    if not seconds:
        return None
    of = spans[-1]
    measured = None if measured_mib is None else measured_mib * seconds
    return Use(of.replica, of.service, of.tenant, weights, kv, headroom, overhead, residue, measured)


class _Bill:
    """The rows while parts are cut from the card-hour: none gets more than what is left."""

    def __init__(self, hour: CardHour) -> None:
        self.owner = hour.owner
        self.left = max(0, hour.total)
        self.parts: dict[tuple[Part, str, str, int | None], int] = {}

    def book(self, part: Part, wanted: int, use: Use | None = None) -> None:
        taken = min(max(0, wanted), self.left)
        self.left -= taken
        key = (part, self.owner, "", None) if use is None else (part, use.tenant, use.service, use.replica)
        if taken:
            self.parts[key] = self.parts.get(key, 0) + taken


def split(hour: CardHour) -> tuple[Row, ...]:
    """The rows of a card-hour; their fen sum to its price, their MiB·seconds to the card. None is empty.

    A card whose size nobody knows yet has one row: idle.
    """
    bill = _Bill(hour)
    bill.book(Part.RESERVED, hour.reserved)
    unused = [(use, part, wanted) for use in hour.uses for part, wanted in _measured(use, bill)]
    bill.book(Part.EXTERNAL, hour.external or 0)
    for use, part, wanted in unused:
        bill.book(part, wanted, use)
    bill.book(Part.BUFFER, hour.buffer)
    bill.book(Part.IDLE, bill.left)
    parts = bill.parts or {(Part.IDLE, hour.owner, "", None): 0}
    fen = apportioned(hour.price_fen, list(parts.values()))
    return tuple(
        Row(part, tenant, mib_s, amount, service, replica)
        for ((part, tenant, service, replica), mib_s), amount in zip(parts.items(), fen, strict=True)
    )


def _measured(use: Use, bill: _Bill) -> list[tuple[Part, int]]:
    """Books what the replica was measured to have; what it claims beyond that comes back, to be booked later.

    Unmeasured, it is taken to have what it claims without headroom, as the ledger does.
    """
    known = sum(wanted for _, wanted in use.claimed) - use.headroom if use.measured is None else use.measured
    unused = []
    for part, wanted in use.claimed:
        had = min(wanted, known)
        known -= had
        bill.book(part, had, use)
        unused.append((part, wanted - had))
    bill.book(Part.DRIFT, known, use)
    return unused


def apportioned(amount: int, weights: Sequence[int]) -> list[int]:
    """`amount` in integers by weight: largest remainder, ties to the earlier. All weights 0: to the first."""
    whole = sum(weights)
    if not whole:
        return [amount if i == 0 else 0 for i in range(len(weights))]
    shares = [amount * weight // whole for weight in weights]
    by_rest = sorted(range(len(weights)), key=lambda i: (-(amount * weights[i] % whole), i))
    for i in by_rest[: amount - sum(shares)]:
        shares[i] += 1
    return shares


def shared(rows: Sequence[Row], tokens: Mapping[str, Mapping[str, int]]) -> list[tuple[Row, ...]]:
    """Each row of an hour, that of a called service split among the callers' tenants by tokens (service → tenant → n).

    A row's parts sum to the row. Roundings of one service are carried on from row to row, so that no tenant gains or
    loses more than a fen or two by them in all. A service without calls stays with its owner.
    """
    found: list[tuple[Row, ...]] = []
    owed: dict[str, dict[str, int]] = {}
    for row in rows:
        callers = {tenant: n for tenant, n in sorted(tokens.get(row.service, {}).items()) if n > 0}
        if not row.service or not callers or list(callers) == [row.tenant]:
            found.append((row,))
            continue
        due = owed.setdefault(row.service, dict.fromkeys(callers, 0))
        fen = _carried(row.fen, callers, due)
        sizes = dict(zip(callers, apportioned(row.mib_s, list(callers.values())), strict=True))
        paying = [tenant for tenant in callers if sizes[tenant] or fen[tenant]]
        found.append(tuple(replace(row, tenant=tenant, fen=fen[tenant], mib_s=sizes[tenant]) for tenant in paying))
    return found


def _carried(fen: int, callers: Mapping[str, int], due: dict[str, int]) -> dict[str, int]:
    """Who pays how much of this row; `due` is what roundings owe each caller, in fen x all tokens."""
    whole = sum(callers.values())
    for tenant, tokens in callers.items():
        due[tenant] += fen * tokens
    paid = {tenant: max(0, amount // whole) for tenant, amount in due.items()}
    while (missing := fen - sum(paid.values())) != 0:
        step = 1 if missing > 0 else -1
        able = [t for t in due if step > 0 or paid[t] > 0]
        tenant = max(able, key=lambda t: (step * (due[t] - paid[t] * whole), t))
        paid[tenant] += step
    for tenant, amount in paid.items():
        due[tenant] -= amount * whole
    return paid


def host_memory(spans: Iterable[Span], start: int, fen_gib_h: int) -> tuple[Row, ...]:
    """The second bill: sleepers' weights in host memory in the hour from `start`, at a price a GiB and hour."""
    by_replica: dict[int, list[Span]] = {}
    for span in spans:
        by_replica.setdefault(span.replica, []).append(span)
    rows = []
    for replica, own in sorted(by_replica.items()):
        mib_s = sum(seconds_within(s, start, start + HOUR_S) * s.host_mib for s in in_order(own))
        fen = mib_s * fen_gib_h // (MIB_PER_GIB * HOUR_S)
        if mib_s and fen_gib_h:
            rows.append(Row(Part.RESIDUE, own[0].tenant, mib_s, fen, own[0].service, replica))
    return tuple(rows)

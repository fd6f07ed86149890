"""What to do next with one replica: its want against what the machine shows. Pure: all it needs is handed in.

It is asked again and again and always says only the next step, so it does not matter how often, or after which crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from workers.host import memo as states
from workers.host import words
from workers.host.engine import Gauges, Health
from workers.host.launchers.process import Running
from workers.host.limits import Limits
from workers.host.memo import Memo
from workers.messages import ReplicaReport, ReplicaWant


class Step(Enum):
    NOTHING = "nothing"
    START = "start"
    ARRIVED = "arrived"  # it became ready, from a start or a wake
    SLEPT = "slept"
    WAKE = "wake"
    SLEEP = "sleep"
    ROUTE = "route"  # callers may reach it through the door
    UNROUTE = "unroute"  # no new call reaches it
    TERM = "term"
    KILL = "kill"
    GONE = "gone"  # nothing of it is left on the machine
    CRASHED = "crashed"
    HUNG = "hung"
    STALLED = "stalled"  # it says that it is well, has calls, and counts no token
    SLOW = "slow"  # a start or a call that ran out of time
    STRANGER = "stranger"  # another model answers behind its socket
    CALL_FAILED = "call_failed"


@dataclass(frozen=True, slots=True)
class Call:
    """A sleep or wake that runs beside; `error` None: it succeeded, or has not ended."""

    what: str
    since: float
    ended: bool = False
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What the machine shows of a replica now. `in_flight`: at the door, read after the last change of its map."""

    pids: tuple[Running, ...] = ()
    unsure: bool = False  # its processes were missing once: the next look tells
    health: Health | None = None
    misses: int = 0  # unanswered probes in a row
    sick: int = 0  # bad answers in a row
    names: list[str] | None = None
    asleep: bool | None = None
    in_flight: int | None = None
    routed: bool = False
    call: Call | None = None
    call_failed_at: float | None = None
    last_term_at: float | None = None
    stage: str = ""
    progress: float | None = None
    gauges: Gauges = Gauges()
    moved_at: float | None = None  # since then it has calls and the same count of tokens; None: it has none
    measured_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """A replica's want, or that it shall go because no want names it. `None` in its place: not told yet."""

    want: str
    attempt: int
    force: bool = False
    shutdown_s: int = 15
    stall_s: int = 120

    @classmethod
    def of(cls, want: ReplicaWant) -> Wish:
        return cls(want.want, want.attempt, want.force, want.shutdown_s, want.stall_s)


def next_step(wish: Wish | None, memo: Memo, look: Look, others_turn: bool, now: float, limits: Limits) -> Step:
    """`others_turn`: a start, sleep or wake of another replica is going on on one of its cards."""
    if look.unsure:
        return Step.NOTHING
    if not look.pids:
        return _of_nothing(wish, memo, others_turn)
    if not memo.lives:
        return Step.NOTHING if wish is None else Step.KILL
    seen = _news(memo, look, now, limits)
    if seen in (Step.ARRIVED, Step.SLEPT):
        return seen
    if wish is None:
        return Step.NOTHING
    if wish.want == words.STOPPED or wish.attempt > memo.attempt or memo.term_at is not None:
        return _stop(wish, memo, look, others_turn, now, limits)
    if seen is Step.NOTHING and look.moved_at is not None and now - look.moved_at >= wish.stall_s:
        return Step.STALLED
    return seen if seen is not Step.NOTHING else _towards(wish, memo, look, others_turn, now, limits)


def _of_nothing(wish: Wish | None, memo: Memo, others_turn: bool) -> Step:
    if memo.lives:
        asked = memo.term_at is not None or (wish is not None and wish.want == words.STOPPED)
        return Step.GONE if asked else Step.CRASHED
    if wish is None:
        return Step.NOTHING
    if wish.want == words.READY and wish.attempt > memo.attempt:
        return Step.NOTHING if others_turn else Step.START
    return Step.GONE if wish.want == words.STOPPED and memo.state == states.FAILED else Step.NOTHING


def _news(memo: Memo, look: Look, now: float, limits: Limits) -> Step:
    """What happened to it without our doing."""
    if not any(one.leads for one in look.pids):
        return Step.CRASHED
    if look.call is not None:
        return _of_call(look.call, now, limits)
    if memo.state == states.LOADING:
        return _of_start(memo, look, now, limits)
    if memo.state == states.ASLEEP and look.asleep is False and look.health is Health.GOOD:
        return Step.ARRIVED
    if memo.state == states.AWAKE and look.asleep is True:
        return Step.SLEPT
    if look.health is Health.SICK and look.sick >= limits.sick_probes:
        return Step.CRASHED
    return Step.HUNG if look.misses >= limits.hung_probes else Step.NOTHING


def _of_call(call: Call, now: float, limits: Limits) -> Step:
    if call.ended:
        if call.error is None:
            return Step.ARRIVED if call.what == "wake" else Step.SLEPT
        return Step.CALL_FAILED
    bound_s = limits.wake_s if call.what == "wake" else limits.sleep_s
    return Step.SLOW if now - call.since > bound_s else Step.NOTHING


def _of_start(memo: Memo, look: Look, now: float, limits: Limits) -> Step:
    if look.health is Health.GOOD and look.names:
        return Step.ARRIVED if memo.served_name in look.names else Step.STRANGER
    return Step.SLOW if now - memo.started_at > limits.start_s else Step.NOTHING


def _towards(wish: Wish, memo: Memo, look: Look, others_turn: bool, now: float, limits: Limits) -> Step:
    """The next step of a living engine towards ready, drained or asleep."""
    if look.call is not None or memo.state == states.LOADING:
        return Step.NOTHING
    if wish.want == words.READY and memo.state == states.ASLEEP:
        return Step.NOTHING if others_turn else Step.WAKE
    if wish.want == words.ASLEEP and memo.state == states.AWAKE:
        if look.routed:
            return Step.UNROUTE
        if not memo.sleep_mode or not (wish.force or look.in_flight == 0):
            return Step.NOTHING
        waits = look.call_failed_at is not None and now - look.call_failed_at < limits.retry_sleep_s
        return Step.NOTHING if others_turn or waits else Step.SLEEP
    reachable = memo.state == states.AWAKE and wish.want in (words.READY, words.DRAINED)
    return Step.ROUTE if reachable and not look.routed else Step.NOTHING


def _stop(wish: Wish, memo: Memo, look: Look, others_turn: bool, now: float, limits: Limits) -> Step:
    """The order of a stop: out of the door's map, door counts zero, SIGTERM again and again, SIGKILL of the group."""
    if look.routed or memo.stop_at is None:
        return Step.UNROUTE
    if memo.term_at is None:
        in_use = memo.state == states.AWAKE and look.in_flight != 0  # unknown is not zero
        return Step.NOTHING if not wish.force and (in_use or others_turn) else Step.TERM
    if not any(one.leads for one in look.pids):
        return Step.KILL  # its head is gone: what is left will not end by itself
    teardown_s = limits.force_teardown_s if wish.force else limits.teardown_s
    bound_s = wish.shutdown_s + teardown_s if memo.state == states.AWAKE else limits.cancel_s
    if now - memo.term_at >= bound_s:
        return Step.KILL
    due = look.last_term_at is None or now - look.last_term_at >= limits.term_repeat_s
    return Step.TERM if due else Step.NOTHING


def phase_of(wish: Wish | None, memo: Memo, look: Look) -> tuple[str, str]:
    """(phase, stage) as it is reported."""
    ready = wish is None or wish.want == words.READY
    if wish is not None and wish.attempt > memo.attempt:
        # an older attempt may still be on its way out; its memory counts as long as it is not gone
        return (words.STARTING, "queued") if ready or look.pids else (words.STOPPED, "")
    if not memo.lives:
        if look.pids:
            return words.DRAINING, "kill"
        return (words.FAILED, "") if memo.state == states.FAILED else (words.STOPPED, "")
    if memo.stop_at is not None:
        return words.DRAINING, _stop_stage(memo, look)
    if memo.state == states.LOADING:
        return words.STARTING, look.stage or "process"
    return _phase_of_loaded(ready, memo, look)


def _phase_of_loaded(ready: bool, memo: Memo, look: Look) -> tuple[str, str]:
    if look.call is not None:
        return (words.STARTING, "waking") if look.call.what == "wake" else (words.DRAINING, "sleeping")
    if memo.state == states.ASLEEP:
        return words.ASLEEP, "queued" if ready and look.asleep else ""
    return (words.READY, "") if ready else (words.DRAINING, "")


def _stop_stage(memo: Memo, look: Look) -> str:
    if memo.term_at is None:
        return "door"
    return "term" if look.pids else "kill"


def report(replica: int, wish: Wish | None, memo: Memo, look: Look, now: float) -> ReplicaReport:
    """Also notes in `memo` since when the phase is what it is."""
    phase, stage = phase_of(wish, memo, look)
    if phase != memo.phase:
        memo.phase, memo.since = phase, now
    failed = phase == words.FAILED
    return ReplicaReport(
        id=replica,
        attempt=max(memo.attempt, wish.attempt) if wish else memo.attempt,
        phase=phase,
        cards=list(memo.cards),
        since=memo.since,
        stage=stage,
        progress=look.progress if phase == words.STARTING else None,
        measured_mib=look.measured_mib,
        kv_used_pct=look.gauges.kv_used_pct,
        running=look.gauges.running,
        waiting=look.gauges.waiting,
        door_in_flight=look.in_flight,
        can_sleep=memo.sleep_mode and look.asleep is not None,
        took_s=memo.took_s,
        took=memo.took,
        fault=memo.fault if failed else "",
        fault_text=memo.fault_text if failed else "",
        fatal=memo.fatal and failed,
    )

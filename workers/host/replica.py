"""One replica on this host: a thread that looks, takes the next step of `sync.next_step`, and says what it sees."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from dataclasses import replace
from pathlib import Path

from workers.host import faults, sync, words
from workers.host import memo as states
from workers.host.command import build
from workers.host.engine import CallFailed, Engine, Gauges
from workers.host.engines.base import Refused
from workers.host.eyes import Eyes
from workers.host.surroundings import Surroundings
from workers.host.sync import Call, Look, Step, Wish
from workers.messages import ReplicaReport, ReplicaWant

log = logging.getLogger(__name__)


class Replica:
    def __init__(self, number: int, around: Surroundings) -> None:
        self.id = number
        self.around = around
        self.folder: Path = around.settings.engines / str(number)
        self.memo = states.load(self.folder)
        self.told: tuple[ReplicaWant | None, Wish | None] = (None, None)  # set as one by the thread that takes wants
        # As this replica's own thread sees them during one turn.
        self.want: ReplicaWant | None = None
        self.wish: Wish | None = None
        self.finished = False  # nothing of it is on the machine: forgotten when nobody names it
        self._look = Look()
        self._eyes = Eyes(number, self.folder, around)
        self._call: Call | None = None
        self._last_term_at: float | None = None
        self._failed_call_at: float | None = None
        self._saved: bytes = b""
        self._kick = threading.Event()
        self._halt = threading.Event()
        self._adopt()
        self.report: ReplicaReport = self._say(time.time())
        self._thread = threading.Thread(target=self._run, name=f"replica-{number}", daemon=True)

    def _adopt(self) -> None:
        """An engine that runs without a memo (its folder was emptied) is a start that nobody remembers."""
        found = self.around.launcher.scan(self.around.limits.scan_age_s).get(self.id, [])
        if found and not self.memo.attempt:
            started_at = min(one.started_at for one in found)
            self.memo = states.Memo(attempt=found[0].attempt, state=states.LOADING, started_at=started_at)
        if self.memo.on_its_way and found:
            self.around.turns.take(self.id, self.memo.cards)
        self._look = replace(self._look, pids=tuple(found))

    def begin(self) -> None:
        self._thread.start()

    def tell(self, want: ReplicaWant | None) -> None:
        """The want of this replica; None: the host's want does not name it, so it shall go."""
        wish = Wish.of(want) if want else Wish(words.STOPPED, self.memo.attempt)
        before, self.told = self.told, (want, wish)
        if wish != before[1]:
            self._kick.set()

    def tell_again(self, told: bool) -> None:
        """A replica found after the host's want came: nobody named it."""
        if told:
            self.tell(None)

    def halt(self) -> None:
        """Ends the thread, not the engine."""
        self._halt.set()
        self._kick.set()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def forget(self) -> None:
        """Nothing of it is on the machine and nobody names it: its folder goes too."""
        self.halt()
        self.join(self.around.limits.quick_tick_s)  # it has nothing left to look at, so it ends at once
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        while not self._halt.is_set():
            self._kick.clear()
            step = Step.NOTHING
            try:
                step = self._turn()
            except Exception:  # one odd engine must not end the care for it
                log.exception("replica %s", self.id)
            limits = self.around.limits
            settled = step is Step.NOTHING and self._call is None and self.memo.state in _SETTLED
            settled = settled and self.memo.stop_at is None and self._look.misses == 0
            settled = settled and not self._look.unsure and (self._look.routed or self.memo.state != states.AWAKE)
            self._kick.wait(limits.tick_s if settled else limits.quick_tick_s)
        self._eyes.forget()

    def _turn(self) -> Step:
        """One look and one step."""
        now = time.time()
        self.want, self.wish = self.told
        self._tidy()
        told = replace(
            self._look, call=self._call, call_failed_at=self._failed_call_at, last_term_at=self._last_term_at
        )
        self._look = self._eyes.see(self.memo, told, now)
        others = self.around.turns.busy(self.id, self.want.cards if self.want else self.memo.cards)
        step = sync.next_step(self.wish, self.memo, self._look, others, now, self.around.limits)
        if step is not Step.NOTHING:
            self._take(step, now)
            self._look = replace(self._look, call=self._call, routed=self.around.keeper.has(self.id))
        self._publish(now)
        return step

    def _tidy(self) -> None:
        """A stop or a wake that was called off before it had begun in earnest leaves no trace."""
        memo, wish = self.memo, self.wish
        if wish is None:
            return
        if memo.term_at is None and wish.want != words.STOPPED and wish.attempt <= memo.attempt:
            memo.stop_at = None
        if memo.wake_at is not None and self._call is None and wish.want != words.READY and self._look.asleep:
            memo.wake_at = None
            self.around.turns.free(self.id)

    # Doing

    def _take(self, step: Step, now: float) -> None:
        if step not in (Step.TERM, Step.START):
            log.info("replica %s attempt %s: %s", self.id, self.memo.attempt, step.value)
        match step:
            case Step.START:
                self._start(now)
            case Step.ARRIVED:
                self._arrived(now)
            case Step.SLEPT:
                self._slept()
            case Step.WAKE | Step.SLEEP:
                self._call_engine(step.value, now)
            case Step.ROUTE:
                self.memo.stop_at = None
                self.around.keeper.route(self.id, self.folder / "sock")
            case Step.UNROUTE:
                self._unroute(now)
            case Step.TERM:
                self._term(now)
            case Step.KILL:
                self.around.launcher.kill(list(self._look.pids))
            case Step.GONE:
                self._end(states.STOPPED)
            case _:
                self._fail(_fault_of(step, self._eyes.log(), self._call))

    def _start(self, now: float) -> None:
        want = self.want
        totals = self.around.telemetry.totals_mib()
        if want is None or totals is None:
            return  # nobody can say how large the cards are: nothing is started on a guess
        if not self.around.turns.take(self.id, want.cards):
            return
        memo = states.Memo(attempt=want.attempt, state=states.LOADING, service=want.service, started_at=now)
        memo.kind = want.engine.kind
        memo.served_name, memo.cards, memo.sleep_mode = want.engine.served_name, want.cards, want.engine.sleep_mode
        memo.phase, memo.since = self.memo.phase, self.memo.since
        self.memo = memo
        self._fresh()
        self._save()  # before the process: an agent that dies in between finds a start that has failed, not an orphan
        try:
            missing = [card for card in want.cards if card not in totals]
            if missing:
                raise Refused("no_card", f"本机没有这些卡 {', '.join(missing)} (no such card)", fatal=False)
            total_mib = min(totals[card] for card in want.cards)
            self.around.launcher.start(build(want, self.around.settings, total_mib, os.environ))
        except Refused as refusal:
            self._fail(faults.Fault(refusal.code, refusal.text, refusal.fatal))
        except (OSError, ValueError) as error:
            self._fail(faults.Fault("launch_failed", f"引擎无法启动 {type(error).__name__}: {error}"))

    def _fresh(self) -> None:
        self._eyes.forget()
        self._call, self._last_term_at, self._failed_call_at = None, None, None
        self._look = Look()

    def _arrived(self, now: float) -> None:
        memo = self.memo
        began = memo.started_at if memo.state == states.LOADING else memo.wake_at
        if began is not None:
            memo.took_s, memo.took = round(now - began, 3), "start" if memo.state == states.LOADING else "wake"
        memo.state, memo.wake_at = states.AWAKE, None
        self._settled()
        if self.wish and self.wish.want == words.READY and memo.stop_at is None:
            self.around.keeper.route(self.id, self.folder / "sock")  # before the report: then a caller may come

    def _slept(self) -> None:
        self.around.keeper.unroute(self.id)
        self.memo.state = states.ASLEEP
        self._settled()
        self._look = replace(self._look, asleep=True)

    def _settled(self) -> None:
        self._call = None
        self.around.turns.free(self.id)
        self._look = replace(self._look, asleep=None, misses=0, sick=0, gauges=Gauges(), moved_at=None)

    def _call_engine(self, what: str, now: float) -> None:
        if not self.around.turns.take(self.id, self.memo.cards):
            return
        if what == "wake":
            self.memo.wake_at = now
        self._save()
        cut = bool(self.wish and self.wish.force)
        self._call = Call(what, now)
        threading.Thread(target=self._call_run, args=(what, now, cut), name=f"{what}-{self.id}", daemon=True).start()

    def _call_run(self, what: str, since: float, cut: bool) -> None:
        limits = self.around.limits
        engine = Engine(self.folder / "sock", limits.wake_s if what == "wake" else limits.sleep_s)
        error = None
        try:
            engine.wake() if what == "wake" else engine.sleep(cut)
        except CallFailed as failed:
            error = str(failed)
        finally:
            engine.close()
        if self._call is not None and self._call.since == since:
            self._call = Call(what, since, ended=True, error=error)
            self._kick.set()

    def _unroute(self, now: float) -> None:
        self.around.keeper.unroute(self.id)
        if self.wish and (self.wish.want == words.STOPPED or self.wish.attempt > self.memo.attempt):
            self.memo.stop_at = self.memo.stop_at or now

    def _term(self, now: float) -> None:
        self.memo.term_at = self.memo.term_at or now
        self._last_term_at = now
        self._save()
        self.around.launcher.terminate(list(self._look.pids))

    def _fail(self, fault: faults.Fault) -> None:
        if self._call is not None and self._call.what == "sleep" and fault.code == "sleep_refused":
            log.warning("replica %s: %s", self.id, fault.text)
            self._failed_call_at = time.time()
            self._call = None
            self.around.turns.free(self.id)
            return
        self.memo.fault, self.memo.fault_text, self.memo.fatal = fault.code, fault.text, fault.fatal
        self._end(states.FAILED)
        self.around.launcher.kill(list(self._look.pids))

    def _end(self, state: str) -> None:
        self.around.keeper.unroute(self.id)
        self.around.turns.free(self.id)
        self.memo.state = state
        self.memo.wake_at = self.memo.stop_at = self.memo.term_at = None
        pids = self._look.pids
        self._fresh()
        self._look = replace(self._look, pids=pids)
        if not pids:
            (self.folder / "sock").unlink(missing_ok=True)

    # Saying

    def _say(self, now: float) -> ReplicaReport:
        said = sync.report(self.id, self.wish, self.memo, self._look, now)
        return said if said.cards or self.want is None else replace(said, cards=list(self.want.cards))

    def _publish(self, now: float) -> None:
        before, self.report = self.report, self._say(now)
        self._save()
        if (before.phase, before.stage, before.attempt) != (self.report.phase, self.report.stage, self.report.attempt):
            self.around.changed.set()
        self.finished = not self.memo.lives and not self._look.pids

    def _save(self) -> None:
        content = repr(self.memo).encode()
        if content != self._saved and self.memo.attempt:
            states.save(self.folder, self.memo)
            self._saved = content


_SETTLED = (states.AWAKE, states.ASLEEP, states.STOPPED, states.FAILED)


def _fault_of(step: Step, text: str, call: Call | None) -> faults.Fault:
    match step:
        case Step.CRASHED:
            return faults.read(text, "crashed", "引擎进程意外退出 (engine ended unasked)")
        case Step.HUNG:
            return faults.Fault("hung", "引擎连续多次不回应健康检查 (health probes went unanswered)")
        case Step.STALLED:
            return faults.Fault("stalled", "引擎自称健康，却长时间没有为在途的调用算出词元 (calls run, no token comes)")
        case Step.SLOW:
            return faults.Fault("timeout", "启动或唤醒超过时限 (start or wake took too long)")
        case Step.STRANGER:
            return faults.Fault("wrong_model", "引擎报告的模型名与所要的不符 (engine serves another model)", fatal=True)
        case _:
            error = call.error if call and call.error else ""
            code = "sleep_refused" if call and call.what == "sleep" else "wake_failed"
            found = faults.read(f"{text}\n{error}", code, error)
            return found if code == "wake_failed" else faults.Fault(code, error)

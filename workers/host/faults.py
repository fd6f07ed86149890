"""Why an engine failed: its exit code does not tell, the true reason is a line somewhere in its log."""

from __future__ import annotations

import re
from dataclasses import dataclass

from workers.host.engines import ENGINES

#: Last words that only say that something failed before.
_EMPTY = re.compile(r"initialization failed|See (root cause|stack trace)|Engine core proc|EngineDeadError")
_ERROR = re.compile(r"\b[A-Za-z_.]*(Error|Exception)\b: ?\S|^\S+: error: ")
_PREFIX = re.compile(r"^\([^)]*pid=\d+\)\s+|^(ERROR|CRITICAL|WARNING) \S+ \S+ \[[^\]]*\]\s*")


@dataclass(frozen=True, slots=True)
class Fault:
    """`code` is typed, `text` the engine's own words, `fatal`: another card would not help."""

    code: str
    text: str
    fatal: bool = False


def read(log: str, code: str, text: str, kind: str = "vllm", chars: int = 400) -> Fault:
    """The reason in the end of a log; `code` and `text` where the log does not tell."""
    lines = [clean(line) for line in log.splitlines()]
    for pattern, typed, fatal in ENGINES[kind].FAULTS:
        for line in reversed(lines):
            if pattern.search(line):
                return Fault(typed, line[:chars], fatal)
    errors = [line for line in lines if _ERROR.search(line) and not _EMPTY.search(line)]
    return Fault(code, (errors[-1] if errors else text)[:chars])


def clean(line: str) -> str:
    """Without vLLM's process and log prefixes."""
    previous = None
    while previous != line:
        previous, line = line, _PREFIX.sub("", line)
    return line.strip()

"""The host agent's Celery worker: one queue, one task, one thread; what lasts runs in the agent's own threads.

python -m celery -A workers.host.app worker -P threads -c 1 --without-gossip --without-mingle --without-heartbeat
"""

from __future__ import annotations

import logging
import os
from typing import Any

from celery import bootsteps

from workers.app import make
from workers.host import settings
from workers.host.agent import Agent
from workers.host.limits import DEFAULT
from workers.host.wire import Wire
from workers.messages import read_want

log = logging.getLogger(__name__)

SETTINGS = settings.read()
REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
_PREFIX = f"host:{SETTINGS.host}:"

app = make("gongka-host", f"{_PREFIX}want", _PREFIX)
app.conf.update(worker_hijack_root_logger=False, task_create_missing_queues=False)

_agent: Agent | None = None


class AgentStep(bootsteps.StartStopStep):  # type: ignore[misc]
    """Reporter, sampler and door begin before the first want can come."""

    requires = {"celery.worker.components:Pool"}

    def start(self, worker: Any) -> None:
        global _agent
        logging.getLogger("httpx").setLevel(logging.WARNING)
        _agent = Agent(SETTINGS, Wire(REDIS_URL, SETTINGS.host, DEFAULT), DEFAULT)
        _agent.begin()

    def stop(self, worker: Any) -> None:
        global _agent
        if _agent is not None:
            _agent.halt()
            _agent = None

    terminate = stop


app.steps["worker"].add(AgentStep)


@app.task(name="want")  # type: ignore[untyped-decorator]
def want(**arguments: Any) -> None:
    """Keyword arguments: `workers.messages.HostWant` as builtins. Anything else is dropped, and said once a time."""
    try:
        wanted = read_want(arguments)
    except ValueError as error:
        log.error("a want that is none: %s", error)
        return
    if _agent is not None:
        _agent.apply(wanted)

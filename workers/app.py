"""Celery between control, jobs and hosts: what all of our workers agree on."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from celery import Celery
from kombu import serialization
from kombu.entity import Exchange, Queue

#: JSON like any other, whose parts may be JSON already (`msgspec.Raw`): a farm wants most of what it wanted before.
READY_JSON = "ready-json"
serialization.register(READY_JSON, msgspec.json.encode, None, "application/json", "utf-8")  # type: ignore[no-untyped-call]

VISIBILITY_S = 30  # longer than a want's `expires`: what is redelivered has by construction expired


def queue(name: str) -> Any:
    """The default exchange: the queue's name is the Redis key, and there are no binding keys."""
    return Queue(name, Exchange("", type="direct"), routing_key=name)  # type: ignore[no-untyped-call]


def host_queue(host: str) -> Any:
    return queue(f"host:{host}:want")


def settings(prefix: str = "") -> dict[str, Any]:
    """Celery's configuration; `prefix` names the key space of kombu's bookkeeping."""
    return {
        "broker_url": os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0"),
        "broker_transport": "workers.broker:Transport",
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # the default of 100 ends the worker in a long outage
        "broker_connection_timeout": 3,
        "broker_pool_limit": 8,  # the loop holds one for as long as it leads
        "broker_transport_options": {
            "visibility_timeout": VISIBILITY_S,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "socket_timeout": 10,  # kombu would wait for ever on a frozen broker
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
            "priority_steps": [0],
            "unacked_key": f"{prefix}unacked",
            "unacked_index_key": f"{prefix}unacked_index",
            "unacked_mutex_key": f"{prefix}unacked_mutex",
        },
        "task_publish_retry": False,  # the next tick is the retry
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "worker_enable_remote_control": False,
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": True,
        "worker_redirect_stdouts": False,
        "task_soft_time_limit": None,
        "beat_enable_remote_control": False,
        "beat_max_loop_interval": 1,
    }


def make(name: str, own_queue: str, prefix: str = "") -> Celery:
    """An app that consumes `own_queue` and nothing else."""
    app = Celery(name)
    app.conf.update(settings(prefix), task_queues=[queue(own_queue)], task_default_queue=own_queue)
    app.conf.task_default_exchange = ""
    app.conf.task_default_routing_key = own_queue
    return app

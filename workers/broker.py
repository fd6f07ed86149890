"""Redis as Celery's broker, with one line mended: a message that could not be acknowledged is let go of nevertheless.

kombu 5.7 keeps it as delivered when Redis goes away in the middle of its acknowledgement. A consumer that may hold one
message at a time then reads nothing more, so it does not even notice that its connection is lost: it is deaf for good.
Redis's own books on the message went with the connection or are restored after `visibility_timeout`, as any other's.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import redis, virtual


class QoS(redis.QoS):
    def ack(self, delivery_tag: Any) -> None:
        try:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]
        except Exception:
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]
            raise


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    Channel = Channel

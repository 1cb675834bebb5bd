"""
Events of queues (streams ``queue:NAME``).
"""

from __future__ import annotations

from typing import ClassVar

from domain.event import Event
from domain.queues import QueueSpec


class QueueDefined(Event):
    """
    Say what a queue is made of from now on; the first one brings it into being.
    """

    TYPE_CODE: ClassVar[str] = "queue.defined"
    spec: QueueSpec


class QueueOpened(Event):
    """
    Say that the queue takes submissions.
    """

    TYPE_CODE: ClassVar[str] = "queue.opened"


class QueueClosed(Event):
    """
    Say that the queue takes no submissions.
    """

    TYPE_CODE: ClassVar[str] = "queue.closed"


class QueueActivated(Event):
    """
    Say that the queue's jobs may start.
    """

    TYPE_CODE: ClassVar[str] = "queue.activated"


class QueueInactivated(Event):
    """
    Say that the queue's jobs may not start.
    """

    TYPE_CODE: ClassVar[str] = "queue.inactivated"


class QueueRemoved(Event):
    """
    Say that it is no more.
    """

    TYPE_CODE: ClassVar[str] = "queue.removed"

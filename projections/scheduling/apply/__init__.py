"""
Event -> state, one small function per event, one file per family.

``APPLY`` is the closed table; a test shows that it knows every event class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from domain.envelope import Stamped
from domain.event import Event
from projections.scheduling.apply import (
    changes,
    jobs,
    log,
    policies,
    scheduler,
    session,
    stops,
    workers,
)
from projections.scheduling.state import State

Apply = Callable[[State, Stamped, Any], None]

APPLY: Final[dict[type[Event], Apply]] = {
    **scheduler.APPLY,
    **workers.APPLY,
    **jobs.APPLY,
    **changes.APPLY,
    **stops.APPLY,
    **session.APPLY,
    **log.APPLY,
    **policies.APPLY,
}

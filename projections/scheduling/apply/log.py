"""
Apply events of the log itself: they are for history alone.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.log import LogArchived, LogBranched, LogPruned
from projections.scheduling.state import State

LogEvent = LogArchived | LogBranched | LogPruned


def nothing(state: State, stamped: Stamped, event: LogEvent) -> None:
    """
    Change nothing.
    """


APPLY: Final[dict[Any, Any]] = dict.fromkeys((LogArchived, LogBranched, LogPruned), nothing)

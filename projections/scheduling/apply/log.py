"""
Apply events of the log itself: they are for history alone.
"""

from __future__ import annotations

from typing import Any, Final

from domain.envelope import Stamped
from domain.events.log import LogBranched
from projections.scheduling.state import State


def nothing(state: State, stamped: Stamped, event: LogBranched) -> None:
    """
    Change nothing.
    """


APPLY: Final[dict[Any, Any]] = {LogBranched: nothing}

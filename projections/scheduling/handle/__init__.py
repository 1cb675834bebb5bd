"""
Command or report -> events, or a refusal; one file per family. Nothing here changes the state.

``HANDLE`` is the closed table; a test shows that it knows every command class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from projections.scheduling.handle import changes, jobs, policies, reports, settings
from projections.scheduling.handle.answers import NewEvents
from projections.scheduling.state import State

Handle = Callable[[State, Any, str], NewEvents]

HANDLE: Final[dict[type[Any], Handle]] = {
    **settings.HANDLE,
    **jobs.HANDLE,
    **changes.HANDLE,
    **reports.HANDLE,
    **policies.HANDLE,
}

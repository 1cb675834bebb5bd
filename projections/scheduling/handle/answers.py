"""
What handling a command gives.
"""

from __future__ import annotations

from domain.event import Event

NewEvents = list[tuple[str, Event]]
"""(stream, event) in order; empty for a command that changes nothing because it is so already."""

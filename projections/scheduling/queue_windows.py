"""
Whether queues are inside their windows, for whoever asks a state between sessions; and when one
that isn't will be again.
"""

from __future__ import annotations

from typing import Final

from domain.queues import QueueSpec
from domain.windows import ALWAYS, is_open, next_change_us
from projections.scheduling.records import QueueRecord
from projections.scheduling.state import State

CHANGES_MAX: Final = 200
"""So many openings and closings are looked through: run and dispatch windows may never be open
together, and each day has a few of both."""


def is_inside(state: State, queue: QueueRecord) -> bool:
    """
    Say whether a queue is inside its windows: as the last session found it or, in a state that was
    folded from events and had none since, at the moment of its last event.
    """
    known = state.windows_open.get(queue.name)
    return is_inside_at(queue.spec, state.stored.time_us) if known is None else known


def is_inside_run_windows(state: State, queue: QueueRecord) -> bool:
    """
    Say the same of its run windows alone, outside which its jobs are suspended.
    """
    known = state.run_windows_open.get(queue.name)
    if known is not None:
        return known
    return is_open(queue.spec.run_windows or ALWAYS, state.stored.time_us)


def is_inside_at(queue: QueueSpec, time_us: int) -> bool:
    """
    Say whether both kinds of windows of a queue are open at a time.
    """
    return all(
        is_open(windows or ALWAYS, time_us)
        for windows in (queue.run_windows, queue.dispatch_windows)
    )


def next_opening_us(queue: QueueSpec, after_us: int) -> int | None:
    """
    Return the first later time at which jobs of a queue may start that is outside its windows,
    None when nothing of that kind is near.
    """
    moment_us = after_us
    for _ in range(CHANGES_MAX):
        changes = (
            next_change_us(windows or ALWAYS, moment_us)
            for windows in (queue.run_windows, queue.dispatch_windows)
        )
        found = [each for each in changes if each is not None]
        if not found:
            return None
        moment_us = min(found)
        if is_inside_at(queue, moment_us):
            return moment_us
    return None

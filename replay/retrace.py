"""
Hold a recorded session again with the trace on: how its decisions came about isn't in the log, but
the state before it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from domain.envelope import Envelope
from projections.scheduling.core import Core
from projections.scheduling.trace_session import Tracing

OTHERWISE: Final = "the session decides otherwise now than was recorded"


class Readable(Protocol):
    """
    Be a log that can be read.
    """

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[Envelope]:
        """
        Yield envelopes after a position.
        """
        ...


def step_at(log: Readable, first: int, upto: int) -> list[Envelope]:
    """
    Return the whole step that begins at a position; what there is of it when it is cut short.
    """
    step: list[Envelope] = []
    for envelope in log.read(first - 1, upto):
        step.append(envelope)
        if envelope.ends_step:
            break
    return step


def hold_again(core: Core, step: list[Envelope], tracing: Tracing) -> str:
    """
    Hold a recorded session again on the state before it.

    Args:
        core: Right before the step; afterwards right behind it, and of no more use if the session
            decided otherwise.
        step: The session and its decisions, as they were recorded.
        tracing: Where traces go.

    Returns:
        "" when it decided as it was recorded, else what happened.
    """
    core.tracing = tracing
    try:
        made = core.session(step[0].time_us)
    except Exception as error:  # noqa: BLE001 - an altered log, or somebody's plug-in; it is told
        return f"the session fails now: {type(error).__name__}: {error}"
    finally:
        core.tracing = None
    if made == [envelope.stamped() for envelope in step]:
        return ""
    return OTHERWISE

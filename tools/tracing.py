"""
How a decision came about, from a log: the session held again from the state before it, with the
trace on. Run as a program it answers one question of the scheduler, which it keeps from waiting.

    python -m tools.tracing DIR JOB LEVEL LINES

prints the HTTP status on one line and the JSON body on the next.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from domain.errors import InvariantBroken, XceError

if TYPE_CHECKING:
    from replay.retrace import Retraced

LINES_CAP: Final = 1_000_000
"""A trace has at most so many lines, whoever asks."""
NICENESS: Final = 5


def traced(
    directory: Path,
    job_id: str,
    position: int | None,
    *,
    level: str,
    lines_max: int,
    on_progress: Callable[[int], None] | None = None,
) -> Retraced:
    """
    Return how a job was decided, now or at a position of the log.

    Raises:
        NotFound: There was no such job then, or nothing was decided of it.
    """
    from projections.scheduling.trace import Level
    from replay.at import ladder_of
    from replay.plugins import found_plugins
    from replay.retrace import Retracer
    from store.log import EventLog

    with EventLog.open(directory, writable=False) as log:
        at = log.head() if position is None else position
        ladder = ladder_of(log, plugins=found_plugins(), on_progress=on_progress)
        retracer = Retracer(log, ladder, level=Level(level), lines_max=lines_max)
        return retracer.retrace(job_id, at)


def plain(job_id: str, found: Retraced) -> dict[str, Any]:
    """
    Return it as plain data.
    """
    from projections.scheduling.trace_plain import plain as plain_trace

    return {
        "job_id": job_id,
        "position": found.position,
        "session_first": found.first or None,
        "session_last": found.last or None,
        "is_recorded": bool(found.first),
        "difference": found.difference,
        "traces": [plain_trace(trace) for trace in found.traces],
    }


def words(found: Retraced) -> list[str]:
    """
    Return it as lines for people.
    """
    from replay.debugger.show import Units
    from replay.trace_words import trace_lines

    state = f"the state at position {found.position}"
    if not found.first:
        head = f"A session on {state}, held for this question only: it decides so now."
    elif found.difference:
        head = f"Positions {found.first} to {found.last}, again on {state}: {found.difference}."
    else:
        head = f"Positions {found.first} to {found.last}, decided again on {state}, as recorded."
    return [head, *(line for trace in found.traces for line in trace_lines(trace, Units()))]


def main(arguments: list[str]) -> None:
    """
    Answer one question.
    """
    # Whoever asks can wait; what the scheduler does meanwhile can't.
    os.nice(NICENESS)
    directory, job_id, level, lines = arguments
    try:
        found = traced(Path(directory), job_id, None, level=level, lines_max=int(lines))
        status, body = 200, to_json({**plain(job_id, found), "words": words(found)})
    except XceError as error:
        from tools.daemon.requests import error_reply

        status, body = error_reply(error)
    except Exception as error:  # noqa: BLE001 - whoever asked is told; the scheduler goes on
        from tools.daemon.requests import error_reply

        status, body = error_reply(InvariantBroken(f"{type(error).__name__}: {error}"))
    sys.stdout.buffer.write(b"%d\n%b\n" % (status, body))


if __name__ == "__main__":
    main(sys.argv[1:])

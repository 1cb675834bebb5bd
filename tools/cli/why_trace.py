"""
How a decision came about: the session held again, from the state before it, with the trace on.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.cli.output import say, say_json

if TYPE_CHECKING:
    from replay.retrace import Retraced


def tell_trace(
    directory: Path, job_id: str, at_text: str | None,
    *, level: str, lines_max: int, as_json: bool,
) -> None:  # fmt: skip
    """
    Tell how a job was decided, now or at a moment.

    Raises:
        NotFound: There was no such job then, or nothing was decided of it.
    """
    from projections.scheduling.trace import Level
    from replay.at import ladder_of
    from replay.moments import parse_moment, position_of
    from replay.plugins import found_plugins
    from replay.retrace import Retracer
    from store.log import EventLog
    from tools.cli.audit import Bar

    with EventLog.open(directory, writable=False) as log:
        moment = parse_moment("at", at_text or "end")
        position = position_of(log, moment)
        with Bar(position, "folding") as bar:
            ladder = ladder_of(log, plugins=found_plugins(), on_progress=bar)
            retracer = Retracer(log, ladder, level=Level(level), lines_max=lines_max)
            found = retracer.retrace(job_id, position)
    if as_json:
        say_json(plain(job_id, found))
        return
    _show(found)


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


def _show(found: Retraced) -> None:
    from replay.debugger.show import Units
    from replay.trace_words import trace_lines

    state = f"the state at position {found.position}"
    if not found.first:
        say(f"A session on {state}, held for this question only: it decides so now.")
    elif found.difference:
        say(f"Positions {found.first} to {found.last}, again on {state}: {found.difference}.")
    else:
        say(f"Positions {found.first} to {found.last}, decided again on {state}, as recorded.")
    for trace in found.traces:
        for line in trace_lines(trace, Units()):
            say(line)

"""
How a decision came about: from the log, or as the scheduler tells whoever may not read the log.
"""

from __future__ import annotations

from pathlib import Path

from tools.cli.client import Client, segment
from tools.cli.output import say, say_json


def tell_trace(
    directory: Path, job_id: str, at_text: str | None,
    *, level: str, lines_max: int, as_json: bool,
) -> None:  # fmt: skip
    """
    Tell how a job was decided, now or at a moment, from the log.

    Raises:
        NotFound: There was no such job then, or nothing was decided of it.
    """
    from replay.moments import parse_moment, position_of
    from store.log import EventLog
    from tools.cli.audit import Bar
    from tools.tracing import plain, traced, words

    with EventLog.open(directory, writable=False) as log:
        position = position_of(log, parse_moment("at", at_text or "end"))
    with Bar(position, "folding") as bar:
        found = traced(
            directory, job_id, position, level=level, lines_max=lines_max, on_progress=bar
        )
    if as_json:
        say_json(plain(job_id, found))
    else:
        _say_all(words(found))


def tell_live_trace(
    directory: Path, job_id: str, *, level: str, lines_max: int, as_json: bool
) -> None:
    """
    Tell how a job was decided last, as the scheduler says.

    Raises:
        NoScheduler: None answers.
    """
    with Client(directory) as client:
        told = client.get(f"/v1/jobs/{segment(job_id)}/trace", level=level, lines=lines_max)
    lines = told.pop("words")
    if as_json:
        say_json(told)
    else:
        _say_all(lines)


def _say_all(lines: list[str]) -> None:
    for line in lines:
        say(line)

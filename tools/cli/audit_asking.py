"""
What the questions to the tables share: who asks, and which moments they name.
"""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from domain.errors import Refused
from domain.units import parse_time_us, whole_number
from tools.cli.output import note

if TYPE_CHECKING:
    from projections.audit.privacy import Viewer
    from projections.audit.reading import Reading

fresh_option = click.option(
    "--no-catch-up",
    "stale",
    is_flag=True,
    help="Ask the tables as they are, without looking at the log.",
)
from_option = click.option("--from", "from_text", metavar="TIME|POSITION", help="Nothing before.")
to_option = click.option("--to", "to_text", metavar="TIME|POSITION", help="Nothing after.")


# Taking in so many events takes some seconds; a person who asks of now shouldn't wait for them.
FAR_EVENTS = 100_000


def answered_by_scheduler(
    directory: Path, answer: Callable[[], None], *, only_log: str = "", may_be_far: bool = False
) -> bool:
    """
    Have the scheduler answer where the log may not be read, or would take long to be taken in.

    Args:
        directory: The cluster.
        answer: Asks the scheduler and shows what it says.
        only_log: What of the question only the log answers, "" for nothing.
        may_be_far: Answer from the tables however far behind they are.

    Raises:
        Refused: Only the log has the answer, and it may not be read.
    """
    from tools.cli.client import NoScheduler

    is_readable = may_read(directory)
    if only_log and not is_readable and (directory / "log").exists():
        raise Refused(
            "log", f"must be readable to you for {only_log}", str(directory),
            "Ask the owner of the cluster, or leave that out.",
        )  # fmt: skip
    if is_readable and (only_log or may_be_far or events_behind(directory) <= FAR_EVENTS):
        return False
    try:
        answer()
    except NoScheduler:
        if not is_readable:
            raise
        return False
    if is_readable:
        note(
            "xce: the audit tables are far behind, so this is from the scheduler alone. Bring them "
            "up: xce audit catch-up."
        )
    return True


def may_read(directory: Path) -> bool:
    """
    Say whether there is a log that whoever asks may read.
    """
    from domain.errors import StoreUnavailable
    from store.embedded.preflight import DATA_FILE
    from store.info import is_log, log_directory

    try:
        place = log_directory(directory)
        return is_log(place) and os.access(place / DATA_FILE, os.R_OK)
    except StoreUnavailable:
        return False


def events_behind(directory: Path) -> int:
    """
    Return how many events the tables are behind the log, without bringing them up.
    """
    from projections.audit.reading import Reading
    from tools.cli.audit import opened

    with opened(directory) as (log, place):
        current = place.current()
        if current is None:
            return log.head()
        with Reading(current) as reading:
            return log.head() - reading.position()


def viewer_of(path: Path) -> Viewer:
    """
    Return who asks: root and the owner of the tables see everything, others what is theirs.
    """
    from projections.audit.privacy import EVERYTHING, Viewer

    user_id = os.geteuid()
    if user_id in (0, path.stat().st_uid):
        return EVERYTHING
    try:
        return Viewer(pwd.getpwuid(user_id).pw_name)
    except KeyError:
        return Viewer(f"#{user_id}")


def position_of(reading: Reading, text: str | None, field: str) -> int | None:
    """
    Return the position that a text means: a number, or a time whose last event it is.

    Raises:
        Refused: It is neither.
    """
    if text is None:
        return None
    if (position := whole_number(text)) is not None:
        return position
    return reading.position_at(_time_us(text, field))


def _time_us(text: str, field: str) -> int:
    """
    Return the time that a text means where a position is taken too, and say so if it means none.
    """
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        rule = "must be a position such as 4711 or a time such as 2026-11-29T18:00:00Z"
        raise Refused(field, rule, text) from None
    return parse_time_us(text, field=field)


def time_of(reading: Reading, text: str | None, field: str) -> int | None:
    """
    Return the time that a text means: a time, or a position whose time it is.
    """
    if text is None:
        return None
    position = whole_number(text)
    if position is None:
        return _time_us(text, field)
    query = "SELECT time_us FROM events WHERE position >= ? ORDER BY position LIMIT 1"
    found = reading.value(query, (position,))
    return reading.last_time_us() if found is None else int(found)


def now_us_of(reading: Reading) -> int:
    """
    Return up to when a state counts that lasts: now while a scheduler has the log, else the time of
    its last event; a simulation's clock is its own.
    """
    last_us = reading.last_time_us()
    run = reading.one(
        "SELECT boot_id, stopped_position FROM scheduler_runs ORDER BY position DESC LIMIT 1"
    )
    is_live = run is not None and run["boot_id"] and run["stopped_position"] is None
    return max(last_us, time.time_ns() // 1000) if is_live else last_us


def keep_private(reading: Reading) -> None:
    """
    Hide what users' jobs run from whoever asks in their own SQL, unless they see everything.
    """
    if not viewer_of(Path(reading.path)).is_privileged:
        reading.hide_private()

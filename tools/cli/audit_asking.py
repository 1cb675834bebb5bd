"""
What the questions to the tables share: who asks, and which moments they name.
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import TYPE_CHECKING

import click

from domain.units import parse_time_us

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
    if text.isdecimal():
        return int(text)
    return reading.position_at(parse_time_us(text, field=field))


def time_of(reading: Reading, text: str | None, field: str) -> int | None:
    """
    Return the time that a text means: a time, or a position whose time it is.
    """
    if text is None:
        return None
    if not text.isdecimal():
        return parse_time_us(text, field=field)
    query = "SELECT time_us FROM events WHERE position >= ? ORDER BY position LIMIT 1"
    found = reading.value(query, (int(text),))
    return reading.last_time_us() if found is None else int(found)


def keep_private(reading: Reading) -> None:
    """
    Hide what users' jobs run from whoever asks in their own SQL, unless they see everything.
    """
    if not viewer_of(Path(reading.path)).is_privileged:
        reading.hide_private()

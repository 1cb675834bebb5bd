"""
The history of the cluster as plain tables: keep them up with the log, and ask them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

from domain.errors import Corrupt, NotFound, Refused, StoreUnavailable, XceError
from tools.cli.groups import Commands
from tools.cli.options import dir_option, json_option
from tools.cli.output import counted, note, say, say_json
from tools.cli.temporary import temporary_directory

if TYPE_CHECKING:
    from projections.audit.reading import Reading
    from store.log import EventLog
    from tools.follower.place import Place

# So long a question waits for another process that fills the tables just now.
OTHERS_S = 10.0
LOOK_S = 0.05


@click.group(
    cls=Commands,
    epilog="""
\b
Examples:
  xce audit who --user ann --from 2026-11-29T00:00:00Z
  xce audit sql "SELECT queue, count(*) FROM jobs GROUP BY queue"
  xce audit report report.html
Stories: xce history. Why a job waits or waited: xce why.
--dir takes a cluster's directory or a log's own. The tables are SQLite files: audit.db and what it
points at, in a cluster's directory, or run1.audit.db beside the log run1. They hold nothing that
the log doesn't: xce audit rebuild makes them anew.
Every question first brings the tables up to the log, also while a scheduler writes it; nothing here
ever makes the scheduler wait.
"""
)
def audit_group() -> None:
    """
    Ask what happened: who did what, how long jobs waited, in plain tables and plain words.
    """


# ------------------------------------------------------------------------------- kept up with the
# log


class Bar:
    """
    Show on a terminal how far something has come, once it takes longer than a second.

    Args:
        head: The position at which it will end.
        what: What is being done.
    """

    def __init__(self, head: int = 0, what: str = "taking in") -> None:
        self._shown = sys.stderr.isatty()
        self._head = head
        self._what = what
        self._first: tuple[int, float] | None = None
        self._is_there = False

    def __enter__(self) -> Self:
        return self

    def __call__(self, position: int, head: int = 0) -> None:
        """
        Show a position.
        """
        if not self._shown:
            return
        now_s = time.monotonic()
        if self._first is None:
            self._first = position, now_s
        first, began_s = self._first
        if now_s - began_s > 1 and position > first:
            whole = head or self._head
            left_s = (whole - position) * (now_s - began_s) / (position - first)
            text = f"{self._what}: {position:,} of {whole:,} events, {left_s:.0f} s left"
            self._is_there = True
            sys.stderr.write(f"\r{text}\033[K")
            sys.stderr.flush()

    def __exit__(self, *_: object) -> None:
        if self._is_there:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


@contextmanager
def opened(directory: Path) -> Iterator[tuple[EventLog, Place]]:
    """
    Open the log of a directory for reading, and say where its tables are.
    """
    from store.log import EventLog
    from tools.follower.place import place_of

    place = place_of(directory)
    with EventLog.open(directory, writable=False) as log:
        yield log, place


@contextmanager
def asked(directory: Path, *, fresh: bool = True) -> Iterator[Reading]:
    """
    Open the tables of a directory for reading, brought up to the log first.

    Args:
        directory: A cluster's, or a log's own.
        fresh: Whether to bring them up to the log.
    """
    from projections.audit.reading import Reading
    from tools.follower.place import place_of

    place = place_of(directory)
    if fresh:
        _bring_up(directory, place)
    with Reading(place.link) as reading:
        yield reading


def _bring_up(directory: Path, place: Place) -> None:
    """
    Take in what is new; when another process does that already, wait for it a little.
    """
    try:
        with opened(directory) as (log, _):
            if not _are_up(log, place):
                _catch_up(log, place)
    except StoreUnavailable as error:
        if place.current() is None:
            raise
        note(f"xce: the tables couldn't be brought up to the log: {error.text()}")


def _are_up(log: EventLog, place: Place) -> bool:
    """
    Say whether the tables are at the log's head: then nothing of what fills them need be loaded.
    """
    from projections.audit.reading import Reading

    current, head = place.current(), log.head()
    if current is None or not head:
        return False
    try:
        with Reading(current) as reading:
            return reading.is_of(log.log_id, head, log.digest_at(head).hex())
    except XceError:
        return False


def _catch_up(log: EventLog, place: Place) -> None:
    from tools.follower.feed import catch_up
    from tools.follower.place import Busy

    head = log.head()
    try:
        with Bar() as bar:
            catch_up(log, place, bar)
    except Busy:
        _wait_for_others(place, head)


def _wait_for_others(place: Place, head: int) -> None:
    deadline = time.monotonic() + OTHERS_S
    while True:
        position = _position_in(place)
        if position >= head:
            return
        if time.monotonic() > deadline:
            note(
                f"xce: another process is at position {position} of {head}; the answer ends there."
            )
            return
        time.sleep(LOOK_S)


def _position_in(place: Place) -> int:
    from projections.audit.reading import Reading

    if place.current() is None:
        return 0
    with Reading(place.link) as reading:
        return reading.position()


def _take_or_wait(log: EventLog, place: Place, head: int) -> int | None:
    """
    Bring the tables up to a position; return how many events were taken, None when another process
    brought them there.

    Raises:
        Busy: It doesn't come forward any more.
    """
    from tools.follower.feed import catch_up
    from tools.follower.place import Busy

    deadline, before = time.monotonic() + OTHERS_S, 0
    while True:
        try:
            with Bar() as bar:
                return catch_up(log, place, bar)
        except Busy:
            position = _position_in(place)
            if position >= head:
                return None
            if position > before:
                deadline, before = time.monotonic() + OTHERS_S, position
            if time.monotonic() > deadline:
                raise
        time.sleep(LOOK_S)


@audit_group.command("catch-up", epilog="Example: xce audit catch-up. Next: xce audit who.")
@dir_option
@json_option
def catch_up_command(directory: Path, *, as_json: bool) -> None:
    """
    Bring the tables up to the log, made anew where they must be.
    """
    with opened(directory) as (log, place):
        began_s = time.monotonic()
        head = log.head()
        taken = _take_or_wait(log, place, head)
        took_s = time.monotonic() - began_s
        if taken is not None:
            head = log.head()
    if as_json:
        say_json(
            {
                "position": head,
                "taken": taken or 0,
                "seconds": round(took_s, 3),
                "database": str(place.link),
            }
        )
        return
    done = (
        "Another process, as xce up starts one, keeps the tables up"
        if taken is None
        else f"{counted(taken, 'event')} taken in {took_s:.1f} s"
    )
    say(f"{done}; {place.link} is at position {head:,}.")


@audit_group.command(
    "rebuild",
    epilog="Example: xce audit rebuild. Whoever reads or fills the old tables meanwhile goes on.",
)
@dir_option
@json_option
def rebuild_command(directory: Path, *, as_json: bool) -> None:
    """
    Make the tables anew from the whole log, in a new file that then takes the old one's place.
    """
    from tools.follower.feed import make_anew

    with opened(directory) as (log, place):
        with Bar() as bar:
            make_anew(log, place, bar)
        head = log.head()
    if as_json:
        say_json({"database": str(place.link), "position": head})
    else:
        say(f"Made anew: {place.link}, {counted(head, 'event')}.")


@audit_group.command(
    "follow",
    epilog="""
\b
Example: xce audit follow
The scheduler neither needs nor notices it. xce up starts one of its own, unless --no-audit is
given.
""",
)
@dir_option
def follow_command(directory: Path) -> None:
    """
    Keep the tables up with a log that a scheduler writes.
    """
    from threading import Event

    from tools.follower.feed import follow

    with opened(directory) as (log, place):
        say(f"Following; the tables are in {place.link}. Ctrl-C ends it.")
        follow(log, place, Event(), trouble=lambda error: note(f"xce: {error}"))


@audit_group.command("status", epilog="Example: xce audit status --json")
@dir_option
@json_option
def status_command(directory: Path, *, as_json: bool) -> None:
    """
    Say how far the tables are behind the log.
    """
    from projections.audit.reading import Reading

    with opened(directory) as (log, place):
        head = log.head()
        current = place.current()
        if current is None:
            raise NotFound(
                "read model", "there is none", str(place.link), "Make it: xce audit catch-up."
            )
        with Reading(current) as reading:
            position = reading.position()
            jobs = int(reading.value("SELECT count(*) FROM jobs"))
        size = current.stat().st_size
    told = {
        "database": str(place.link),
        "log_id": log.log_id,
        "position": position,
        "head": head,
        "behind": head - position,
        "bytes": size,
        "jobs": jobs,
        "bytes_per_job": size // jobs if jobs else None,
    }
    if as_json:
        say_json(told)
        return
    for name, value in told.items():
        say(f"{name:14} {value if value is not None else '-'}")


@audit_group.command(
    "check",
    epilog="Example: xce audit check. Exit status 0 when equal, 1 when not, 4 when damaged.",
)
@dir_option
@json_option
def check_command(directory: Path, *, as_json: bool) -> int:
    """
    Compare the tables, row for row, with tables made anew from the log.
    """
    from projections.audit.compare import differences
    from projections.audit.projection import AuditProjection
    from projections.audit.read_model import ReadModel
    from projections.audit.reading import Reading

    with (
        asked(directory) as kept,
        opened(directory) as (log, place),
        temporary_directory(parent=place.link.parent) as folder,
    ):
        for problem in kept.problems():
            raise Corrupt(
                "structure",
                None,
                "ok",
                problem,
                str(place.link),
                "xce audit rebuild makes it anew.",
            )
        begin = log.info().first_position
        if kept.first_position() < begin:
            rule = f"can't be compared: the log begins at position {begin}, they before"
            raise Refused("tables", rule, str(place.link), "What came before was pruned.")
        path = folder / "fresh.db"
        model = ReadModel.create(path, log_id=log.log_id)
        AuditProjection(model).catch_up(
            log.read(begin - 1, kept.position()), digest_at=lambda at: log.digest_at(at).hex()
        )
        model.close()
        position = kept.position()
        with Reading(path) as fresh:
            found = [one for one in differences(kept, fresh) if one.table != "tracking"]
    if as_json:
        rows = [{"table": one.table, "kept": one.first, "anew": one.second} for one in found]
        say_json({"position": position, "is_same": not found, "differences": rows})
        return 1 if found else 0
    for one in found:
        say(f"{one.table}: kept {one.first}, made anew {one.second}")
    if found:
        raise Different
    say("The tables equal those made anew from the log.")
    return 0


class Different(XceError):  # noqa: N818 - as the families of domain.errors
    """
    Say that the tables aren't what the log says.
    """

    def text(self) -> str:
        """
        Return what to do.
        """
        return "the tables differ from the log. xce audit rebuild makes them anew."


def _add_questions() -> None:
    from tools.cli import audit_figures, audit_questions, audit_report

    questions = (*audit_questions.QUESTIONS, audit_figures.figures)
    for command in (*questions, *audit_report.COMMANDS):
        audit_group.add_command(command)


_add_questions()

"""
Repair a damaged log into a new directory: the good prefix as a log, the good rest as text.

The damaged files are never changed: what a program can't read today, a person may read tomorrow.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from domain.errors import NotFound, Refused
from store.chain import genesis
from store.embedded.layout import space_names
from store.embedded.marker import read_marker
from store.embedded.preflight import DATA_FILE
from store.info import is_log, log_directory
from store.rebuild import LogBuilder
from store.salvage import Found, Salvage, salvage
from store.segments import ARCHIVE
from store.transfer import write_rest

REST_FILE = "rest.jsonl"


@dataclass(frozen=True, slots=True)
class RepairReport:
    """
    Say what a repair saved and what is lost.

    Args:
        source: The damaged log.
        target: The new one.
        log_id: Identity of both.
        events: How many events the new log has.
        frames: In how many frames.
        rest_events: How many good events lie behind the first loss; they stand in `rest_file`.
        rest_file: JSON lines of them, "" when there are none.
        lost: Positions from and to which everything is lost.
    """

    source: str
    target: str
    log_id: str
    events: int
    frames: int
    rest_events: int
    rest_file: str
    lost: tuple[tuple[int, int], ...]


def repair(source: Path, target: Path, *, log_id: str | None = None) -> RepairReport:
    """
    Save what is good of a log into a new directory.

    Args:
        source: The damaged log, or a cluster directory around it.
        target: Where the new log goes.
        log_id: Its identity, when the marker file is lost too.

    Raises:
        NotFound: There is no data file.
        Refused: There is something in the target, or nothing says which log the source was.
    """
    directory = log_directory(source)
    if not is_log(directory) or not (directory / DATA_FILE).exists():
        raise NotFound("log", "there is no data file in this directory", str(directory))
    identity = log_id or read_marker(directory)
    if identity is None:
        hint = "xce log info tells it while the log opens; backups and exports have it."
        raise Refused("log_id", "must be given when the marker file is lost", None, hint)
    files = [directory / DATA_FILE, *sorted((directory / ARCHIVE).glob("*.segment"))]
    found = salvage(files, genesis(identity, space_names("", "events").frames))
    with LogBuilder(target, log_id=identity) as builder:
        builder.add_all(each.frame for each in found.prefix)
        builder.finish(epoch=max(_epochs(found), default=0))
        rest_file = target / REST_FILE
        rest_events = write_rest(rest_file, identity, found) if found.rest else 0
    return RepairReport(
        str(directory), str(target), identity, found.last_position, len(found.prefix), rest_events,
        str(rest_file) if found.rest else "", tuple(found.lost),
    )  # fmt: skip


def _epochs(found: Salvage) -> list[int]:
    """
    Return the epochs of all good frames: the new log's must not be below any.
    """
    every: list[Found] = [*found.prefix, *found.rest]
    return [each.header.epoch for each in every]

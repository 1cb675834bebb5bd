"""
Copies of a log: a consistent backup while it is written, and a compact data file.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import lmdb

from domain.errors import Conflict, Corrupt, Refused
from store.embedded.environment import Environment, acquire, is_open_elsewhere
from store.embedded.journal import Journal
from store.embedded.marker import sync_directory, write_marker
from store.embedded.opening import ENGINE_LOCK_FILE
from store.embedded.preflight import DATA_FILE
from store.embedded.settings import Settings
from store.info import found_log
from store.lock import WriterLock
from store.os_errors import unavailable
from store.segments import ARCHIVE, check_file
from store.verify import VerifyReport, verify


@dataclass(frozen=True, slots=True)
class CopyReport:
    """
    Say what a backup or a compacting came to.

    Args:
        log_id: The log's identity.
        events: Its last position in the copy.
        head_digest: The digest there, in hexadecimal.
        bytes_before: Size of the original data file.
        bytes_after: Size of the new one.
    """

    log_id: str
    events: int
    head_digest: str
    bytes_before: int
    bytes_after: int


def backup(path: Path, target: Path) -> CopyReport:
    """
    Copy a log as it is at one moment, archive included, while it may be written; verify the copy.

    The target appears when everything is durable and good, not before.

    Raises:
        NotFound: There is no log.
        Refused: The target exists.
        Corrupt: The copy doesn't verify; it is removed again.
    """
    directory = found_log(path)
    if target.exists():
        raise Refused("target", "must not exist yet", str(target))
    building = target.with_name(f".{target.name}.{os.getpid()}.new")
    shutil.rmtree(building, ignore_errors=True)
    try:
        building.mkdir(mode=0o700, parents=True)
        log_id = _copy_data(directory, building)
        _copy_archive(directory, building, log_id)
        write_marker(building, log_id)
        report = _verified(building)
        sync_directory(building)
        building.rename(target)
        sync_directory(target.parent)
    except OSError as error:
        raise unavailable(target, error) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return _report(report, directory / DATA_FILE, target / DATA_FILE)


def compact(path: Path) -> CopyReport:
    """
    Write the data file anew without its free pages and put it in place; the log must have no
    writer.

    Raises:
        NotFound: There is no log.
        Conflict: Somebody writes it, or reads it just now.
        Corrupt: The new file doesn't verify; the old one stays.
    """
    directory = found_log(path)
    lock = WriterLock(directory)
    building = directory / f".compact.{os.getpid()}.new"
    try:
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(mode=0o700)
        log_id = _copy_data(directory, building)
        _copy_archive(directory, building, log_id)
        write_marker(building, log_id)
        report = _verified(building)
        result = _report(report, directory / DATA_FILE, building / DATA_FILE)
        _refuse_readers(directory)
        (building / DATA_FILE).replace(directory / DATA_FILE)
        # It counts the old file's transactions.
        (directory / ENGINE_LOCK_FILE).unlink(missing_ok=True)
        sync_directory(directory)
    except OSError as error:
        raise unavailable(directory, error) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
        lock.release()
    return result


def _copy_data(directory: Path, target: Path) -> str:
    """
    Copy the data file at one moment; return the log's identity.
    """
    environment = acquire(Settings(directory, readonly=True), create=False)
    try:
        environment.handle.copy(str(target), compact=True)
        data = target / DATA_FILE
        data.chmod(0o600)
        with data.open("rb") as file:
            os.fsync(file.fileno())
    except lmdb.Error as error:
        raise unavailable(target, error) from None
    else:
        return environment.log_id
    finally:
        environment.release()


def _copy_archive(directory: Path, target: Path, log_id: str) -> None:
    """
    Copy the segment files that a copied data file refers to; they never change.
    """
    # Opening needs the marker only where the copy is meant to stay.
    environment: Environment = acquire(Settings(target), create=False, log_id=log_id)
    try:
        for segment in Journal(environment).anchors.segments():
            if segment.is_pruned:
                continue
            (target / ARCHIVE).mkdir(mode=0o700, exist_ok=True)
            (target / ARCHIVE / segment.file).touch(mode=0o600)
            shutil.copyfile(directory / ARCHIVE / segment.file, target / ARCHIVE / segment.file)
            check_file(target / ARCHIVE / segment.file, segment)
            with (target / ARCHIVE / segment.file).open("rb") as file:
                os.fsync(file.fileno())
    finally:
        environment.release()
    (target / ENGINE_LOCK_FILE).unlink(missing_ok=True)


def _verified(directory: Path) -> VerifyReport:
    """
    Verify a copy, or raise the first problem.
    """
    report = verify(directory, decoded=False)
    if report.first_problem is not None:
        first = report.first_problem
        raise Corrupt(first.kind, first.position, first.expected, first.found, str(directory))
    return report


def _refuse_readers(directory: Path) -> None:
    """
    Refuse while a process has the old data file open: it would go on reading that one for ever.
    """
    if is_open_elsewhere(directory):
        hint = "Stop what follows the log first."
        raise Conflict("the log is open for reading", "no reader", "another process", hint)


def _report(report: VerifyReport, before: Path, after: Path) -> CopyReport:
    """
    Describe a copy.
    """
    return CopyReport(
        report.log_id, report.last_position, report.head_digest, before.stat().st_size,
        after.stat().st_size,
    )  # fmt: skip

"""
Let every system call on the data file fail in turn, once or from then on, with every likely error.

No acknowledgement may be false, every error must be one of ours, and what is left must be good.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

from domain.errors import OutcomeUnknown, XceError
from store.log import EventLog
from store.verify import verify_here
from tools.torture.children import stop_server
from tools.torture.injection import ERROR, Say, run_traced
from tools.torture.outcome import Outcome
from tools.torture.workload import job_events

CALLS = ("pwrite64", "fdatasync", "openat", "ftruncate", "fsync", "mmap")
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EMFILE", "ENOMEM")
APPENDS = 8


def script(directory: Path, lies: bool, say: Say) -> None:  # noqa: FBT001
    """
    Append job after job and say what came of each; be the sabotage that calls a failed sync
    success.
    """
    try:
        log = EventLog.open(directory, writable=True)
    except XceError as error:
        say(f"refused {type(error).__name__}")
        return
    head = log.head()
    for number in range(2, 2 + APPENDS):
        try:
            head = log.append(job_events(number))
            said = f"position {head}"
        except OutcomeUnknown:
            said = f"position {head + 4}" if lies else "refused OutcomeUnknown"
        except XceError as error:
            said = f"refused {type(error).__name__}"
        say(said)
    log.close()


def run(directory: Path, *, tries: int, first: int = 0, sabotage: bool = False) -> Outcome:
    """
    Fail so many calls, what tells most first.

    Args:
        directory: An empty place.
        tries: How many.
        first: How many to leave out, tried before.
        sabotage: Call a failed sync success.
    """
    original = directory / "original"
    with EventLog.create(original, log_id="the-log") as log:
        log.append(job_events(1))
    outcome = Outcome()
    for inject in itertools.islice(_injections(), first, first + tries):
        _try(directory / "copy", original, inject, outcome, sabotage=sabotage)
    stop_server()
    return outcome


def _injections() -> Iterator[str]:
    """
    Yield what to inject, what tells most first: the third call of a kind is past the opening.
    """
    for number in (3, 1, 2, *range(4, 200)):
        for onwards in ("", "+"):
            for call in CALLS:
                for error in ERRORS:
                    yield f"{call}:error={error}:when={number}{onwards}"


def _try(copy: Path, original: Path, inject: str, outcome: Outcome, *, sabotage: bool) -> None:
    """
    Run the writer once with an injected error.
    """
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    call = inject.partition(":")[0]
    ran = run_traced(
        script, (copy, sabotage), paths=[copy / "data.mdb", copy / "LOCK", copy],
        options=["-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={inject}"],
    )  # fmt: skip
    outcome.tries += 1
    lines = ran.said
    if ran.status or any(line.startswith(ERROR) for line in lines):
        outcome.violated(f"{inject}: status {ran.status}, an error without a name: {lines[-1:]}")
        return
    for line in lines:
        outcome.saw(line.split()[-1] if line.startswith("refused") else "acknowledged")
    acknowledged = [int(line.split()[1]) for line in lines if line.startswith("position")]
    report = verify_here(copy, decoded=False)
    if not report.is_good:
        outcome.violated(f"{inject}: {report.first_problem}")
    elif report.last_position < max(acknowledged, default=4):
        outcome.violated(
            f"{inject}: {max(acknowledged)} was acknowledged, {report.last_position} is the end"
        )

"""
Let every system call on the data file fail in turn, once or from then on, with every likely error.

No acknowledgement may be false, every error must be one of ours, and what is left must be good.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from domain.errors import OutcomeUnknown, XceError
from store.log import EventLog
from store.verify import verify_here
from tools.torture.outcome import Outcome
from tools.torture.workload import job_events

REPO = Path(__file__).resolve().parent.parent.parent
CALLS = ("pwrite64", "fdatasync", "openat", "ftruncate", "fsync", "mmap")
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EMFILE", "ENOMEM")
APPENDS = 8


def script(directory: Path, *, lies: bool) -> None:
    """
    Append job after job and say what came of each; be the sabotage that calls a failed sync
    success.
    """
    try:
        log = EventLog.open(directory, writable=True)
    except XceError as error:
        sys.stdout.write(f"refused {type(error).__name__}\n")
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
        sys.stdout.write(said + "\n")
        sys.stdout.flush()
    log.close()


def run(directory: Path, *, tries: int, sabotage: bool = False) -> Outcome:
    """
    Fail so many calls, the first of each kind and error first.

    Args:
        directory: An empty place.
        tries: How many.
        sabotage: Call a failed sync success.
    """
    original = directory / "original"
    with EventLog.create(original, log_id="the-log") as log:
        log.append(job_events(1))
    outcome = Outcome()
    # The third call of a kind is past the opening: that comes first, as it tells most.
    for number in (3, 1, 2, *range(4, 200)):
        for onwards in ("", "+"):
            for call in CALLS:
                for error in ERRORS:
                    if outcome.tries >= tries:
                        return outcome
                    inject = f"{call}:error={error}:when={number}{onwards}"
                    _try(directory / "copy", original, inject, outcome, sabotage=sabotage)
    return outcome


def _try(copy: Path, original: Path, inject: str, outcome: Outcome, *, sabotage: bool) -> None:
    """
    Run the writer once with an injected error.
    """
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(original, copy)
    call = inject.partition(":")[0]
    done = subprocess.run(
        ["strace", "-qq", "-o", "/dev/null", "-P", copy / "data.mdb", "-P", copy / "LOCK",
         "-P", copy, "-e", f"trace={call}", "-e", f"inject={inject}",
         sys.executable, "-m", "tools.torture.io_errors", str(copy), "lies" if sabotage else ""],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    outcome.tries += 1
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [""]
        outcome.violated(f"{inject}: an error without a name: {last[0]}")
        return
    lines = done.stdout.splitlines()
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


if __name__ == "__main__":
    script(Path(sys.argv[1]), lies="lies" in sys.argv[2:])

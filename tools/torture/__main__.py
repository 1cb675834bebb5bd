"""
Run the harnesses in their long forms and write what came of them into RELIABILITY.md.

``python -m tools.torture [--short] [--only NAME ...] [--output FILE]``; some need strace, and fail
rather than skip without it. Exit status 1 when a promise was broken or a sabotage wasn't caught.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.torture import bad_snapshots, damage, io_errors, kills, power, system_calls, tampering
from tools.torture.outcome import Outcome

REPO = Path(__file__).resolve().parent.parent.parent
SEED = 20_260_000


@dataclass(frozen=True, slots=True)
class Harness:
    """
    One row of the table.

    Args:
        name: What it is called on the command line.
        promise: Which promise it holds us to.
        what: What it does, in a few words.
        run: Runs it: an empty place, how many tries, whether sabotaged.
        short: How many tries in the short form.
        long: How many in the long form.
        needs: Programs that must be there.
    """

    name: str
    promise: str
    what: str
    run: Callable[[Path, int, bool], Outcome]
    short: int
    long: int
    needs: tuple[str, ...] = ()


HARNESSES = (
    Harness(
        "kills", "P1, P3", "SIGKILL of a writer at random moments",
        lambda place, tries, bad: kills.run(place / "log", kills=tries, seed=SEED, sabotage=bad),
        60, 10_000,
    ),
    Harness(
        "system-calls", "P1, P3", "SIGKILL at every write-like system call (tries: every n-th)",
        lambda place, tries, bad: system_calls.run(
            place, step=40 if bad else max(1, 200 // tries), sabotage=bad
        ),
        10, 200, ("strace",),
    ),
    Harness(
        "power", "P1, P3", "power loss: images rebuilt from a recorded write log",
        lambda place, tries, bad: power.run(place, images=tries, seed=SEED, sabotage=bad),
        150, 50_000, ("strace",),
    ),
    Harness(
        "io-errors", "P6, P7", "each system call on the data file fails, once or from then on",
        lambda place, tries, bad: io_errors.run(place, tries=tries, sabotage=bad),
        36, 1_500, ("strace",),
    ),
    Harness(
        "damage", "P10, P12", "bits, bytes, sectors, pages of the data file changed; file cut",
        lambda place, tries, bad: damage.run(place, tries=tries, seed=SEED, sabotage=bad),
        350, 100_000,
    ),
    Harness(
        "tampering", "P13", "edits, removals, insertions with right checksums",
        lambda place, tries, bad: tampering.run(place, tries=tries, seed=SEED, sabotage=bad),
        44, 20_000,
    ),
    Harness(
        "snapshots", "P11", "one, two or all of three snapshots damaged",
        lambda place, tries, bad: bad_snapshots.run(place, tries=tries, seed=SEED, sabotage=bad),
        1_000, 10_000,
    ),
    Harness(
        "writers", "P17", "two writers started at once",
        lambda place, tries, bad: kills.race(place / "log", tries=tries, sabotage=bad),
        20, 1_000,
    ),
)  # fmt: skip
SABOTAGE_TRIES = 300
"""A sabotage must be caught within so many tries, or the short form's number if that is less."""


def main(arguments: list[str]) -> int:
    """
    Run what was asked for; return the exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m tools.torture", description=__doc__)
    parser.add_argument("--short", action="store_true", help="the short forms")
    parser.add_argument("--only", nargs="*", choices=[each.name for each in HARNESSES])
    parser.add_argument(
        "--tries", type=int, help="how many tries, instead of the form's own number"
    )
    parser.add_argument("--output", type=Path, help="write the table to this file")
    given = parser.parse_args(arguments)
    rows, is_good = [], True
    for harness in HARNESSES:
        if given.only and harness.name not in given.only:
            continue
        tries = given.tries or (harness.short if given.short else harness.long)
        row, row_is_good = run_harness(harness, tries)
        rows.append(row)
        is_good = is_good and row_is_good
        print(row, flush=True)  # noqa: T201 - a program that reports
    if given.output:
        given.output.write_text(table(rows))
    return 0 if is_good else 1


def run_harness(harness: Harness, tries: int) -> tuple[str, bool]:
    """
    Run a harness and its sabotage; return its row and whether all was as it must be.
    """
    missing = [program for program in harness.needs if shutil.which(program) is None]
    if missing:
        return f"| {harness.promise} | {harness.what} | needs {', '.join(missing)} | | | |", False
    began = time.monotonic()
    outcome = _in_place(lambda place: harness.run(place, tries, False))
    took = time.monotonic() - began
    sabotaged = _in_place(
        lambda place: harness.run(place, min(SABOTAGE_TRIES, harness.short), True)
    )
    caught = "caught" if sabotaged.violations else "NOT CAUGHT"
    row = (
        f"| {harness.promise} | {harness.what} | {outcome.tries:,} | {outcome.violations} "
        f"| {outcome.bound()} | {caught} | {took:.0f} s |"
    )
    if outcome.violations:
        row += f"\n\nFirst violation of {harness.name}: {outcome.first}\n"
    return row, not outcome.violations and bool(sabotaged.violations)


def _in_place(run: Callable[[Path], Outcome]) -> Outcome:
    """
    Run in an empty directory, in memory where there is such a file system.
    """
    base = Path("/dev/shm")  # noqa: S108 - made by mkdtemp
    place = Path(
        tempfile.mkdtemp(prefix="xce-torture-", dir=base if os.access(base, os.W_OK) else None)
    )
    try:
        return run(place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def table(rows: list[str]) -> str:
    """
    Return the page that we publish.
    """
    texts = REPO / "tools" / "torture"
    page, notes = ((texts / name).read_text() for name in ("page.md", "notes.md"))
    return page + "\n".join(rows) + "\n" + notes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

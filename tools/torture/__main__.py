"""
Run the harnesses in their long forms and write what came of them into RELIABILITY.md.

``python -m tools.torture [--short] [--only NAME ...] [--ledger FILE] [--output FILE]``; some need
strace, and fail rather than skip without it. With a ledger every finished batch is written down,
and a run that was interrupted goes on behind it. Exit status 1 when a promise was broken or a
sabotage wasn't caught.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.torture import bad_snapshots, damage, io_errors, kills, power, system_calls, tampering
from tools.torture.batches import Batch, Ledger, measured
from tools.torture.outcome import Outcome

REPO = Path(__file__).resolve().parent.parent.parent
LEDGER = REPO / "tools" / "torture" / "ledger.jsonl"
"""The batches that the published page counts."""
SEED = 20_260_000


@dataclass(frozen=True, slots=True)
class Harness:
    """
    One row of the table.

    Args:
        name: What it is called on the command line.
        promise: Which promise it holds us to.
        what: What it does, in a few words.
        run: Runs it: an empty place, how many tries, how many were made before, whether sabotaged.
        short: How many tries in the short form.
        long: How many in the long form.
        batch: How many are written down together.
        needs: Programs that must be there.
    """

    name: str
    promise: str
    what: str
    run: Callable[[Path, int, int, bool], Outcome]
    short: int
    long: int
    batch: int
    needs: tuple[str, ...] = ()


HARNESSES = (
    Harness(
        "kills", "P1, P3", "SIGKILL of a writer at random moments",
        lambda place, tries, first, bad: kills.run(
            place / "log", kills=tries, seed=SEED + first, sabotage=bad
        ),
        60, 10_000, 500,
    ),
    Harness(
        "system-calls", "P1, P3", "SIGKILL at every write-like system call",
        lambda place, tries, first, bad: system_calls.run(
            place, tries=tries, seed=first, sabotage=bad
        ),
        10, 2_000, 200, ("strace",),
    ),
    Harness(
        "power", "P1, P3", "power loss: images rebuilt from a recorded write log",
        lambda place, tries, first, bad: power.run(
            place, images=tries, seed=SEED + first, sabotage=bad
        ),
        150, 50_000, 2_000, ("strace",),
    ),
    Harness(
        "io-errors", "P6, P7", "each system call on the data file fails, once or from then on",
        lambda place, tries, first, bad: io_errors.run(
            place, tries=tries, first=first, sabotage=bad
        ),
        36, 1_500, 250, ("strace",),
    ),
    Harness(
        "damage", "P10, P12", "bits, bytes, sectors, pages of the data file changed; file cut",
        lambda place, tries, first, bad: damage.run(
            place, tries=tries, seed=SEED + first, sabotage=bad,
            kinds=("bit", "byte") if bad else damage.KINDS,
        ),
        350, 100_000, 4_000,
    ),
    Harness(
        "tampering", "P13", "edits, removals, insertions with right checksums",
        lambda place, tries, first, bad: tampering.run(
            place, tries=tries, seed=SEED + first, sabotage=bad
        ),
        44, 20_000, 2_000,
    ),
    Harness(
        "snapshots", "P11", "one, two or all of three snapshots damaged",
        lambda place, tries, first, bad: bad_snapshots.run(
            place, tries=tries, seed=SEED + first, sabotage=bad
        ),
        1_000, 10_000, 2_500,
    ),
    Harness(
        "writers", "P17", "two writers started at once",
        lambda place, tries, _, bad: kills.race(place / "log", tries=tries, sabotage=bad),
        20, 1_000, 200,
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
    parser.add_argument("--ledger", type=Path, help="write each batch down here, and go on from it")
    parser.add_argument("--output", type=Path, help="write the page to this file")
    given = parser.parse_args(arguments)
    ledger = Ledger(given.ledger)
    is_good = True
    for harness in HARNESSES:
        if given.only is not None and harness.name not in given.only:
            continue
        tries = given.tries or (harness.short if given.short else harness.long)
        is_good = run_harness(harness, tries, ledger) and is_good
        print(row_of(harness, ledger), flush=True)  # noqa: T201 - a program that reports
    if given.output:
        given.output.write_text(page(ledger))
    return 0 if is_good else 1


def run_harness(harness: Harness, tries: int, ledger: Ledger) -> bool:
    """
    Run a harness, what is left of it, and its sabotage; say whether all was as it must be.
    """
    missing = [program for program in harness.needs if shutil.which(program) is None]
    if missing:
        print(f"{harness.name} needs {', '.join(missing)}", flush=True)  # noqa: T201
        return False
    if not ledger.is_caught(harness.name):
        count = min(SABOTAGE_TRIES, harness.short)
        sabotaged = measured(lambda place: harness.run(place, count, 0, True))
        ledger.enter(Batch.of(harness.name, 0, sabotaged, is_sabotaged=True))
    while (done := ledger.tries(harness.name)) < tries:
        count = min(harness.batch, tries - done)
        result = measured(lambda place: harness.run(place, count, done, False))  # noqa: B023
        ledger.enter(Batch.of(harness.name, done, result))
    return ledger.is_caught(harness.name) and not ledger.violations(harness.name)


def row_of(harness: Harness, ledger: Ledger) -> str:
    """
    Return a harness's row of the table.
    """
    total = Outcome(tries=ledger.tries(harness.name), violations=ledger.violations(harness.name))
    caught = "caught" if ledger.is_caught(harness.name) else "NOT CAUGHT"
    return (
        f"| {harness.promise} | {harness.what} | {total.tries:,} | {total.violations} "
        f"| {total.bound()} | {caught} | {ledger.cpu_s(harness.name):.0f} s |"
    )


def page(ledger: Ledger) -> str:
    """
    Return the page that we publish.
    """
    rows = [row_of(harness, ledger) for harness in HARNESSES if ledger.tries(harness.name)]
    texts = REPO / "tools" / "torture"
    before, after = ((texts / name).read_text() for name in ("page.md", "notes.md"))
    return before + "\n".join(rows) + "\n" + after


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""
Run conformance cases from the command line.

``python -m tools.conformance vectors FILE [--kind KIND]... [--id ID]...`` prints a line per vector
and, last, ``N passed, N failed``. The exit status is 0 when none failed, 1 when some did, 2 when
there is nothing to run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from domain.errors import Refused
from tools.conformance.vectors import Outcome, load, run_all


def main(arguments: list[str] | None = None) -> int:
    """
    Run what the arguments ask for and return the exit status.
    """
    asked = _parser().parse_args(arguments)
    try:
        vectors = load(asked.file)
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        _summary([])
        return Refused.exit_status
    outcomes = [
        outcome
        for outcome in run_all(vectors)
        if (not asked.kind or outcome.vector.kind in asked.kind)
        and (not asked.id or outcome.vector.id in asked.id)
    ]
    for outcome in outcomes:
        _report(outcome)
    if outcomes:
        return _summary(outcomes)
    sys.stderr.write("nothing was run: no vector of the file is of that kind or id\n")
    _summary(outcomes)
    return Refused.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.conformance", description=__doc__)
    commands = parser.add_subparsers(required=True)
    vectors = commands.add_parser("vectors", help="run LSF-semantics vectors from a YAML file")
    vectors.add_argument("file", type=Path)
    vectors.add_argument("--kind", action="append", help="only vectors of this kind")
    vectors.add_argument("--id", action="append", help="only this vector")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _report(outcome: Outcome) -> None:
    vector = outcome.vector
    if outcome.left_out:
        _say(f"left out {vector.id}: {outcome.left_out}")
        return
    _say(f"{'pass' if outcome.has_passed else 'FAIL'} {vector.id} {vector.title}")
    for line in outcome.differences:
        _say(f"     {line}")


def _summary(outcomes: list[Outcome]) -> int:
    left_out = [outcome.vector.id for outcome in outcomes if outcome.left_out]
    passed = sum(outcome.has_passed for outcome in outcomes)
    failed = len(outcomes) - passed - len(left_out)
    if left_out:
        _say(f"{len(left_out)} left out: {' '.join(left_out)}")
    _say(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""
Run conformance cases from the command line.

``python -m tools.conformance vectors FILE [--kind KIND]... [--id ID]...`` prints a line per vector
and, last, ``N passed, N failed``. The exit status is 0 when none failed, 1 when some did, 2 when
there is nothing to run.

``python -m tools.conformance picker MODULE:NAME`` (or ``allocator``) tries a plug-in of another
package, named as in its entry point, and prints a line for each rule that it breaks; the exit
status is 1 when it breaks any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from domain.errors import Refused
from tools.conformance import allocator_cases, picker_cases

if TYPE_CHECKING:
    from tools.conformance.vectors import Outcome

PROBLEMS_OF: Final[dict[str, Callable[[Any], list[str]]]] = {
    "picker": picker_cases.problems_of,
    "allocator": allocator_cases.problems_of,
}


def main(arguments: list[str] | None = None) -> int:
    """
    Run what the arguments ask for and return the exit status.
    """
    asked = _parser().parse_args(arguments)
    if "plugin" in asked:
        return _try_plugin(asked.kind, asked.plugin)
    return _run_vectors(asked)


def _run_vectors(asked: argparse.Namespace) -> int:
    """
    Run the vectors of a file and return the exit status.
    """
    # Vectors are YAML, which an installation for use can't read: plug-ins are tried without.
    if find_spec("yaml") is None:
        sys.stderr.write("reading vectors needs PyYAML: python -m pip install pyyaml\n")
        return Refused.exit_status
    from tools.conformance.vectors import load, run_all

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
    for kind in PROBLEMS_OF:
        plugin = commands.add_parser(kind, help=f"try a job {kind} of another package")
        plugin.add_argument("plugin", metavar="MODULE:NAME", help="a class, or what makes one")
        plugin.set_defaults(kind=kind)
    return parser


def _try_plugin(kind: str, named: str) -> int:
    """
    Try a plug-in and return the exit status.
    """
    try:
        make = EntryPoint(kind, named, "").load()
    except Exception as error:  # noqa: BLE001 - whatever importing somebody's module may raise
        rule = f"must be loadable ({type(error).__name__}: {error})"
        sys.stderr.write(f"{Refused('plugin', rule, named)}\n")
        return Refused.exit_status
    problems = PROBLEMS_OF[kind](make)
    for line in problems:
        _say(line)
    _say(f"{len(problems)} problems")
    return 1 if problems else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _report(outcome: Outcome) -> None:
    vector = outcome.vector
    if outcome.left_out:
        _say(f"left out {vector.id}: {outcome.left_out}")
        return
    shown = " ".join(f"{vector.id} {vector.title}".split())
    _say(f"{'pass' if outcome.has_passed else 'FAIL'} {shown}")
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

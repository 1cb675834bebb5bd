"""
Write down every finished batch of tries, so that an interrupted run counts and goes on.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from tools.torture.children import stop_server
from tools.torture.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Batch:
    """
    One line of the ledger.

    Args:
        harness: Whose.
        first: How many tries were made before: with it the batch can be repeated.
        tries: How many it has.
        violations: How many broken promises.
        found: The first of them, "" without any.
        cpu_s: Processor time, of all its processes.
        is_sabotaged: Whether it is the one that must find something.
    """

    harness: str
    first: int
    tries: int
    violations: int
    found: str
    cpu_s: int
    is_sabotaged: bool = False

    @classmethod
    def of(
        cls, name: str, first: int, result: tuple[Outcome, int], *, is_sabotaged: bool = False
    ) -> Self:
        """
        Return the line for what a harness saw.
        """
        outcome, cpu_s = result
        found = outcome.first[:300]
        return cls(name, first, outcome.tries, outcome.violations, found, cpu_s, is_sabotaged)


class Ledger:
    """
    Keep batches in a file of JSON lines, or only in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._batches: list[Batch] = []
        if path is not None and path.exists():
            lines = path.read_text().splitlines()
            self._batches = [Batch(**json.loads(line)) for line in lines]

    def enter(self, batch: Batch) -> None:
        """
        Add a batch.
        """
        self._batches.append(batch)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(asdict(batch)) + "\n")

    def tries(self, name: str) -> int:
        """
        Return how many tries a harness has made.
        """
        return sum(batch.tries for batch in self._of(name))

    def violations(self, name: str) -> int:
        """
        Return how many broken promises it found.
        """
        return sum(batch.violations for batch in self._of(name))

    def cpu_s(self, name: str) -> int:
        """
        Return the processor time of its tries.
        """
        return sum(batch.cpu_s for batch in self._of(name))

    def is_caught(self, name: str) -> bool:
        """
        Say whether its sabotage was found.
        """
        return any(batch.violations for batch in self._of(name, is_sabotaged=True))

    def _of(self, name: str, *, is_sabotaged: bool = False) -> list[Batch]:
        """
        Return the batches of a harness.
        """
        return [
            batch
            for batch in self._batches
            if batch.harness == name and batch.is_sabotaged is is_sabotaged
        ]


def measured(run: Callable[[Path], Outcome]) -> tuple[Outcome, int]:
    """
    Run in an empty directory, in memory where there is such a file system; return what was seen and
    the processor time in seconds.
    """
    base = Path("/dev/shm")  # noqa: S108 - made by mkdtemp
    place = Path(
        tempfile.mkdtemp(prefix="xce-torture-", dir=base if os.access(base, os.W_OK) else None)
    )
    before = sum(os.times()[:4])
    try:
        outcome = run(place)
        # Only what has ended is counted, and children are those of the server.
        stop_server()
        return outcome, round(sum(os.times()[:4]) - before)
    finally:
        shutil.rmtree(place, ignore_errors=True)

"""
Run figures in rounds, take medians and ratios, and show them.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple, final

REPO = Path(__file__).resolve().parent.parent.parent


class NotMeasured(Exception):  # noqa: N818 - it is an outcome, not a fault
    """
    Say that a figure can't be measured on this machine, and why.
    """


class Reading(NamedTuple):
    """
    Hold one measured value of one round.

    Args:
        name: What was measured; unique within its figure, the same in every round.
        value: The value.
        unit: Its unit: 1/s, s, B, MiB ...
        per: Name of the reading of the same round that its ratio is taken to, "" for none.
        goal: The least value that is wanted (the greatest, if lower is better), None for none.
        is_lower_better: Whether less is better.
    """

    name: str
    value: float
    unit: str
    per: str = ""
    goal: float | None = None
    is_lower_better: bool = False


@final
@dataclass(frozen=True, slots=True)
class Figure:
    """
    Describe a figure.

    Args:
        name: One word, to ask for it.
        says: What it shows, as a sentence.
        measure: Takes the readings of one round; gets an empty folder that is removed afterwards.
        rounds: How many rounds are taken.
        is_long: Whether it takes so long that it is only run when it is named.
    """

    name: str
    says: str
    measure: Callable[[Path], Iterable[Reading]]
    rounds: int = 3
    is_long: bool = False


@final
@dataclass(frozen=True, slots=True)
class Result:
    """
    Hold the outcome of one reading over all rounds of its figure.
    """

    figure: str
    reading: str
    median: float
    low: float
    high: float
    unit: str
    per: str
    ratio: float | None
    goal: float | None
    is_met: bool | None


@final
@dataclass(frozen=True, slots=True)
class Missing:
    """
    Name a figure that was not measured, and why.
    """

    figure: str
    why: str


def trace_path(name: str) -> Path:
    """
    Return a recorded workload by its path in the data folder (../shared/data, or XCE_TRACES).

    Raises:
        NotMeasured: It isn't there.
    """
    folder = Path(os.environ.get("XCE_TRACES") or REPO.parent / "shared" / "data")
    path = folder / name
    if not path.is_file():
        message = f"the recorded workload {name} is not in ../shared/data (or in XCE_TRACES)"
        raise NotMeasured(message)
    return path


def run(figure: Figure, folder: Path, rounds: int | None = None) -> list[Result]:
    """
    Measure a figure and return its results, in the order of its readings.

    Args:
        figure: What to measure.
        folder: Where each round's folder is made; it must be on the disk that is meant.
        rounds: How many rounds instead of the figure's own number.
    """
    taken: list[list[Reading]] = []
    for _ in range(rounds or figure.rounds):
        place = Path(tempfile.mkdtemp(prefix=f"{figure.name}-", dir=folder))
        try:
            taken.append(list(figure.measure(place)))
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return results_of(figure.name, taken)


def results_of(figure: str, rounds: Sequence[Sequence[Reading]]) -> list[Result]:
    """
    Return the results of the readings of all rounds; every round has the same ones.
    """
    by_name = [{reading.name: reading for reading in readings} for readings in rounds]
    return [_result(figure, reading, by_name) for reading in rounds[0]]


def _result(figure: str, first: Reading, by_name: list[dict[str, Reading]]) -> Result:
    values = [readings[first.name].value for readings in by_name]
    ratio = None
    if first.per:
        ratio = median(r[first.name].value / r[first.per].value for r in by_name)
    middle = median(values)
    is_met = None
    if first.goal is not None:
        is_met = middle <= first.goal if first.is_lower_better else middle >= first.goal
    return Result(
        figure=figure,
        reading=first.name,
        median=middle,
        low=min(values),
        high=max(values),
        unit=first.unit,
        per=first.per,
        ratio=ratio,
        goal=first.goal,
        is_met=is_met,
    )


def machine() -> dict[str, str | int]:
    """
    Return what the figures depend on, besides the code.
    """
    return {
        "cores": os.cpu_count() or 0,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
    }


def as_object(results: Sequence[Result], missing: Sequence[Missing]) -> dict[str, object]:
    """
    Return everything as one object that JSON can hold.
    """
    return {
        "machine": machine(),
        "results": [asdict(result) for result in results],
        "not_measured": [asdict(one) for one in missing],
    }


def shown_value(value: float) -> str:
    """
    Return a value with four digits that matter, thousands apart.
    """
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def row_of(result: Result) -> tuple[str, ...]:
    """
    Return a result as the cells of a table's row.
    """
    bounds = f"{shown_value(result.low)} .. {shown_value(result.high)}"
    ratio = f"{shown_value(result.ratio)} x {result.per}" if result.ratio is not None else ""
    goal = ""
    if result.goal is not None:
        goal = f"{shown_value(result.goal)} {'met' if result.is_met else 'MISSED'}"
    value = f"{shown_value(result.median)} {result.unit}"
    return (result.figure, result.reading, value, bounds, ratio, goal)

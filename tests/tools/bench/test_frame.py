"""
The frame of the benchmarks: medians, ratios within a round, goals, and what wasn't measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools.bench import __main__ as program
from tools.bench.frame import Figure, NotMeasured, Reading, results_of, run


def a_round(denominator: float, value: float, **more: object) -> list[Reading]:
    """
    Return the readings of one round of a figure with a denominator.
    """
    return [Reading("base", denominator, "1/s"), Reading("it", value, "1/s", per="base", **more)]


def test_a_ratio_is_taken_within_each_round_and_then_its_median() -> None:
    """
    The ratio of the medians would be 5/2: it would set one round's value against another's base.
    """
    rounds = [a_round(1, 4), a_round(2, 6), a_round(5, 5)]

    _, result = results_of("f", rounds)

    assert (5, 4, 6, 3.0) == (result.median, result.low, result.high, result.ratio)


@pytest.mark.parametrize(
    ("goal", "is_lower_better", "is_met"),
    [(5, False, True), (6, False, False), (5, True, True), (4, True, False), (None, False, None)],
)
def test_a_goal_is_held_against_the_median(goal, is_lower_better, is_met) -> None:
    """
    A figure that missed its goal must say so by itself.
    """
    readings = a_round(1, 5, goal=goal, is_lower_better=is_lower_better)

    _, result = results_of("f", [readings])

    assert is_met is result.is_met


def test_each_round_gets_an_empty_folder_that_is_removed(tmp_path: Path) -> None:
    """
    The files of one round must not warm up the next, nor fill the disk.
    """
    seen = []

    def measure(folder: Path) -> list[Reading]:
        assert list(folder.iterdir()) == []
        (folder / "file").write_text("x")
        seen.append(folder)
        return [Reading("it", 1, "s")]

    run(Figure("f", "It.", measure, rounds=3), tmp_path)

    assert len(set(seen)) == 3
    assert list(tmp_path.iterdir()) == []


def measured(monkeypatch, tmp_path: Path, *figures: Figure, args: tuple[str, ...] = ()):
    """
    Run the program on figures of the test, as JSON.
    """
    monkeypatch.setattr(program, "figures", lambda: {figure.name: figure for figure in figures})
    return CliRunner().invoke(program.main, ["--json", "--dir", str(tmp_path), *args])


def test_what_cannot_be_measured_is_named_and_the_others_go_on(monkeypatch, tmp_path) -> None:
    """
    A missing trace must neither hide the other figures nor look like success.
    """

    def missing(folder: Path) -> list[Reading]:
        raise NotMeasured("no trace")

    def broken(folder: Path) -> list[Reading]:
        raise ValueError(3)

    good = Figure("good", "It.", lambda _: [Reading("it", 7, "1/s")])
    outcome = measured(
        monkeypatch, tmp_path, Figure("a", "A.", missing), Figure("b", "B.", broken), good
    )

    told = json.loads(outcome.stdout)
    assert outcome.exit_code == 1
    assert ["good"] == [result["figure"] for result in told["results"]]
    assert told["not_measured"] == [
        {"figure": "a", "why": "no trace"},
        {"figure": "b", "why": "failed: ValueError: 3"},
    ]


def test_an_unknown_figure_is_refused_with_the_names_that_exist(monkeypatch, tmp_path) -> None:
    """
    A slip must not end in an empty table.
    """
    good = Figure("good", "It.", lambda _: [Reading("it", 7, "1/s")])

    outcome = measured(monkeypatch, tmp_path, good, args=("goood",))

    assert outcome.exit_code == 2
    assert "there are: good" in outcome.output


@pytest.mark.slow
def test_the_programs_own_figures_are_found_and_measured(tmp_path: Path) -> None:
    """
    The real command, on the cheapest figures, gives one JSON object.
    """
    command = [sys.executable, "-m", "tools.bench", "disk", "spawn", "--json", "--rounds", "1"]

    told = subprocess.run(
        [*command, "--dir", str(tmp_path)], check=True, capture_output=True, text=True
    )

    results = json.loads(told.stdout)["results"]
    assert {"disk", "spawn"} == {result["figure"] for result in results}
    assert all(result["median"] > 0 for result in results)

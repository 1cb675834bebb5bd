"""
Run the figures that are asked for, or all of them.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
from pathlib import Path

import click
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import tools.bench
from tools.bench.frame import Figure, Missing, NotMeasured, Result, as_object, machine, row_of, run

# A table into a file or a narrow terminal keeps its lines whole.
TABLE_WIDTH = 150
COLUMNS = ("figure", "reading", "median", "lowest .. highest", "ratio", "goal")


def figures() -> dict[str, Figure]:
    """
    Return the figures of this package by name, in order of the names.
    """
    found: dict[str, Figure] = {}
    for module_info in pkgutil.iter_modules(tools.bench.__path__):
        if module_info.name.startswith("_"):
            continue
        module = importlib.import_module(f"tools.bench.{module_info.name}")
        figure = getattr(module, "FIGURE", None)
        if isinstance(figure, Figure):
            assert figure.name not in found, f"two figures are named {figure.name}"
            found[figure.name] = figure
    return dict(sorted(found.items()))


def chosen(names: tuple[str, ...]) -> list[Figure]:
    """
    Return the figures of these names, or all but the long ones when none is given.
    """
    known = figures()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.UsageError(f"no figure is named {unknown[0]}; there are: {', '.join(known)}")
    return [known[name] for name in (names or known) if names or not known[name].is_long]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--json", "is_json", is_flag=True, help="Print one JSON object.")
@click.option("--rounds", type=click.IntRange(min=1), help="Rounds instead of each figure's own.")
@click.option(
    "--dir", "folder", default="bench-results", show_default=True,
    type=click.Path(file_okay=False, path_type=Path), help="Folder on the disk that is meant.",
)  # fmt: skip
@click.option("--list", "is_list", is_flag=True, help="Say what each figure shows, and stop.")
def main(
    *, names: tuple[str, ...], is_json: bool, rounds: int | None, folder: Path, is_list: bool
) -> None:
    """
    Measure figures: medians over rounds, and ratios to a denominator of the same round.
    """
    wanted = chosen(names)
    if is_list:
        for figure in figures().values() if not names else wanted:
            long = " Long: only when it is named." if figure.is_long else ""
            click.echo(f"{figure.name:16} {figure.says}{long}")
        return
    folder.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=is_json)
    console.width = max(console.width, TABLE_WIDTH)
    results: list[Result] = []
    missing: list[Missing] = []
    for figure in wanted:
        console.print(f"{figure.name}: {figure.says}", style="dim", highlight=False)
        try:
            results += run(figure, folder, rounds)
        except NotMeasured as reason:
            missing.append(Missing(figure.name, str(reason)))
        except Exception as error:  # noqa: BLE001 - one broken figure must not hide the others
            missing.append(Missing(figure.name, f"failed: {type(error).__name__}: {error}"))
    if is_json:
        click.echo(json.dumps(as_object(results, missing), indent=1))
    else:
        show(console, results, missing)
    sys.exit(1 if missing else 0)


def show(console: Console, results: list[Result], missing: list[Missing]) -> None:
    """
    Print the table, and below it what was not measured.
    """
    about = machine()
    title = ", ".join(f"{name} {value}" for name, value in about.items())
    table = Table(*COLUMNS, title=title, title_justify="left", box=SIMPLE)
    for result in results:
        table.add_row(*row_of(result))
    console.print(table)
    for one in missing:
        console.print(f"not measured: {one.figure}: {one.why}", highlight=False)


if __name__ == "__main__":
    main()

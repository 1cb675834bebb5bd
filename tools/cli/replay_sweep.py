"""
Run one workload with many settings, and set their figures side by side.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import click

from domain.errors import Refused
from domain.units import whole_number
from tools.cli.options import json_option
from tools.cli.output import counted, note_each, say, say_json, table

SHOWN = (
    ("JOBS", "jobs"), ("WAIT_S", "mean_wait_s"), ("SLOWDOWN", "mean_bounded_slowdown"),
    ("UTIL", "utilisation"), ("MAKESPAN_S", "makespan_s"),
)  # fmt: skip
TRIALS_MAX = 100_000


@click.command(epilog="""
\b
Examples:
  xce replay sweep trace.swf.gz --cluster 100x1,128x1 --picker builtin_fcfs,strict_fcfs
  xce replay sweep trace.swf.gz --cluster 100x1 --load 1,1.1,1.2 --estimates random:3 --seed 1,2,3
  xce replay sweep run1 --set queue.night.priority=20,40,60 --json
  xce replay sweep trace.swf.gz --cluster 100x1 --picker builtin_fcfs,easy --dask tcp://head:8786
Every combination is a trial; the rows stand in order of the options, whatever ends first. FILE is
whatever xce simulate reads, a log or recording among it. With --dask the workers of that cluster
must see FILE under the same path and have the same XCE installed (pip install 'xce[dask]').
With --logs DIR: xce replay diff DIR/0001 DIR/0002.
""")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--cluster", "clusters", multiple=True, metavar="HOSTSxSLOTS|FILE,...",
              help="Model clusters; else the file's own.")
@click.option("--picker", "pickers", multiple=True, metavar="NAME,...",
              help="Which job is next; builtin_fcfs when none is named.")
@click.option("--load", "loads", multiple=True, metavar="FACTOR,...",
              help="Divide the times between submissions by this.")
@click.option("--estimates", "estimates", multiple=True, metavar="RULE,...",
              help="What the scheduler is told of run times, as xce simulate takes it; "
                   "at-least-run when none is named.")
@click.option("--seed", "seeds", multiple=True, metavar="NUMBER,...", help="Where chance begins.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE,...",
              help="Values of queue.NAME.FIELD, queue.FIELD or cluster.FIELD; again for more keys.")
@click.option("--run-time", "unrecorded_run_s", type=click.IntRange(0, 10**9), metavar="SECONDS",
              help="The run time of jobs in a table without times (openb).")
@click.option("--jobs", "processes", type=click.IntRange(min=1), metavar="N",
              help="So many processes at a time; else one for each core.")
@click.option("--dask", "address", metavar="ADDRESS",
              help="Run on the Dask cluster whose scheduler has this address.")
@click.option("--logs", type=click.Path(path_type=Path), metavar="DIR",
              help="Keep each trial's log, in DIR/0001 and so on.")
@click.option("--progress/--no-progress", default=None,
              help="Show a progress bar; else only on a terminal.")
@json_option
def sweep(  # noqa: PLR0913 - each is an option of the command
    file: Path, *, clusters: tuple[str, ...], pickers: tuple[str, ...], loads: tuple[str, ...],
    estimates: tuple[str, ...], seeds: tuple[str, ...], settings: tuple[str, ...],
    unrecorded_run_s: int | None, processes: int | None, address: str | None, logs: Path | None,
    progress: bool | None, as_json: bool,
) -> None:
    """
    Run a workload with every combination of settings, over the cores or on a Dask cluster.
    """
    from domain.definition_texts import unit_notices
    from replay.workloads.adjusting import ESTIMATES_DEFAULT
    from tools.sweeping import Choices, check_trials, run_here, run_on_dask

    choices = Choices(
        pickers=tuple(split(pickers)) or ("builtin_fcfs",),
        clusters=tuple(split(clusters)) or (None,),
        loads=tuple(split(loads)) or ("1",),
        estimates=tuple(split(estimates)) or (ESTIMATES_DEFAULT,),
        seeds=tuple(map(_seed, split(seeds))) or (None,),
        settings=tuple(map(setting_values, settings)),
    )
    trials = choices.trials(file, unrecorded_run_s=unrecorded_run_s, logs=logs)
    if len(trials) > TRIALS_MAX:
        raise Refused("FILE", f"must be run at most {TRIALS_MAX:,} times", len(trials))
    check_trials(trials)
    note_each(unit_notices(one for values in choices.settings for one in values))
    if address is None:
        rows = run_here(trials, processes or len(os.sched_getaffinity(0)))
    else:
        rows = run_on_dask(trials, address)
    shown = sys.stderr.isatty() if progress is None else progress
    with closing(rows), _bar(len(trials), shown=shown) as step:
        found = []
        for row in rows:
            found.append(row)
            step()
    found.sort(key=lambda row: int(row["trial"]))
    if as_json:
        say_json({"file": str(file), "trials": found})
        return
    _show(found)


def split(texts: tuple[str, ...]) -> Iterator[str]:
    """
    Yield the values of an option that may be given again and may hold several, with commas.
    """
    for text in texts:
        yield from (part.strip() for part in text.split(",") if part.strip())


def setting_values(text: str) -> tuple[str, ...]:
    """
    Return KEY=VALUE for each value of a setting.

    Raises:
        Refused: There is no key, or no value.
    """
    key, mark, values = text.partition("=")
    found = tuple(f"{key}={value}" for value in split((values,)))
    if not mark or not found:
        raise Refused("--set", "must be KEY=VALUE,VALUE", text)
    return found


def _seed(text: str) -> int:
    seed = whole_number(text.removeprefix("-"))
    if seed is None:
        raise Refused("--seed", "must be a whole number", text)
    return -seed if text.startswith("-") else seed


@contextmanager
def _bar(trials: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """
    Give what is called after each trial.
    """
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("trials", total=trials)
        yield lambda: bar.advance(task)


def _show(rows: list[dict[str, Any]]) -> None:
    """
    Print one table: the settings that differ, and the figures.
    """
    known = {"trial", "log", "hosts", "slots", "never_placed", "left_out", "sessions", "events",
             *(name for _, name in SHOWN)}  # fmt: skip
    names = [name for name in rows[0] if name not in known]
    varied = [name for name in names if len({str(row[name]) for row in rows}) > 1]
    totals = [sum(row["left_out"].values()) for row in rows]
    some = any(totals)
    heads = ("TRIAL", *(name.upper() for name in varied), *(head for head, _ in SHOWN),
             *(("LEFT_OUT",) if some else ()))  # fmt: skip
    cells = [
        (row["trial"], *(row[name] for name in varied), *(row[name] for _, name in SHOWN),
         *((f"{total:,}",) if some else ()))
        for row, total in zip(rows, totals, strict=True)
    ]  # fmt: skip
    table(heads, cells, numbers="TRIAL LEFT_OUT " + " ".join(head for head, _ in SHOWN))
    _show_left_out(rows)
    unplaced = sum(int(row["never_placed"]) for row in rows)
    if unplaced:
        say(f"In all {counted(unplaced, 'job')} never placed, and not in these figures.")


def _show_left_out(rows: list[dict[str, Any]]) -> None:
    """
    Print how many jobs each rule left out of a trial: the fewest and the most of all trials.
    """
    for name in dict.fromkeys(name for row in rows for name in row["left_out"]):
        counts = [int(row["left_out"].get(name, 0)) for row in rows]
        fewest, most = min(counts), max(counts)
        if most:
            shown = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
            say(f"  left out, {name:<24} {shown:>14}")

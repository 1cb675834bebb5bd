"""
Run a recorded workload on a model cluster and print the figures of its schedule.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

import click

from tools.cli.options import json_option
from tools.cli.output import (
    as_typed,
    counted,
    note,
    note_each,
    say,
    say_json,
    show_duration,
    show_kib,
)
from tools.cli.temporary import temporary_directory
from tools.collecting import collect_rarely

if TYPE_CHECKING:
    from projections.figures import Figures
    from replay.branch_changes import Changes
    from replay.cluster_spec import ClusterSpec
    from replay.simulation import Progress, SimulationResult
    from replay.workloads.source import Workload

NO_RUN_TIME = "run time < 0"
US = 1_000_000
EPILOG = """
\b
Examples:
  xce simulate KTH-SP2-1996-2.1-cln.swf.gz
  xce simulate trace.swf --cluster 100x1 --picker strict_fcfs
  xce simulate trace.swf.gz --log run1 --json; xce replay verify run1
  xce simulate workload_week.events.gz --cluster slurm.conf
  xce simulate run1 --picker strict_fcfs    the jobs of a log, with their real run times
FILE is told by its content: a log (its directory) or recording of XCE, SWF, SWF as Alea extends it,
Slurm's sacct (--parsable, --json), events of a Slurm simulator, LSF's lsb.acct and lsb.events, PBS
accounting, pods of openb; plain or gzip. A log or recording runs on its own hosts unless others are
given. --cluster FILE is JSON, a slurm.conf, a table of machines, or openb's table of nodes. What
jobs ask for counts as far as the cluster describes it.
The figures: wait = start - submit; bounded slowdown = max(1, (wait + run) / max(run, 10 s));
utilisation = used slot-time / offered slot-time; makespan = last end - first submit. With --json
one object: jobs, left_out (a count by rule), mean_wait_s, mean_bounded_slowdown, makespan_s,
utilisation, jobs_per_s, events, log_bytes, sum_starts_s (the trace's own seconds), and more.
Next, with --log DIR: xce log info DIR, xce replay verify DIR.
"""


class PickerOption(click.Option):
    """
    Tell in the help text which pickers there are; they are asked for only when it is shown.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """
        Name every picker that is built in, with what it does.
        """
        from projections.scheduling.plugins import BUILT_IN_PICKERS

        named = "; ".join(f"{one().name} ({_what(one)})" for one in BUILT_IN_PICKERS)
        self.help = f"Which job is next: {named}; or another plug-in's name."
        return super().get_help_record(ctx)


def _what(picker: Callable[[], object]) -> str:
    """
    Return what a picker does: the first sentence of its description, to go on with.
    """
    first = " ".join((picker.__doc__ or "").split()).partition(".")[0]
    return first[:1].lower() + first[1:]


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--cluster", metavar="HOSTSxSLOTS|FILE",
              help="The model cluster: a size such as 1024x8, or a file; else the file's header.")
@click.option("--estimates", metavar="RULE", default="at-least-run", show_default=True,
              help="Tell the scheduler run times, for planning: requested, at-least-run (the "
                   "same, never below the run time), exact, times:F, or random:F with a seed.")
@click.option("--load", metavar="FACTOR", default="1", show_default=True,
              help="Divide the times between submissions by this, exactly.")
@click.option("--seed", type=int, metavar="NUMBER", help="Where chance begins; it has no default.")
@click.option("--run-time", "unrecorded_run_s", type=click.IntRange(0, 10**9), metavar="SECONDS",
              help="The run time of jobs in a table without times (openb); else none runs.")
@click.option("--picker", cls=PickerOption, default="builtin_fcfs", show_default=True,
              metavar="NAME")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE",
              help="A setting: queue.NAME.picker=strict_fcfs, queue.priority=50 (all queues), "
                   "cluster.reserve_per_task=true, ... Repeatable.")
@click.option("--log", "kept", type=click.Path(path_type=Path), metavar="DIR",
              help="Keep the log in this directory, new or empty; else it is removed at the end.")
@click.option("--progress/--no-progress", default=None,
              help="Show a progress bar; else only on a terminal.")
@json_option
def simulate(  # noqa: PLR0913 - each is an option of the command
    file: Path,
    cluster: str | None,
    picker: str,
    settings: tuple[str, ...],
    kept: Path | None,
    *,
    estimates: str | None,
    load: str,
    seed: int | None,
    unrecorded_run_s: int | None,
    progress: bool | None,
    as_json: bool,
) -> None:
    """
    Run a recorded workload on a model cluster.

    Every event is kept in a log of its own, decided by the same core as in production.
    """
    from domain.definition_texts import unit_notices
    from replay.branch_changes import Changes, parse_setting
    from replay.workloads.adjusting import Adjustments, parse_load
    from replay.workloads.reading import read_workload

    shown = sys.stderr.isatty() if progress is None else progress
    adjustments = Adjustments(estimates, parse_load(load), seed)
    changes = Changes(settings=tuple(map(parse_setting, settings)))
    note_each(unit_notices(settings))
    with _helped(file, cluster):
        workload = read_workload(file, adjustments, unrecorded_run_s=unrecorded_run_s)
        with _place(kept) as place:
            run = simulated(workload, cluster, picker, place, changes=changes, shown=shown)
    if as_json:
        say_json({**run.plain(), "log": None if kept is None else str(kept)})
        return
    _show(run)
    if kept is not None:
        say(f"The log is in {kept}: {as_typed('xce', 'replay', 'verify', kept)}")


PACKED = (".gz", ".zst", ".bz2", ".xz")


@contextmanager
def _helped(file: Path, cluster: str | None) -> Iterator[None]:
    """
    Say of a refusal what to give: the cluster that lies beside the workload, or the workload where
    a cluster was given in its place.
    """
    from domain.errors import Refused
    from replay.cluster_file import read_cluster_file
    from replay.cluster_spec import OPTION

    try:
        yield
    except Refused as error:
        found = _cluster_beside(file) if error.field == OPTION and cluster is None else None
        if found is not None:
            error.hint = f"Beside it lies one: {OPTION} {found}."
        elif error.field == "workload" and file.is_file():
            with suppress(Refused):
                read_cluster_file(file)
                error.hint = f"It is a cluster: give it by {OPTION}, and the workload as FILE."
        raise


def _cluster_beside(file: Path) -> Path | None:
    """
    Return the cluster file that lies beside a workload by the names that such pairs have: a table
    of machines, openb's nodes beside its pods, or a slurm.conf.
    """
    plain = file.stem if file.suffix in PACKED else file.name
    beside = [file.with_name(f"{name}.machines") for name in (file.name, plain)]
    if "pod_list" in plain:
        beside += sorted(file.parent.glob("*node_list*.csv"))
    beside.append(file.with_name("slurm.conf"))
    return next((one for one in beside if one.is_file()), None)


@contextmanager
def _place(kept: Path | None) -> Iterator[Path]:
    """
    Give the directory of the log: the one asked for, or a temporary one.
    """
    if kept is not None:
        from tools.cli.log_places import check_new

        check_new(kept)
        yield kept
        return
    with temporary_directory("xce-simulate-") as directory:
        yield directory / "log"


@final
@dataclass(frozen=True, slots=True)
class Run:
    """
    Hold one simulation that was run.

    Args:
        workload: The jobs that were simulated, and the counts of those that were left out.
        cluster: The model cluster.
        result: What the driver gave.
        elapsed_us: How long it took by the wall clock.
        log_bytes: Size of its log.
    """

    workload: Workload
    cluster: ClusterSpec
    result: SimulationResult
    elapsed_us: int
    log_bytes: int

    def jobs_per_s(self) -> float:
        """
        Return simulated jobs per second of the wall clock, to a tenth.
        """
        return round(self.result.figures.job_count * US / max(1, self.elapsed_us), 1)

    def never_placed(self) -> int:
        """
        Return how many jobs still waited when nothing ran any more and none was to come.
        """
        return len(self.workload.jobs) - self.result.figures.job_count

    def plain(self) -> dict[str, object]:
        """
        Return the object that --json prints.
        """
        figures = self.result.figures
        return {
            "workload": self.workload.name,
            "hosts": len(self.cluster.hosts),
            "slots": self.cluster.slots,
            **figures_row(figures),
            "left_out": dict(self.workload.left_out.by_name()),
            "notes": dict(self.workload.notes),
            "never_placed": self.never_placed(),
            "sum_starts_s": self.result.start_sum_s,
            "sessions": self.result.sessions,
            "events": self.result.events,
            "log_bytes": self.log_bytes,
            "elapsed_s": self.elapsed_us / US,
            "jobs_per_s": self.jobs_per_s(),
        }


def figures_row(figures: Figures) -> dict[str, object]:
    """
    Return the figures of a schedule as every command prints them.
    """
    return {
        "jobs": figures.job_count,
        "mean_wait_s": _number(figures.mean_wait_us, US),
        "mean_bounded_slowdown": _number(figures.mean_bounded_slowdown, 1),
        "makespan_s": _number(figures.makespan_us, US),
        "utilisation": _number(figures.utilisation, 1),
    }


def _number(figure: object, unit: int) -> float | int | None:
    """
    Return a figure in a unit, with six decimals when it isn't whole; None when there is none.
    """
    from fractions import Fraction

    from projections.figures import shown

    if figure is None:
        return None
    assert isinstance(figure, Fraction | int)
    value = Fraction(figure) / unit
    return int(value) if value.denominator == 1 else float(shown(value, 6))


def simulated(
    read: Workload,
    cluster: str | None,
    picker: str,
    place: Path,
    *,
    changes: Changes,
    shown: bool,
) -> Run:
    """
    Run a whole simulation into a log at a place.

    Raises:
        Refused: The cluster, the picker or the place can't be used.
    """
    from replay.cluster_file import cluster_for
    from replay.modelling import Modelling
    from replay.plugins import found_plugins
    from replay.simulation import Simulation
    from replay.simulation_settings import checked_settings, log_id_of
    from store.log import EventLog

    plugins = found_plugins()
    settings = checked_settings(picker, plugins, changes)
    hosts = cluster_for(cluster, read)
    workload = Modelling(hosts).fitting(read)
    log_id = log_id_of(workload, hosts, "; ".join((picker, *changes.texts())))
    with EventLog.create(place, log_id=log_id) as log, _bar(workload, shown=shown) as step:
        began_ns = time.perf_counter_ns()
        simulation = Simulation(
            workload, hosts, log, settings=settings, plugins=plugins, changes=changes,
            on_progress=step,
        )  # fmt: skip
        collect_rarely()
        result = simulation.run()
        elapsed_us = (time.perf_counter_ns() - began_ns) // 1000
        return Run(workload, hosts, result, elapsed_us, log.info().bytes)


@contextmanager
def _bar(workload: Workload, *, shown: bool) -> Iterator[Callable[[Progress], None] | None]:
    """
    Give what is called with the progress now and then, None when nobody wants to see it.
    """
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(workload.name, total=len(workload.jobs), rate="")

        def step(progress: Progress) -> None:
            elapsed_s = bar.tasks[0].elapsed
            rate = f"{progress.jobs_done / elapsed_s:,.0f} jobs/s" if elapsed_s else ""
            bar.update(task, completed=progress.jobs_done, rate=rate)

        yield step


def _show(run: Run) -> None:
    plain = run.plain()
    figures = run.result.figures
    say(f"{run.workload.name} on {counted(len(run.cluster.hosts), 'host')} with "
        f"{counted(run.cluster.slots, 'slot')}: {counted(figures.job_count, 'job')} simulated")
    for name, count in run.workload.left_out.by_name():
        if count:
            why = "   (never ran, or hadn't ended)" if name == NO_RUN_TIME else ""
            say(f"  left out, {name:<24} {count:>14,}{why}")
    if run.never_placed():
        note(f"xce: {counted(run.never_placed(), 'job')} never placed, and not in these figures")
    for name, count in run.workload.notes:
        note(f"xce: {name}: {count:,}")
    if not figures.job_count:
        from replay.workloads.openb import WITHOUT_TIMES

        untimed = any(name == WITHOUT_TIMES for name, _ in run.workload.notes)
        how = "; --run-time SECONDS gives those a run time that have none" if untimed else ""
        note(f"xce: there is no job to simulate{how}")
    for line in run.workload.malformed_lines:
        note(f"xce: line {line.line_number} is left out: {line.rule}")
    makespan_us = figures.makespan_us
    is_long = makespan_us is not None and makespan_us >= 60 * US
    rows = (
        ("mean wait", plain["mean_wait_s"], "s"),
        ("mean bounded slowdown", plain["mean_bounded_slowdown"], ""),
        ("utilisation", plain["utilisation"], ""),
        ("makespan", plain["makespan_s"], f"s ({show_duration(makespan_us)})" if is_long else "s"),
        ("sessions", plain["sessions"], ""),
        ("events kept", plain["events"], f"({show_kib(run.log_bytes // 1024)} of log)"),
        ("time taken", round(run.elapsed_us / US, 2), "s"),
        ("simulated", plain["jobs_per_s"], "jobs/s"),
    )
    for name, value, unit in rows:
        shown = "-" if value is None else f"{value:,}"
        say(f"  {name:<34} {shown:>18} {unit}".rstrip())

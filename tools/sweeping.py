"""
Many simulations of one workload, each with settings of its own: which they are, and how one is run.

A trial is plain data and a trial's row too, so that either can go to another process or host. Rows
hold only what is a function of the input, so that a sweep gives the same table wherever it runs.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from domain.errors import Refused, StoreUnavailable
from replay.workloads.adjusting import ESTIMATES_DEFAULT
from tools.cli.temporary import temporary_directory
from tools.pooling import pool_of

if TYPE_CHECKING:
    from replay.workloads.source import Workload

DASK_TIMEOUT_S: Final = 20
PREFIX: Final = "xce-sweep-"
FIGURES: Final = (
    "hosts", "slots", "jobs", "left_out", "never_placed", "mean_wait_s", "mean_bounded_slowdown",
    "utilisation", "makespan_s", "sessions", "events",
)  # fmt: skip
_address = re.compile(r"([a-z]+://)?[^\s:/]+:[0-9]{1,5}")
Row = dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Trial:
    """
    Hold what one simulation of a sweep is run with; None and "" where nothing was said.

    Args:
        number: Its place in the table, from 1.
        file: The workload, by an absolute path.
        settings: KEY=VALUE, as --set takes them.
        log: Where its log is kept, "" for nowhere.
    """

    number: int
    file: str
    picker: str
    cluster: str | None = None
    load: str = "1"
    estimates: str = ESTIMATES_DEFAULT
    seed: int | None = None
    unrecorded_run_s: int | None = None
    settings: tuple[str, ...] = ()
    log: str = ""

    def plain(self) -> Row:
        """
        Return its settings, by the names of the options.
        """
        found: Row = {
            "picker": self.picker, "cluster": self.cluster, "load": self.load,
            "estimates": self.estimates, "seed": self.seed,
        }  # fmt: skip
        for setting in self.settings:
            key, _, value = setting.partition("=")
            found[key] = value
        return found


@final
@dataclass(frozen=True, slots=True)
class Choices:
    """
    Hold what is tried of each setting; every combination is a trial.

    Args:
        settings: For each key the texts KEY=VALUE that are tried.
    """

    pickers: tuple[str, ...]
    clusters: tuple[str | None, ...] = (None,)
    loads: tuple[str, ...] = ("1",)
    estimates: tuple[str, ...] = (ESTIMATES_DEFAULT,)
    seeds: tuple[int | None, ...] = (None,)
    settings: tuple[tuple[str, ...], ...] = ()

    def trials(
        self, file: Path, *, unrecorded_run_s: int | None = None, logs: Path | None = None
    ) -> list[Trial]:
        """
        Return every combination, the last setting changing fastest.
        """
        combined = product(
            product(self.clusters, self.loads, self.estimates), self.seeds, self.pickers,
            product(*self.settings),
        )  # fmt: skip
        return [
            Trial(
                number, str(file.absolute()), picker, cluster, load or "1", estimates, seed,
                unrecorded_run_s, settings,
                "" if logs is None else str(logs.absolute() / f"{number:04}"),
            )
            for number, ((cluster, load, estimates), seed, picker, settings)
            in enumerate(combined, 1)
        ]  # fmt: skip


def check_trials(trials: Sequence[Trial]) -> None:
    """
    Refuse what can't be run, before anything is: the last trial may begin after hours.

    Raises:
        Refused: A picker, a setting, a load, a rule for estimates or a cluster is none.
    """
    from replay.branch_changes import Changes, parse_setting
    from replay.cluster_file import cluster_of
    from replay.plugins import found_plugins
    from replay.simulation_settings import checked_settings
    from replay.workloads.adjusting import parse_estimates, parse_load
    from replay.workloads.source import Header

    plugins = found_plugins()
    for trial in trials:
        parse_load(trial.load)
        parse_estimates(trial.estimates, trial.seed)
        changes = Changes(settings=tuple(map(parse_setting, trial.settings)))
        checked_settings(trial.picker, plugins, changes)
    for cluster in dict.fromkeys(trial.cluster for trial in trials):
        if cluster is not None:
            cluster_of(cluster, Header())


# --------------------------------------------------------------------------------------- one trial


def run_trial(trial: Trial, temporary: Path | None = None) -> Row:
    """
    Run one simulation; return its settings with its figures.

    Args:
        trial: Which one.
        temporary: Where logs lie that aren't kept; None for the system's place.
    """
    from replay.branch_changes import Changes, parse_setting
    from tools.cli.simulate import simulated

    changes = Changes(settings=tuple(map(parse_setting, trial.settings)))
    workload = _read(
        trial.file, trial.estimates, trial.load, trial.seed, trial.unrecorded_run_s
    )
    with _place(trial.log, temporary) as place:
        run = simulated(
            workload, trial.cluster, trial.picker, place, changes=changes, shown=False
        )
    figures = run.plain()
    kept = {"log": trial.log} if trial.log else {}
    return {"trial": trial.number, **trial.plain(), **{name: figures[name] for name in FIGURES},
            **kept}  # fmt: skip


@lru_cache(maxsize=2)
def _read(
    file: str, estimates: str, load: str, seed: int | None, unrecorded_run_s: int | None
) -> Workload:
    """
    Read the workload, once for the trials of a process that change other things.
    """
    from replay.workloads.adjusting import Adjustments, parse_load
    from replay.workloads.reading import read_workload

    adjustments = Adjustments(estimates, parse_load(load), seed)
    return read_workload(Path(file), adjustments, unrecorded_run_s=unrecorded_run_s)


@contextmanager
def _place(log: str, parent: Path | None) -> Iterator[Path]:
    if log:
        yield Path(log)
        return
    with temporary_directory(PREFIX, parent) as directory:
        yield directory / "log"


# ------------------------------------------------------------------------------------ many of them


def run_here(trials: list[Trial], processes: int) -> Generator[Row]:
    """
    Run trials in processes of this host; yield each row when it is there, in any order. To close
    it ends the processes.
    """
    if processes == 1 or len(trials) == 1:
        yield from map(run_trial, trials)
        return
    with (
        temporary_directory(PREFIX) as place,
        pool_of(min(processes, len(trials))) as pool,
    ):
        waiting = [pool.submit(run_trial, trial, place) for trial in trials]
        yield from (done.result() for done in as_completed(waiting))


def run_on_dask(trials: list[Trial], address: str) -> Generator[Row]:
    """
    Run trials on a Dask cluster; yield each row when it is there, in any order.

    Its workers must see the workload, and have the same XCE installed.

    Raises:
        Refused: The package isn't installed, or the address is none.
        StoreUnavailable: No scheduler of Dask answers there.
    """
    if _address.fullmatch(address) is None:
        raise Refused("--dask", "must be an address such as tcp://head:8786", address)
    try:
        from distributed import Client
        from distributed import as_completed as dask_completed
    except ImportError:
        hint = "Install XCE with its extra: pip install 'xce[dask]'."
        raise Refused("--dask", "needs the package distributed", address, hint) from None
    try:
        client = Client(address, timeout=DASK_TIMEOUT_S)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise StoreUnavailable("the scheduler of Dask", address, str(error)) from None
    with client:
        waiting = client.map(run_trial, trials, pure=False)
        for done in dask_completed(waiting):  # type: ignore[no-untyped-call]
            yield done.result()

"""
What the fold remembers between events, and how it gets that back from the tables after a restart.

Everything here is also in the tables: the fold keeps the rows that may still change, and asks for a
row that it doesn't hold. So a kill between any two transactions loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from domain.allocations import Allocation
from domain.ids import split_job_id
from projections.audit.rows.events import SchedulerRunRow, SessionRow
from projections.audit.rows.hosts import (
    HostRow,
    HostStateRow,
    OrderRow,
    PreemptionPlanRow,
    PreemptionRow,
    StartPromiseRow,
)
from projections.audit.rows.jobs import AllocationRow, ArrayRow, AttemptRow, JobRow, JobStateRow
from projections.audit.rows.reasons import ListBlockerRow, ReasonSetRow, WaitRow
from projections.audit.rows.settings import DefinitionRow
from projections.audit.schema import Table, tables

ENDED = ("DONE", "EXIT")
WAITING = ("PEND", "PSUSP", "WAIT")
KEY_INDEXES = 1_000_000


class RowSource(Protocol):
    """
    Read whole rows of the tables; the recorder is one, an empty one serves a fold without a
    database.
    """

    def rows(self, table: Table, where: str, values: tuple[object, ...] = ()) -> Iterable[Any]:
        """
        Yield the rows for which a condition holds, as objects of the table's row class.
        """
        ...


class NoRows:
    """
    Be a source without rows: a fold from the beginning of a log that never lets go of a row.
    """

    def rows(self, table: Table, where: str, values: tuple[object, ...] = ()) -> Iterable[Any]:
        """
        Yield nothing.
        """
        del table, where, values
        return ()


@dataclass(slots=True)
class LiveJob:
    """
    Hold a job's row with those of its rows that are still open.
    """

    row: JobRow
    state: JobStateRow | None = None
    wait: WaitRow | None = None
    attempt: AttemptRow | None = None
    allocations: list[AllocationRow] = field(default_factory=list)
    preemption: PreemptionRow | None = None
    plan: PreemptionPlanRow | None = None
    promise: StartPromiseRow | None = None

    def is_on(self, number: int) -> bool:
        """
        Say whether the job holds something on the host of a number.
        """
        return any(0 <= number - run.first_number < run.host_count for run in self.allocations)


Batch = list[tuple[str, list[tuple[Any, ...]]]]
"""Statements, each with the rows that it writes."""


class Written:
    """
    Collect the rows of a batch by table: a row that changes often is written once.
    """

    def __init__(self) -> None:
        self.tables = tables()
        self.reworded: set[int] = set()  # keys of jobs whose fixed columns changed
        self.added: dict[str, list[Any]] = {
            name: [] for name, one in self.tables.items() if one.grows
        }
        self.changed: dict[str, dict[Any, Any]] = {
            name: {} for name, one in self.tables.items() if not one.grows
        }

    def drain(self) -> Batch:
        """
        Return what to write, and forget it.
        """
        out: Batch = []
        for name, rows in self.added.items():
            if rows:
                out.append((self.tables[name].write_sql, rows))
                self.added[name] = []
        for name, kept in self.changed.items():
            if kept:
                out += self._changes(self.tables[name], kept)
                kept.clear()
        self.reworded.clear()
        return out

    def _changes(self, table: Table, kept: dict[Any, Any]) -> Batch:
        values = table.values
        if table.name != "jobs" or not self.reworded:
            return [(table.write_sql, [values(row) for row in kept.values()])]
        anew = [values(row) for key, row in kept.items() if key in self.reworded]
        others = [values(row) for key, row in kept.items() if key not in self.reworded]
        return [(table.rewrite_sql, anew), (table.write_sql, others)]


class FoldState:
    """
    Hold the open rows of jobs, hosts, reason sets, lists and sessions.

    Args:
        source: Where rows come from that the fold doesn't hold.
    """

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.tables = tables()
        self.written = Written()
        self.jobs: dict[str, LiveJob] = {}
        self.hosts: dict[int, HostRow] = {}
        self.numbers: dict[str, int] = {}
        self.host_states: dict[str, HostStateRow] = {}
        self.reason_sets: dict[int, ReasonSetRow] = {}
        self.blockers: dict[str, ListBlockerRow] = {}
        self.definitions: dict[tuple[str, str], DefinitionRow] = {}
        self.run: SchedulerRunRow | None = None
        self.session: SessionRow | None = None
        self._ended: list[str] = []
        self._texts: dict[tuple[object, ...], tuple[str, str]] = {}
        self._load()

    # ------------------------------------------------------------------------------ from tables

    def _all(self, name: str, where: str, *values: object) -> Iterable[Any]:
        return self.source.rows(self.tables[name], where, values)

    def _load(self) -> None:
        for host in self._all("hosts", "1 ORDER BY host_number"):
            self.hosts[host.host_number] = host
            self.numbers[host.host] = host.host_number
        for state in self._all("host_states", "to_position IS NULL"):
            self.host_states[state.host] = state
        for one in self._all("reason_sets", "to_position IS NULL"):
            self.reason_sets[one.set_number] = one
        for blocker in self._all("list_blockers", "to_position IS NULL"):
            self.blockers[blocker.list] = blocker
        for definition in self._all("definitions", "1"):
            self.definitions[definition.kind, definition.name] = definition
        for run in self._all("scheduler_runs", "1 ORDER BY position DESC LIMIT 1"):
            self.run = run
        for last in self._all("events", "1 ORDER BY position DESC LIMIT 1"):
            if not last.ends_step and last.session is not None:
                self.session = next(iter(self._all("sessions", "number=?", last.session)), None)
        for row in self._all("jobs", "state NOT IN ('DONE', 'EXIT') ORDER BY job_key"):
            self._adopt(row)

    def _adopt(self, row: JobRow) -> LiveJob:
        job = LiveJob(row)
        for state in self._all("job_states", "job_id=? AND to_position IS NULL", row.job_id):
            job.state = state
        for wait in self._all("waits", "job_id=? AND to_position IS NULL", row.job_id):
            job.wait = wait
        for attempt in self._all("attempts", "job_id=? AND attempt=?", row.job_id, row.attempt):
            job.attempt = attempt if attempt.end_position is None else None
        lasting = "victim=? AND resumed_us IS NULL AND ended_us IS NULL"
        for preemption in self._all("preemptions", lasting, row.job_id):
            job.preemption = preemption
        for plan in self._all("preemption_plans", "job_id=? AND to_position IS NULL", row.job_id):
            job.plan = plan
        for promise in self._all("start_promises", "job_id=? AND to_position IS NULL", row.job_id):
            job.promise = promise
        open_where = "job_id=? AND to_position IS NULL ORDER BY run_index"
        job.allocations = list(self._all("allocations", open_where, row.job_id))
        self.jobs[row.job_id] = job
        if row.state in ENDED:
            self._ended.append(row.job_id)
        return job

    def job(self, job_id: str) -> LiveJob | None:
        """
        Return a job, read from the tables when it ended long ago, or None when there is none.
        """
        found = self.jobs.get(job_id)
        if found is not None:
            return found
        rows = self._all("jobs", "job_id=?", job_id)
        return next((self._adopt(row) for row in rows), None)

    def order(self, host: str, number: int) -> OrderRow | None:
        """
        Return an order to a worker, of this batch or of an earlier one.
        """
        kept = self.written.changed["orders"].get((host, number))
        if kept is not None:
            return kept  # type: ignore[no-any-return]
        return next(iter(self._all("orders", "host=? AND order_number=?", host, number)), None)

    def array(self, number: int) -> ArrayRow | None:
        """
        Return an array, of this batch or of an earlier one.
        """
        kept: ArrayRow | None = self.written.changed["arrays"].get(number)
        return kept or next(iter(self._all("arrays", "number=?", number)), None)

    # -------------------------------------------------------------------------------- to tables

    def note_end(self, job: LiveJob) -> None:
        """
        Note that a job has ended, so that its rows are let go once they are written.
        """
        self._ended.append(job.row.job_id)

    def drain(self) -> Batch:
        """
        Return what to write, and let go of the jobs that have ended.
        """
        out = self.written.drain()
        for job_id in self._ended:
            job = self.jobs.get(job_id)
            if job is not None and job.row.state in ENDED:
                del self.jobs[job_id]
        self._ended.clear()
        return out

    # ------------------------------------------------------------------------------------ hosts

    def host_name(self, number: int) -> str:
        """
        Return a host's name, or its number with a # when no worker of that number has joined.
        """
        host = self.hosts.get(number)
        return host.host if host is not None else f"#{number}"

    def hosts_text(self, allocation: Allocation) -> tuple[str, str]:
        """
        Return the hosts of an allocation with their tasks ("4*h1 2*h2..h9"), and the first host's
        name.
        """
        key = tuple((run.first, run.hosts, run.tasks) for run in allocation.runs)
        known = self._texts.get(key)
        if known is None:
            shown = self.runs_text(key)
            known = shown, self.host_name(key[0][0]) if key else ""
            if len(self._texts) < 100_000:
                self._texts[key] = known
        return known

    def runs_text(self, runs: tuple[tuple[int, int, int], ...]) -> str:
        """
        Return runs of (first host, hosts, slots on each) as words.
        """
        return " ".join(self._run_text(*run) for run in runs)

    def _run_text(self, first: int, hosts: int, tasks: int) -> str:
        names = [self.host_name(n) for n in ([first] if hosts == 1 else [first, first + hosts - 1])]
        return f"{tasks}*{'..'.join(names)}"

    def forget_texts(self) -> None:
        """
        Forget how allocations are shown, because a host got a name.
        """
        self._texts.clear()


def job_key_of(job_id: str) -> int:
    """
    Return the key that sorts jobs in order of creation.
    """
    number, index = split_job_id(job_id)
    return number * KEY_INDEXES + index

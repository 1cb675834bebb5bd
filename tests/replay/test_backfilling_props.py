"""
Properties of backfilling: as the obvious model decides, and nobody later than was promised.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.envelope import Envelope
from domain.events.jobs import JobDispatched, JobStartPromised
from replay.cluster_spec import ClusterSpec, HostSpec
from replay.simulation import Simulation
from replay.simulation_settings import simulation_settings
from replay.verify import verify
from replay.workloads.reading import read_workload
from store.log import EventLog
from tests.replay.easy_reference import Job, schedule

SLOTS = 4
HORIZON = 600
SECOND_US = 10**6
REST = " 1" * 6 + " -1 -1"
JOBS = st.lists(
    st.tuples(
        st.integers(0, 12),  # submit
        st.integers(1, 15),  # run
        st.integers(0, 15),  # what the estimate has beyond it
        st.integers(1, SLOTS),  # size
        st.sampled_from([50, 100, 200]),  # memory of each task, in MB
    ),
    min_size=1,
    max_size=14,
)
Drawn = list[tuple[int, int, int, int, int]]


@dataclass
class Planned(Job):
    """
    Hold a job with the start that it is promised.
    """

    promised: int = -1


def jobs_from(drawn: Drawn) -> list[Planned]:
    """
    Return jobs in order of submission.
    """
    jobs = [
        Planned(number, submit, run, size, run + more)
        for number, (submit, run, more, size, _) in enumerate(drawn, 1)
    ]
    return sorted(jobs, key=lambda job: job.submit)


def conservatively(jobs: list[Planned]) -> None:
    """
    Give every job its start, looking at each second by itself.
    """
    moments = {job.submit for job in jobs}
    for now in range(HORIZON):
        if now in moments or any(job.start >= 0 and job.end == now for job in jobs):
            one_pass(jobs, now)
        if all(job.start >= 0 for job in jobs):
            return
    raise AssertionError("some job never starts")


def one_pass(jobs: list[Planned], now: int) -> None:
    """
    Move promises forward, make those of new jobs, and start what is due.
    """
    waiting = [job for job in jobs if job.start < 0 and job.submit <= now]
    table = Table()
    for job in jobs:
        if job.start >= 0 and job.end > now:
            table.take(job, job.start)
    old = sorted((job.promised, place) for place, job in enumerate(waiting) if job.promised >= 0)
    for start, place in old:
        table.take(waiting[place], max(start, now))
    for start, place in old:
        table.take(waiting[place], max(start, now), -1)
        table.put(waiting[place], now)
    for job in waiting:
        if job.promised < 0:
            table.put(job, now)
    for job in waiting:
        if job.promised == now:
            job.start = now


class Table:
    """
    Hold how many slots are taken in each second.
    """

    def __init__(self) -> None:
        self.busy = [0] * (4 * HORIZON)

    def take(self, job: Job, start: int, sign: int = 1) -> None:
        """
        Take a job's slots for its estimate, or give them back.
        """
        for second in range(start, start + job.estimate):
            self.busy[second] += sign * job.size

    def put(self, job: Planned, now: int) -> None:
        """
        Promise a job the earliest gap.
        """
        job.promised = now
        while any(
            busy + job.size > SLOTS
            for busy in self.busy[job.promised : job.promised + job.estimate]
        ):
            job.promised += 1
        self.take(job, job.promised)


def simulated(drawn: Drawn, picker: str, hosts: tuple[HostSpec, ...]) -> list[Envelope]:
    """
    Return the events of a simulation, which must be decided again alike.
    """
    lines = [
        f"{number} {submit} -1 {run} {size} -1 -1 {size} {run + more} {mem * 1024}{REST}"
        for number, (submit, run, more, size, mem) in enumerate(drawn, 1)
    ]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "some.swf"
        path.write_text("; UnixStartTime: 0\n" + "\n".join(lines) + "\n")
        workload = read_workload(path)
        with EventLog.create(Path(directory) / "log", log_id="x") as log:
            chain = simulation_settings(picker, ("parjob", "fill"))
            Simulation(workload, ClusterSpec(hosts=hosts), log, settings=chain).run()
        with EventLog.open(Path(directory) / "log", writable=False) as log:
            assert verify(log).is_same
            return list(log.read())


def starts_of(events: list[Envelope]) -> dict[int, int]:
    """
    Return the start of each job in seconds, by its number in the trace.
    """
    names: dict[str, str] = {}
    found = {}
    for envelope in events:
        name = getattr(getattr(envelope.event, "spec", None), "name", "")
        if envelope.stream.startswith("job:") and name:
            names[envelope.stream] = name
        if isinstance(envelope.event, JobDispatched):
            found[int(names[envelope.stream])] = envelope.time_us // SECOND_US
    return found


def broken_promises(events: list[Envelope]) -> list[str]:
    """
    Return the streams of jobs that started later than was promised last, or were promised a later
    start than before.
    """
    promised: dict[str, int] = {}
    found = []
    for envelope in events:
        event, last = envelope.event, promised.get(envelope.stream)
        if isinstance(event, JobDispatched) and last is not None and envelope.time_us > last:
            found.append(envelope.stream)
        if isinstance(event, JobStartPromised):
            start_us = None if event.reservation is None else event.reservation.start_us
            if start_us is None:
                promised.pop(envelope.stream, None)
                continue
            if last is not None and start_us > last:
                found.append(envelope.stream)
            promised[envelope.stream] = start_us
    return found


EQUAL = tuple(HostSpec(f"h{number}", 1) for number in range(SLOTS))
MIXED = (HostSpec("a", 3, mem_kib=300 * 1024), HostSpec("b", 1, mem_kib=800 * 1024),
         HostSpec("c", 2, mem_kib=400 * 1024))  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(JOBS)
def test_conservative_decides_as_the_model_that_looks_at_every_second(drawn: Drawn) -> None:
    """
    The gaps are the model's, moved forward in the same order.
    """
    events = simulated(drawn, "conservative", EQUAL)
    jobs = jobs_from(drawn)
    conservatively(jobs)

    assert {job.number: job.start for job in jobs} == starts_of(events)
    assert [] == broken_promises(events)


@settings(max_examples=25, deadline=None)
@given(JOBS)
def test_easy_decides_as_the_textbook(drawn: Drawn) -> None:
    """
    With every shortcut of the picker, on hosts of several slots too.
    """
    jobs = jobs_from(drawn)
    schedule(list(jobs), SLOTS, backfills=True)
    expected = {job.number: job.start for job in jobs}

    assert expected == starts_of(simulated(drawn, "easy", EQUAL))
    assert expected == starts_of(simulated(drawn, "easy", (HostSpec("a", 3), HostSpec("b", 1))))


@settings(max_examples=25, deadline=None)
@given(JOBS, st.sampled_from(["easy", "conservative"]))
def test_safety_nobody_starts_later_than_promised(drawn: Drawn, picker: str) -> None:
    """
    Where memory decides too, and hosts differ; estimates hold, and no host is lost.
    """
    events = simulated(drawn, picker, MIXED)

    assert [] == broken_promises(events)

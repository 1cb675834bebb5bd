"""
Crash a scheduler again and again under load, and account for everything that was acknowledged.

Clients submit jobs with keys and write down what was acknowledged; when an answer is lost they ask
again with the same key. Each job creates a witness file that must not be there yet.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from domain.events.jobs import JobSubmitted
from domain.ids import job_of_stream
from projections.scheduling.core import SCHEMA, Core
from replay.verify import verify
from store.log import EventLog
from store.snapshots import SnapshotStore
from tests.tools.live_cluster import Cluster, until

PAUSE_S = 0.02
LOST = (OSError, http.client.HTTPException, ValueError)


@dataclass
class Findings:
    """
    Hold what a run showed.

    Args:
        problems: Every breach of a promise, in words.
        counts: What was done: kills, submissions, repeated requests, jobs.
    """

    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


class Client(threading.Thread):
    """
    Submit jobs until told to stop, each until it is acknowledged.
    """

    def __init__(self, number: int, cluster: Cluster, witnesses: Path) -> None:
        super().__init__(name=f"client {number}")
        self._number = number
        self._cluster = Cluster(cluster.directory)
        self._witnesses = witnesses
        self.ledger: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.failure: BaseException | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            for count in range(1_000_000):
                if self.stopping.is_set():
                    break
                self._submit(f"c{self._number}-{count}")
                time.sleep(PAUSE_S)  # an even load, so that what is taken can also be run in time
        except BaseException as error:  # noqa: BLE001 - it is told with the findings
            self.failure = error
        self._cluster.close()

    def _submit(self, key: str) -> None:
        witness = self._witnesses / key
        script = f"set -C; : > {witness} || {{ echo {key} >> {self._witnesses}.doubles; exit 9; }}"
        body = {
            "key": key,
            "program": {
                "argv": ["sh", "-c", f"{script}; sleep 0.0{key[-1]}"],
                "env": [{"name": "PATH", "value": "/usr/bin:/bin"}],
                "stdout": "/dev/null",
                "stderr": "/dev/null",
                "cwd": "/",
            },
        }
        while True:
            try:
                status, answer = self._cluster.ask("POST", "/v1/jobs", body)
            except LOST:
                self.counts["lost answers"] += 1
                time.sleep(0.05)
                continue
            if status in (200, 201):
                self.counts["replayed"] += bool(answer.get("replayed"))
                self.ledger[key] = answer["job_id"]
                return
            assert status == 503, (status, answer)
            time.sleep(0.01)


def crash_run(
    folder: Path,
    *,
    kills: int,
    seed: int,
    program: list[str] | None = None,
    clients: int = 3,
    agents_too: bool = True,
) -> Findings:
    """
    Run it and return what was found.
    """
    chance = random.Random(seed)
    findings = Findings()
    witnesses = folder / "witnesses"
    witnesses.mkdir(parents=True)
    cluster = Cluster(
        folder / "cluster", slots=4, program=program, options=("--snapshot-every", "300")
    )
    submitting = [Client(number, cluster, witnesses) for number in range(clients)]
    try:
        cluster.start()
        cluster.wait_hosts()
        for client in submitting:
            client.start()
        for _ in range(kills):
            _crash(cluster, chance, findings, agents_too=agents_too)
        for client in submitting:
            client.stopping.set()
            client.join()
        _check(cluster, submitting, witnesses, findings)
    finally:
        for client in submitting:
            client.stopping.set()
        cluster.end()
    return findings


def _crash(
    cluster: Cluster, chance: random.Random, findings: Findings, *, agents_too: bool
) -> None:
    """
    Kill the scheduler at a random moment, sometimes an agent with it, and start it again.
    """
    time.sleep(chance.uniform(0.02, 0.5))
    cluster.kill()
    findings.counts["kills"] += 1
    if agents_too and chance.random() < 0.3:
        cluster.kill_agent(f"local{chance.randint(1, cluster.workers)}")
        findings.counts["agents killed"] += 1
    time.sleep(chance.choice((0.0, 0.0, 0.2)))
    cluster.start()


def _check(cluster: Cluster, clients: list[Client], witnesses: Path, findings: Findings) -> None:
    problems = findings.problems
    ledger: dict[str, str] = {}
    for client in clients:
        ledger |= client.ledger
        findings.counts += client.counts
        if client.failure is not None:
            problems.append(f"a client failed: {client.failure!r}")
    findings.counts["acknowledged"] = len(ledger)
    problems += _doubly_given(ledger)
    known = {job["job_id"] for job in cluster.get("/v1/jobs?all=1")["jobs"]}
    problems += [
        f"acknowledged job {job_id} ({key}) is lost"
        for key, job_id in ledger.items()
        if job_id not in known
    ]
    if problems:
        return  # What follows would wait for jobs that can't end any more.
    jobs = _ended_jobs(cluster, problems)
    findings.counts["jobs"] = len(jobs)
    problems += [
        f"job {job['job_id']} ended as {job['state']}, {job['exit_code']}, {job['why']}"
        for job in jobs.values()
        if job["exit_code"] != 0
    ]
    problems += _unlike_witnesses(ledger, witnesses)
    cluster.stop()
    problems += _log_problems(cluster.directory, ledger)


def _doubly_given(ledger: dict[str, str]) -> list[str]:
    given = Counter(ledger.values())
    return [
        f"job id {job_id} was given {times} times" for job_id, times in given.items() if times > 1
    ]


def _ended_jobs(cluster: Cluster, problems: list[str]) -> dict[str, dict[str, Any]]:
    """
    Return all jobs by id, once all have ended.
    """

    def all_ended() -> list[dict[str, Any]] | None:
        jobs: list[dict[str, Any]] = cluster.get("/v1/jobs?all=1")["jobs"]
        return jobs if all(job["state"] in ("DONE", "EXIT") for job in jobs) else None

    try:
        found = until(all_ended, "every job has ended")
    except AssertionError as error:
        problems.append(str(error))
        found = cluster.get("/v1/jobs?all=1")["jobs"]
    return {job["job_id"]: job for job in found}


def _unlike_witnesses(ledger: dict[str, str], witnesses: Path) -> list[str]:
    ran = {path.name for path in witnesses.iterdir()}
    found = [f"{key} is acknowledged and never ran" for key in ledger if key not in ran]
    doubles = witnesses.with_suffix(".doubles")
    if doubles.exists():
        found += [f"{key} ran twice" for key in doubles.read_text().split()]
    return found


def _log_problems(directory: Path, ledger: dict[str, str]) -> list[str]:
    """
    Read the log itself: keys, ids, every decision decided again, the state against a full replay.
    """
    found: list[str] = []
    with EventLog.open(directory, writable=False) as log:
        keys: dict[str, str] = {}
        replayed = Core()
        for envelope in log.read():
            replayed.apply(envelope.stamped())
            if isinstance(envelope.event, JobSubmitted):
                key, job_id = envelope.event.key, job_of_stream(envelope.stream)
                if key in keys:
                    found.append(f"the key {key} made the jobs {keys[key]} and {job_id}")
                keys[key] = job_id
        found += [
            f"{key} was answered {job_id}, the log says {keys.get(key)}"
            for key, job_id in ledger.items()
            if keys.get(key) != job_id
        ]
        result = verify(log)
        found += [f"decided otherwise: {one}" for one in result.differences]
        snapshots = SnapshotStore(directory / "snapshots", log_id=log.log_id)
        newest = snapshots.newest_good(schema=SCHEMA, head=log.head(), digest_at=log.digest_at)
        if newest is None or newest.position != log.head():
            found.append("the scheduler ended without a snapshot of its last state")
        elif newest.state != replayed.snapshot():
            found.append("the state of the running scheduler isn't that of a full replay")
    return found

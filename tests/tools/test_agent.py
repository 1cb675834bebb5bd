"""
What an agent tells, in which order, and what it makes of an assignment.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from domain.amounts import Amount
from domain.jobs import EnvironmentVariable, Program
from tools.agent import measure, processes
from tools.agent.agent import Agent, AgentSettings
from tools.agent.assignments import CannotRun, start_request
from tools.agent.files import WorkerFiles, expand_path
from tools.agent.launcher_link import LauncherLink
from tools.agent.messages import (
    Attempt,
    AttemptKey,
    FromLauncher,
    OrderKind,
    OrderOutcome,
    OrderRequest,
    Phase,
    StartRequest,
    ToLauncher,
    from_launcher,
    line_of,
    to_launcher,
)
from tools.agent.protocol import Assignment, HostShare, Order, Usage
from tools.agent.reports import Outbox

KEY = AttemptKey("1", 1)
ME = pwd.getpwuid(os.geteuid()).pw_name


def running(job_id: str = "1", pid: int = 7) -> Attempt:
    return Attempt(job_id, 1, Phase.RUNNING, pid=pid, born_ticks=1)


def ended(job_id: str = "1", pid: int = 7) -> Attempt:
    return Attempt(job_id, 1, Phase.ENDED, pid=pid, exit_code=0)


def kinds(outbox: Outbox) -> list[str]:
    return [due.report.kind for due in outbox.due()]


def test_a_report_waits_for_its_capability() -> None:
    """
    After a restart ends are known before the work is: telling them without the capability would
    have them denied, and lost.
    """
    outbox = Outbox()
    outbox.add_attempt(ended())
    before = (kinds(outbox), outbox.is_empty)
    outbox.capabilities[KEY] = "c"

    assert (([], True), ["started", "finished"]) == (before, kinds(outbox))


def test_a_start_is_told_once_and_before_its_end() -> None:
    """
    The scheduler refuses what comes twice or out of order.
    """
    outbox = Outbox()
    outbox.capabilities[KEY] = "c"
    outbox.add_attempt(running())
    first = outbox.due()
    done = outbox.told(first)
    outbox.add_attempt(ended())
    second = outbox.due()

    assert (["started"], []) == ([one.report.kind for one in first], done)
    assert (["finished"], [KEY]) == ([one.report.kind for one in second], outbox.told(second))
    assert outbox.is_empty


def test_what_happens_while_a_report_is_under_way_is_told_next() -> None:
    """
    The end may come while the start is being told.
    """
    outbox = Outbox()
    outbox.capabilities[KEY] = "c"
    outbox.add_attempt(running())
    under_way = outbox.due()
    outbox.add_attempt(ended())
    outbox.add_order(OrderOutcome(1, "signalled"))
    outbox.told(under_way)

    assert ["finished", "order_done"] == kinds(outbox)


def test_only_the_newest_measure_is_told_and_one_that_came_meanwhile_stays() -> None:
    """
    Old measures are of no use to anybody.
    """
    outbox = Outbox()
    old, new, newest = (Usage(load=(Amount(resource="mem", milli=n),)) for n in (1, 2, 3))
    outbox.set_usage(old)
    outbox.set_usage(new)
    under_way = outbox.due()
    outbox.set_usage(newest)
    outbox.told(under_way)

    assert [new] == [due.report for due in under_way]
    assert [newest] == [due.report for due in outbox.due()]


def test_an_attempt_that_could_not_start_is_told_as_such() -> None:
    """
    It has no process and no exit code.
    """
    outbox = Outbox()
    outbox.capabilities[KEY] = "c"
    outbox.add_attempt(Attempt("1", 1, Phase.ENDED, failed="no such program"))

    assert ["could_not_start"] == kinds(outbox)
    assert [KEY] == outbox.told(outbox.due())


# -------------------------------------------------------------------------------------- assignments


def assignment(**changes: object) -> Assignment:
    values: dict[str, object] = {
        "job_id": "12",
        "attempt": 2,
        "capability": "c",
        "queue": "normal",
        "user": ME,
        "name": "n",
        "program": Program(argv=("a", "b"), env=(EnvironmentVariable(name="X", value="1"),)),
        "hosts": (HostShare(host="h1", tasks=2), HostShare(host="h2", tasks=1)),
    }
    return Assignment(**(values | changes))


def test_an_assignment_becomes_a_start(tmp_path: Path) -> None:
    """
    Output without paths goes to the attempt's own directory, and the job is told where it runs.
    """
    files = WorkerFiles(tmp_path, "w")
    request = start_request(assignment(), files)

    own = str(files.jobs / "12.2")
    assert (("a", "b"), own, f"{own}/stdout", f"{own}/stderr", own) == (
        request.argv,
        request.cwd,
        request.stdout,
        request.stderr,
        request.make_directory,
    )
    expected = {
        "X": "1",
        "XCE_JOB_ID": "12",
        "XCE_ATTEMPT": "2",
        "XCE_HOSTS": "h1*2 h2*1",
        "XCE_QUEUE": "normal",
        "LSB_JOBID": "12",
        "LSB_JOBINDEX": "0",
        "LSB_HOSTS": "h1 h1 h2",
        "LSB_MCPU_HOSTS": "h1 2 h2 1",
        "USER": ME,
    }
    assert expected == {name: request.env.get(name) for name in expected}


@pytest.mark.parametrize(
    ("job_id", "text", "path"),
    [
        ("12", "/a/out.%J", "/a/out.12"),
        ("12", "/a/%J.%I", "/a/12.0"),
        ("12[3]", "/a/%J/%I", "/a/12/3"),
        ("12[3]", "/a/%J%J", "/a/1212"),
        ("12[3]", "/a/%%J.%%%I", "/a/%J.%3"),
        ("12[3]", "/a/%j%i%d%", "/a/%j%i%d%"),
        ("12[3]", "/a/out", "/a/out"),
        ("12", "", ""),
    ],
)
def test_a_path_names_its_job_and_index_as_in_lsf(job_id: str, text: str, path: str) -> None:
    """
    Jobs and elements that are submitted with one text keep their files apart.
    """
    assert path == expand_path(text, job_id)


def test_each_of_the_three_files_is_named_by_the_job_and_the_directory_is_not(
    tmp_path: Path,
) -> None:
    """
    A directory whose name happens to hold such a letter is taken as it is.
    """
    program = Program(argv=("a",), cwd="/%J", stdin="/i%I", stdout="/o%I", stderr="/e%J")
    request = start_request(assignment(job_id="12[3]", program=program), WorkerFiles(tmp_path, "w"))

    assert ("/%J", "/i3", "/o3", "/e12") == (
        request.cwd,
        request.stdin,
        request.stdout,
        request.stderr,
    )


def test_a_job_cannot_take_the_schedulers_variables(tmp_path: Path) -> None:
    """
    A launcher finds lost processes by them.
    """
    env = tuple(
        EnvironmentVariable(name=name, value="forged") for name in ("XCE_JOB_ID", "LSB_JOBID")
    )
    request = start_request(
        assignment(program=Program(argv=("a",), env=env)), WorkerFiles(tmp_path, "w")
    )

    assert ("12", "12") == (request.env["XCE_JOB_ID"], request.env["LSB_JOBID"])


@pytest.mark.parametrize(
    "change", [{"user": "somebody"}, {"program": None}, {"program": Program()}]
)
def test_what_an_agent_cannot_run_is_refused_by_name(tmp_path: Path, change: dict) -> None:
    """
    A job runs as its own user, or it does not run.
    """
    with pytest.raises(CannotRun, match=next(iter(change))):
        start_request(assignment(**change), WorkerFiles(tmp_path, "w"))


# ---------------------------------------------------------------------------------------- the agent


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """
    Give an agent that isn't connected to anything.
    """
    return Agent(WorkerFiles(tmp_path, "w"), AgentSettings())


def test_an_answer_from_before_an_end_does_not_start_the_attempt_again(agent: Agent) -> None:
    """
    A poll's answer may have been made before the end was reported and arrive after it.
    """
    one = assignment()
    agent._done_with[AttemptKey("12", 2)] = 10

    late = agent._to_start(one, 9)

    assert ([], {}) == (late, agent._attempts)
    assert 1 == len(agent._to_start(one, 10))


def test_an_assignment_that_comes_again_is_started_once(agent: Agent) -> None:
    """
    Assignments come at least once.
    """
    assert [1, 0] == [len(agent._to_start(assignment(), 5)) for _ in range(2)]


def test_what_the_scheduler_no_longer_wants_is_ended_and_forgotten(agent: Agent) -> None:
    """
    After a time away an attempt may have been given up: its process must not go on unseen.
    """
    agent._hear(FromLauncher([running("1"), ended("2"), running("3")], hello=True))

    kills = agent._unwanted({AttemptKey("3", 1)})
    agent._hear(FromLauncher([ended("1")]))

    assert [(0, "1", 1)] == [(one.order_number, one.job_id, one.attempt) for one in kills]
    assert [AttemptKey("3", 1)] == list(agent._attempts)
    assert agent._outbox.is_empty


@pytest.mark.parametrize(
    ("kind", "outcome", "told"),
    [
        ("suspend", "stopped", ["suspended", "order_done"]),
        ("suspend", "had ended", ["order_done"]),
        ("resume", "signalled", ["resumed", "order_done"]),
        ("kill", "signalled", ["order_done"]),
        ("suspend", "carried out before", ["suspended", "order_done"]),
    ],
)
def test_what_an_order_did_is_told_before_that_it_is_done(
    agent: Agent, kind: str, outcome: str, told: list[str]
) -> None:
    """
    An order that is done is never given again: what it did must be known by then.
    """
    agent._outbox.capabilities[KEY] = "c"
    agent._orders = {7: Order(order_number=7, kind=kind, job_id="1", attempt=1, why="")}
    agent._hear(FromLauncher(orders=[OrderOutcome(7, outcome)]))

    assert told == kinds(agent._outbox)
    agent._outbox.told(agent._outbox.due())
    assert agent._outbox.is_empty


# ----------------------------------------------------------------------------------------- messages


def test_messages_come_out_as_they_went_in() -> None:
    """
    Each field survives the line that agent and launcher exchange, at its default and beside it.
    """
    start = StartRequest("1", 2, ("a", "b"), {"X": "1"}, "/", 0o22, "i", "o", "e", "d")
    plain = StartRequest("1", 2, ("a",), {}, "/", None, "", "", "")
    asked = ToLauncher(
        True,
        [start, plain],
        [
            OrderRequest(3, OrderKind.SUSPEND, "1", 2, 5, "SIGSTOP"),
            OrderRequest(4, OrderKind.KILL, "1", 2, 5),
        ],
        [KEY],
        quit=True,
        reset=True,
    )
    attempt = Attempt("1", 2, Phase.ENDED, 3, 4, 0, 9, 6, 7, "f")
    told = FromLauncher([attempt, Attempt("1", 1, Phase.INTENDED)], [OrderOutcome(1, "x")], True, 8)

    assert (asked, ToLauncher()) == (
        to_launcher(line_of(asked)),
        to_launcher(line_of(ToLauncher())),
    )
    assert told == from_launcher(line_of(told))


# ---------------------------------------------------------------------------------------- measuring


def test_a_measure_is_told_only_when_it_has_changed() -> None:
    """
    Usage that stays as it was would fill the log for nothing.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        process_group=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    meter = measure.Meter("")
    attempt = Attempt("1", 1, Phase.RUNNING, pid=child.pid, born_ticks=1)
    try:
        first = meter.measure([attempt])
        second = meter.measure([attempt])
        gone = meter.measure([])
    finally:
        child.communicate(b"\n")

    assert first is not None
    (seen,) = first.jobs
    assert ("1", 1, 1, "mem") == (
        seen.job_id,
        seen.attempt,
        seen.processes,
        seen.amounts[0].resource,
    )
    assert seen.amounts[0].milli > 1_000_000
    assert (None, None) == ((second and second.jobs) or None, (gone and gone.jobs) or None)


def test_swap_space_of_a_process_is_what_the_kernel_says() -> None:
    """
    Kernel threads have none, and who has gone has none any more.
    """
    status = Path("/proc/self/status").read_bytes()
    line = b"VmSwap:\t    2048 kB\n"

    assert b"\nVmSwap:" in status
    assert 2 << 20 == processes.swapped_in(b"Name:\tx\nVmRSS:\t 5 kB\n" + line + b"Threads:\t1\n")
    assert 0 == processes.swapped_in(b"Name:\tkthreadd\n")
    assert 0 == processes.swapped_bytes(2**30)


@pytest.mark.parametrize("swap_kib", [0, 5_000])
def test_swap_space_is_told_where_there_is_some(swap_kib: int) -> None:
    """
    A job's swap limit is compared with it; that it begins or ends is news by itself.
    """
    attempt = Attempt("1", 1, Phase.RUNNING)
    told = measure.Total(memory=1 << 20, swap=swap_kib << 10).usage_of(attempt)
    meter = measure.Meter("")

    names = [amount.resource for amount in told.amounts]
    assert ["mem"] + ["swp"] * bool(swap_kib) == names
    assert meter.is_news(told)
    meter.note((told,))
    assert not meter.is_news(told)
    other = measure.Total(memory=1 << 20).usage_of(attempt)
    assert bool(swap_kib) == meter.is_news(other)


def test_a_host_is_described_by_what_the_system_says() -> None:
    """
    Select expressions will name these.
    """
    (memory,) = measure.resources()

    assert ("mem", True) == (memory.name, memory.is_real)
    assert memory.total_milli > 2**20 * 1000 // 1024
    assert {"type", "model", "ncpus"} == {one.name for one in measure.attributes()}
    assert measure.slots() >= 1


def test_a_launcher_that_is_killed_with_something_unread_is_gone_like_any_other(
    tmp_path: Path,
) -> None:
    """
    The kernel resets such a connection instead of ending it; the agent must start another
    launcher then, not end.
    """
    files = WorkerFiles(tmp_path, "w1")
    files.directory.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(files.launcher_socket))
    listener.listen()

    async def heard() -> list[FromLauncher]:
        link = LauncherLink(files)
        await link.connect()
        listener.close()
        return [message async for message in link.messages()]

    assert [] == asyncio.run(heard())

"""
Kill a writer with SIGKILL at random moments, over and over, and hold the log against what was
acknowledged.

The writer appends commits of random size and acknowledges each through a pipe after the append
returned; the sabotage is to acknowledge before.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path

from domain.errors import Conflict, XceError
from domain.events.jobs import JobHeld
from store import lock
from store.log import EventLog
from store.verify import verify_here
from tools.torture.outcome import Outcome
from tools.torture.workload import stamped

UNLOCKED = "unlocked"
EARLY = "before the commit"


def write(directory: str, seed: int, acknowledge: Connection, when: str) -> None:
    """
    Append until killed.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    log = EventLog.open(directory, writable=True)
    position = log.head()
    acknowledge.send(0)
    while True:
        count = chance.choice((1, 1, 2, 5, 40, 900))
        events = [
            stamped(f"job:{position + each:010d}", 1, JobHeld(), ends_step=each == count)
            for each in range(1, count + 1)
        ]
        if when == EARLY:
            acknowledge.send(position + count)
        position = log.append(events)
        if when != EARLY:
            acknowledge.send(position)


def run(directory: Path, *, kills: int, seed: int, sabotage: bool = False) -> Outcome:
    """
    Kill a writer so many times; return what was seen.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    outcome = Outcome()
    when = EARLY if sabotage else "after the commit"
    # Forked from a server that has imported everything and opened nothing.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tools.torture.kills"])
    EventLog.create(directory, log_id="the-log").close()
    last = 0
    for number in range(kills):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (str(directory), seed + number, theirs, when)
        writer = context.Process(target=write, args=arguments)
        writer.start()
        theirs.close()
        before = outcome.counts["acknowledged"]
        last = max(last, *_receive(ours, chance.randrange(1, 20), outcome))
        time.sleep(chance.uniform(0, 0.004))
        writer.kill()
        writer.join()
        # What stood in the pipe when it died was acknowledged all the same.
        last = max([last, *_receive(ours, None, outcome)])
        ours.close()
        outcome.tries += 1
        if outcome.counts["acknowledged"] == before:
            outcome.violated(f"the writer did not start after kill {number}")
        _check(
            directory,
            last,
            outcome,
            is_whole=number % max(10, kills // 10) == 0 or number == kills - 1,
        )
    stop_server()
    return outcome


def stop_server() -> None:
    """
    End the processes that multiprocessing would leave running to our own end.
    """
    # The standard library has no public way to end them.
    for helper in (forkserver._forkserver, resource_tracker._resource_tracker):  # noqa: SLF001
        getattr(helper, "_stop")()  # noqa: B009


def _receive(pipe: Connection, count: int | None, outcome: Outcome) -> list[int]:
    """
    Receive so many acknowledgements, or all to the end.
    """
    received = [0]
    try:
        while count is None or len(received) <= count:
            received.append(pipe.recv())
            outcome.saw("acknowledged")
    except (EOFError, OSError):
        pass
    return received


def _check(directory: Path, acknowledged: int, outcome: Outcome, *, is_whole: bool) -> None:
    """
    Hold the log against the acknowledgements: nothing lost, no half commit, no gap, all of it good.
    """
    try:
        if is_whole and not (report := verify_here(directory, decoded=False)).is_good:
            outcome.violated(str(report.first_problem))
        with EventLog.open(directory, writable=False) as log:
            envelopes = list(log.read(after=max(0, acknowledged - 1000)))
            if log.head() < acknowledged:
                outcome.violated(f"{acknowledged} was acknowledged, the log ends at {log.head()}")
            if envelopes and not envelopes[-1].ends_step:
                outcome.violated(f"half a commit at the end, {log.head()}")
    except XceError as error:
        outcome.violated(error.text())


def contend(directory: str, number: int, says: Connection, has_no_lock: str) -> None:
    """
    Try to become the one writer; say from when to when it was, or who was in the way.
    """
    if has_no_lock == UNLOCKED:
        vars(lock)["fcntl"] = _NoLock
    began = time.monotonic()
    try:
        with EventLog.open(directory, writable=True) as log:
            won = time.monotonic()
            log.append([stamped(f"worker:w{number}", 1, JobHeld())])
            time.sleep(0.02)
            says.send(("won", won, time.monotonic()))
    except Conflict as error:
        says.send(("refused", time.monotonic() - began, str(error.found)))


class _NoLock:
    """
    Be the sabotage: a lock that everybody gets.
    """

    LOCK_EX = LOCK_NB = LOCK_SH = 0

    @staticmethod
    def flock(_handle: int, _operation: int) -> None:
        """
        Lock nothing.
        """


def race(directory: Path, *, tries: int, sabotage: bool = False) -> Outcome:
    """
    Start two writers at once so many times: one wins, the other is told who did, within two
    seconds.
    """
    outcome = Outcome()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tools.torture.kills"])
    EventLog.create(directory, log_id="the-log").close()
    for number in range(tries):
        pipes, processes = [], []
        for side in (0, 1):
            ours, theirs = context.Pipe(duplex=False)
            arguments = (str(directory), 2 * number + side, theirs, UNLOCKED if sabotage else "")
            processes.append(context.Process(target=contend, args=arguments))
            pipes.append(ours)
        for process in processes:
            process.start()
        answers = [pipe.recv() for pipe in pipes]
        for process, pipe in zip(processes, pipes, strict=True):
            process.join()
            pipe.close()
        outcome.tries += 1
        _judge_race(answers, number, outcome)
    stop_server()
    if not verify_here(directory).is_good:
        outcome.violated("the log is damaged")
    return outcome


def _judge_race(answers: list[tuple[str, float, object]], number: int, outcome: Outcome) -> None:
    """
    See that no two wrote at once and that who was refused learnt by whom.
    """
    won = [answer for answer in answers if answer[0] == "won"]
    outcome.saw(f"{len(won)} won")
    if not won:
        outcome.violated(f"race {number}: nobody won")
    if len(won) == 2 and max(won[0][1], won[1][1]) < min(float(str(end)) for _, _, end in won):
        outcome.violated(f"race {number}: two wrote at once")
    for kind, took, who in answers:
        if kind == "refused" and (took > 2 or "process" not in str(who)):
            outcome.violated(f"race {number}: refused after {took:.1f} s by {who}")

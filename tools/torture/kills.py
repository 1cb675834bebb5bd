"""
Kill a writer with SIGKILL at random moments, over and over, and hold the log against what was
acknowledged.

The writer appends commits of random size and acknowledges each through a pipe after the append
returned; the sabotage is to acknowledge before.
"""

from __future__ import annotations

import random
import shutil
import time
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path

from domain.errors import Conflict, XceError
from domain.events.jobs import JobHeld
from store import lock
from store.log import EventLog
from store.verify import verify_here
from tools.torture.children import context, stop_server
from tools.torture.outcome import Outcome
from tools.torture.workload import stamped

UNLOCKED = "unlocked"
EARLY = "before the commit"
KILLS_PER_LOG = 100
"""After so many kills a log is verified whole and the next one begun: they stay small."""
SIZES = (1, 1, 1, 1, 2, 2, 5, 5, 20, 40, 150, 900)
READ_BACK = 300
"""How many events before the last acknowledged one are read after each kill."""


def write(directory: str, seed: int, acknowledge: Connection, when: str) -> None:
    """
    Append until killed.
    """
    chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
    log = EventLog.open(directory, writable=True)
    position = log.head()
    acknowledge.send(0)
    while True:
        count = chance.choice(SIZES)
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
    outcome = Outcome()
    starter = context()
    for first in range(0, kills, KILLS_PER_LOG):
        log = directory / str(first)
        EventLog.create(log, log_id="the-log").close()
        _Killer(starter, log, outcome, EARLY if sabotage else "").run(
            seed + first, min(KILLS_PER_LOG, kills - first)
        )
        if not (report := verify_here(log, decoded=False)).is_good:
            outcome.violated(f"seed {seed + first}: {report.first_problem}")
        shutil.rmtree(log)
    stop_server()
    return outcome


class _Killer:
    """
    Kill the writers of one log, one after the other.
    """

    def __init__(
        self, starter: ForkServerContext, directory: Path, outcome: Outcome, when: str
    ) -> None:
        self._starter = starter
        self._directory = directory
        self._outcome = outcome
        self._when = when
        self._last = 0

    def run(self, seed: int, kills: int) -> None:
        """
        Kill so many.
        """
        chance = random.Random(seed)  # noqa: S311 - a seed, to repeat it
        for number in range(seed, seed + kills):
            acknowledged = self._kill(number, chance)
            self._outcome.tries += 1
            if not acknowledged:
                self._outcome.violated(f"the writer did not start after kill {number}")
            self._check()

    def _kill(self, seed: int, chance: random.Random) -> int:
        """
        Start a writer and kill it; return how many acknowledgements it gave.
        """
        ours, theirs = self._starter.Pipe(duplex=False)
        arguments = (str(self._directory), seed, theirs, self._when)
        writer = self._starter.Process(target=write, args=arguments)
        writer.start()
        theirs.close()
        before = self._outcome.counts["acknowledged"]
        said = _receive(ours, chance.randrange(1, 20), self._outcome)
        time.sleep(chance.uniform(0, 0.004))
        writer.kill()
        writer.join()
        # What stood in the pipe when it died was acknowledged all the same.
        self._last = max([self._last, *said, *_receive(ours, None, self._outcome)])
        ours.close()
        return self._outcome.counts["acknowledged"] - before

    def _check(self) -> None:
        """
        Hold the log against the acknowledgements: nothing lost, no half commit, no gap.
        """
        try:
            with EventLog.open(self._directory, writable=False) as log:
                head = log.head()
                envelopes = list(log.read(after=max(0, self._last - READ_BACK)))
        except XceError as error:
            self._outcome.violated(error.text())
            return
        if head < self._last:
            self._outcome.violated(f"{self._last} was acknowledged, the log ends at {head}")
        if envelopes and not envelopes[-1].ends_step:
            self._outcome.violated(f"half a commit at the end, {head}")
        positions = [envelope.position for envelope in envelopes]
        if positions and positions != list(range(positions[0], head + 1)):
            self._outcome.violated(f"a gap before {head}")


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


def contend(directory: str, number: int, says: Connection, has_no_lock: str) -> None:
    """
    Try to become the one writer; say so and stay it until told to go, or say who was in the way.
    """
    if has_no_lock == UNLOCKED:
        vars(lock)["fcntl"] = _NoLock
    began = time.monotonic()
    try:
        with EventLog.open(directory, writable=True) as log:
            log.append([stamped(f"worker:w{number}", 1, JobHeld())])
            says.send(("won", time.monotonic() - began, ""))
            says.recv()
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
    Start two writers at once so many times: one wins and stays it until the other has been told who
    did, within two seconds.
    """
    outcome = Outcome()
    starter = context()
    EventLog.create(directory, log_id="the-log").close()
    for number in range(tries):
        pipes, processes = [], []
        for side in (0, 1):
            ours, theirs = starter.Pipe()
            arguments = (str(directory), 2 * number + side, theirs, UNLOCKED if sabotage else "")
            processes.append(starter.Process(target=contend, args=arguments))
            pipes.append(ours)
        for process in processes:
            process.start()
        answers = [pipe.recv() for pipe in pipes]
        for pipe, (said, _, _) in zip(pipes, answers, strict=True):
            if said == "won":
                pipe.send("go")
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
    if len(won) == 2:
        outcome.violated(f"race {number}: two wrote at once")
    for kind, took, who in answers:
        if kind == "refused" and (took > 2 or "process" not in str(who)):
            outcome.violated(f"race {number}: refused after {took:.1f} s by {who}")

"""
Safety: the log is a plain list of commits, under every order of appends, crashes and reopenings.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain.envelope import Stamped
from domain.errors import Conflict
from domain.events.jobs import JobHeld
from store.log import EventLog
from store.verify import verify_here
from tools.torture.workload import stamped

STREAMS = ["job:0000000001", "job:0000000002", "job:0000000010[000003]", "session", "worker:a"]


class LogAgainstList(RuleBasedStateMachine):
    """
    Do the same with a log and with a list.
    """

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="xce-props-"))
        self.log = EventLog.create(self.directory / "log", log_id="the-log", durability="none")
        self.events: list[Stamped] = []
        self.versions = dict.fromkeys(STREAMS, 0)

    @rule(streams=st.lists(st.sampled_from(STREAMS), min_size=1, max_size=30))
    def append(self, streams: list[str]) -> None:
        batch = []
        for stream in streams:
            self.versions[stream] += 1
            batch.append(stamped(stream, self.versions[stream], JobHeld(), at_s=len(self.events)))
        self.events.extend(batch)
        assert len(self.events) == self.log.append(batch)

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def append_a_taken_version(self, data: st.DataObject) -> None:
        taken = data.draw(st.sampled_from(self.events))
        fresh = stamped("queue:new", 1, JobHeld())
        try:
            self.log.append([fresh, taken])
        except Conflict:
            return
        raise AssertionError(taken)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = EventLog.open(self.directory / "log", writable=True, durability="none")

    @precondition(lambda self: self.events)
    @rule(data=st.data())
    def read_a_part(self, data: st.DataObject) -> None:
        after = data.draw(st.integers(0, len(self.events)))
        upto = data.draw(st.integers(0, len(self.events) + 2))
        assert self.events[after:upto] == [each.stamped() for each in self.log.read(after, upto)]

    @rule(stream=st.sampled_from([*STREAMS, "queue:new"]), after=st.integers(0, 40))
    def read_a_stream(self, stream: str, after: int) -> None:
        expected = [each for each in self.events if each.stream == stream and each.version > after]
        assert expected == [each.stamped() for each in self.log.read_stream(stream, after)]

    @invariant()
    def is_equal(self) -> None:
        assert len(self.events) == self.log.head()

    def teardown(self) -> None:
        assert self.events == [each.stamped() for each in self.log.read()]
        self.log.close()
        report = verify_here(self.directory / "log")
        assert report.is_good, report.problems
        shutil.rmtree(self.directory)


LogAgainstList.TestCase.settings = settings(max_examples=30, stateful_step_count=20)
TestLogAgainstList = LogAgainstList.TestCase

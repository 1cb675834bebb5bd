"""
The read model's recorder is a real tracking recorder: the library's own suites pass on it.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import ClassVar

import pytest
from eventsourcing.persistence import (
    InfrastructureFactory,
    IntegrityError,
    NotSupportedError,
    Tracking,
)
from eventsourcing.tests import persistence as tp
from eventsourcing.tests import projection as pr
from eventsourcing.utils import Environment

from projections.audit.persistence import Factory
from projections.audit.recorder import SqliteTrackingRecorder, connect

pytestmark = pytest.mark.slow
MODULE = "projections.audit.persistence"


class CountingView(SqliteTrackingRecorder, pr.EventCountersView):
    """
    Count events in rows of the recorder's own database.
    """

    def __init__(self, database) -> None:
        super().__init__(database)
        database.execute("CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, count INTEGER)")

    def _count(self, name: str) -> int:
        found = self.database.execute("SELECT count FROM counts WHERE name = ?", [name]).fetchone()
        return found[0] if found else 0

    def _increase(self, name: str, tracking: Tracking) -> None:
        with self.advance(tracking) as database:
            database.execute(
                "INSERT INTO counts VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count "
                "+ 1",
                [name],
            )

    def get_created_event_counter(self) -> int:
        return self._count("created")

    def get_subsequent_event_counter(self) -> int:
        return self._count("subsequent")

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        self._increase("created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        self._increase("subsequent", tracking)


class InAFolder:
    """
    Give each test a folder of its own.
    """

    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.path = str(Path(self._folder.name, "read.db"))
        super().setUp()

    def tearDown(self) -> None:
        super().tearDown()
        self._folder.cleanup()


class TestTrackingRecorder(InAFolder, tp.TrackingRecorderTestCase):
    def create_recorder(self) -> SqliteTrackingRecorder:
        recorder = SqliteTrackingRecorder(connect(self.path))
        self.addCleanup(recorder.close)
        return recorder


class TestEventCountersView(InAFolder, pr.EventCountersViewTestCase):
    def construct_event_counters_view(self) -> CountingView:
        view = CountingView(connect(self.path))
        self.addCleanup(view.close)
        return view


class TestProjection(InAFolder, pr.AggregateEventCountersProjectionTestCase):
    """
    Run the library's projection runner with its own log and our view, chosen by settings alone.
    """

    view_class = CountingView
    env: ClassVar[dict[str, str]] = {}

    def setUp(self) -> None:
        super().setUp()
        type(self).env = {
            "EVENTCOUNTERS_PERSISTENCE_MODULE": MODULE,
            "EVENTCOUNTERS_READ_MODEL_PATH": self.path,
        }


class TestProjectionOnTheEmbeddedLog(TestProjection):
    """
    The same with the events on our own store.
    """

    def setUp(self) -> None:
        super().setUp()
        type(self).env |= {
            "APPLICATION_PERSISTENCE_MODULE": "store.embedded",
            "APPLICATION_LMDB_PATH": str(Path(self.path).parent / "log"),
        }


def test_the_factory_refuses_to_keep_events(tmp_path: Path) -> None:
    """
    This module keeps no events; a wrong setting must say so, not lose them.
    """
    factory = InfrastructureFactory.construct(
        Environment(
            "audit",
            {"AUDIT_PERSISTENCE_MODULE": MODULE, "AUDIT_READ_MODEL_PATH": str(tmp_path / "a")},
        )
    )
    assert isinstance(factory, Factory)

    for make in (
        factory.aggregate_recorder,
        factory.application_recorder,
        factory.process_recorder,
    ):
        with pytest.raises(NotSupportedError):
            make()
    factory.close()


def test_a_missing_path_names_the_settings_that_were_tried() -> None:
    """
    The library's own factories do the same.
    """
    with pytest.raises(OSError, match="AUDIT_READ_MODEL_PATH"):
        InfrastructureFactory.construct(Environment("audit", {"PERSISTENCE_MODULE": MODULE}))


def test_rows_and_position_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    """
    Exactly once: what fails after the position moved takes the position back.
    """
    recorder = SqliteTrackingRecorder(connect(str(tmp_path / "a.db")))
    recorder.database.execute("CREATE TABLE t (x INTEGER)")

    def fail() -> None:
        with recorder.advance(Tracking("a", 1)) as database:
            database.execute("INSERT INTO t VALUES (1)")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert (None, 0) == (recorder.max_tracking_id("a"), recorder.database.table("t").count)
    recorder.close()


def test_two_writers_never_take_the_same_position(tmp_path: Path) -> None:
    """
    The second of two followers fails instead of doubling rows, however their transactions meet.
    """
    recorders = [SqliteTrackingRecorder(connect(str(tmp_path / "a.db"))) for _ in range(2)]
    taken: list[int] = []

    def take(recorder: SqliteTrackingRecorder) -> None:
        for position in range(1, 200):
            try:
                recorder.insert_tracking(Tracking("a", position))
                taken.append(position)
            except IntegrityError:
                continue

    threads = [threading.Thread(target=take, args=(one,)) for one in recorders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(taken)) == len(taken)
    assert 199 == recorders[0].max_tracking_id("a")
    for one in recorders:
        one.close()


def test_waiting_ends_soon_after_the_position_is_there(tmp_path: Path) -> None:
    """
    The library's own waiting would look again after 100 ms at the earliest.
    """
    recorder = SqliteTrackingRecorder(connect(str(tmp_path / "a.db")))
    timer = threading.Timer(0.05, recorder.insert_tracking, (Tracking("a", 3),))
    timer.start()

    recorder.wait("a", 3, timeout=5)

    timer.join()
    recorder.close()

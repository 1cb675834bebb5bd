"""
Run the eventsourcing library's own suites on the embedded store: synced commits, ids as text and as
UUIDs.

Each class here is named after the suite class that it runs. The suites are imported as modules, so
that their abstract bases are not collected.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import lmdb
from eventsourcing.persistence import Tracking
from eventsourcing.tests import application as ap
from eventsourcing.tests import persistence as tp
from eventsourcing.tests import projection as pr
from eventsourcing.utils import Environment as Variables

from store.embedded.environment import Environment, acquire
from store.embedded.factory import EmbeddedFactory
from store.embedded.layout import number_bytes, number_of
from store.embedded.recorder import EmbeddedAggregateRecorder, EmbeddedApplicationRecorder
from store.embedded.settings import Settings
from store.embedded.tracking import EmbeddedProcessRecorder, EmbeddedTrackingRecorder


class OnEmbedded:
    """
    Give every test a fresh directory, and close it afterwards.
    """

    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="xce-suite-"))
        self._open: list[Environment] = []
        super().setUp()  # type: ignore[misc]

    def tearDown(self) -> None:
        super().tearDown()  # type: ignore[misc]
        for environment in self._open:
            environment.release()
        shutil.rmtree(self.directory)

    def fresh(self) -> Environment:
        path = (self.directory / str(len(self._open))).resolve()
        environment = acquire(Settings(path=path, durability="full"))
        self._open.append(environment)
        return environment


class TextIds:
    """
    Use text as ids.
    """

    def new_originator_id(self) -> str:
        return "test-" + str(uuid4())


class TestAggregateRecorderTestCase(OnEmbedded, tp.AggregateRecorderTestCase):
    def create_recorder(self) -> EmbeddedAggregateRecorder:
        return EmbeddedAggregateRecorder(self.fresh())


class TestAggregateRecorderTestCaseText(TextIds, TestAggregateRecorderTestCase):
    pass


class TestApplicationRecorderTestCase(
    OnEmbedded, tp.ApplicationRecorderTestCase[EmbeddedApplicationRecorder]
):
    def create_recorder(self) -> EmbeddedApplicationRecorder:
        return EmbeddedApplicationRecorder(self.fresh())

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationRecorderTestCaseText(TextIds, TestApplicationRecorderTestCase):
    pass


class TestTrackingRecorderTestCase(OnEmbedded, tp.TrackingRecorderTestCase):
    def create_recorder(self) -> EmbeddedTrackingRecorder:
        return EmbeddedTrackingRecorder(self.fresh())


class TestProcessRecorderTestCase(OnEmbedded, tp.ProcessRecorderTestCase):
    def create_recorder(self) -> EmbeddedProcessRecorder:
        return EmbeddedProcessRecorder(self.fresh())


class TestProcessRecorderTestCaseText(TextIds, TestProcessRecorderTestCase):
    pass


class TestNonInterleavingNotificationIDsBaseCase(
    OnEmbedded, tp.NonInterleavingNotificationIDsBaseCase
):
    def create_recorder(self) -> EmbeddedApplicationRecorder:
        return EmbeddedApplicationRecorder(self.fresh())


class TestNonInterleavingNotificationIDsBaseCaseText(
    TextIds, TestNonInterleavingNotificationIDsBaseCase
):
    pass


class CustomTrackingRecorder(EmbeddedTrackingRecorder):
    """
    Stand for somebody's own tracking recorder.
    """


class TestInfrastructureFactoryTestCase(
    OnEmbedded, tp.InfrastructureFactoryTestCase[EmbeddedFactory]
):
    def setUp(self) -> None:
        self.env = Variables("TestCase")
        self.env["PERSISTENCE_MODULE"] = "store.embedded"
        self.env["LMDB_DURABILITY"] = "full"
        path = Path(tempfile.mkdtemp(prefix="xce-suite-"))
        self.addCleanup(shutil.rmtree, path)
        self.env["LMDB_PATH"] = str(path / "log")
        super().setUp()

    def expected_factory_class(self) -> type[EmbeddedFactory]:
        return EmbeddedFactory

    def expected_aggregate_recorder_class(self) -> type[EmbeddedAggregateRecorder]:
        return EmbeddedAggregateRecorder

    def expected_application_recorder_class(self) -> type[EmbeddedApplicationRecorder]:
        return EmbeddedApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[EmbeddedTrackingRecorder]:
        return EmbeddedTrackingRecorder

    def tracking_recorder_subclass(self) -> type[EmbeddedTrackingRecorder]:
        return CustomTrackingRecorder

    def expected_process_recorder_class(self) -> type[EmbeddedProcessRecorder]:
        return EmbeddedProcessRecorder


class EmbeddedCounters(EmbeddedTrackingRecorder, pr.EventCountersView):
    """
    Count events beside the position that the counts belong to.
    """

    def __init__(self, environment: Environment, *, name: str = "", **kwargs: Any) -> None:
        super().__init__(environment, name=name, **kwargs)
        self._counters = environment.database(b"counters")

    def get_created_event_counter(self) -> int:
        return self._count(b"created")

    def get_subsequent_event_counter(self) -> int:
        return self._count(b"subsequent")

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        self._increment(b"created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        self._increment(b"subsequent", tracking)

    def _count(self, name: bytes) -> int:
        with self.environment.read() as transaction:
            return number_of(transaction.get(name, number_bytes(0), db=self._counters))

    def _increment(self, name: bytes, tracking: Tracking) -> None:
        def add_one(transaction: lmdb.Transaction) -> None:
            count = number_of(transaction.get(name, number_bytes(0), db=self._counters))
            transaction.put(name, number_bytes(count + 1), db=self._counters)
            self.put_tracking(transaction, tracking)

        self.environment.write(add_one)


class TestEventCountersViewTestCase(OnEmbedded, pr.EventCountersViewTestCase):
    def construct_event_counters_view(self) -> EmbeddedCounters:
        return EmbeddedCounters(self.fresh())


class WithVariables(OnEmbedded):
    """
    Select the embedded store by the settings of an application.
    """

    def setUp(self) -> None:
        super().setUp()
        type(self).env = {  # type: ignore[misc]
            "PERSISTENCE_MODULE": "store.embedded",
            "LMDB_PATH": str(self.directory / "log"),
            "LMDB_DURABILITY": "full",
        }


class TestAggregateEventCountersProjectionTestCase(
    WithVariables, pr.AggregateEventCountersProjectionTestCase
):
    view_class = EmbeddedCounters


class TestEventSourcedProjectionTestCase(WithVariables, pr.EventSourcedProjectionTestCase):
    pass


class TestExampleApplicationTestCase(OnEmbedded, ap.ExampleApplicationTestCase):
    expected_factory_topic = "store.embedded.factory:EmbeddedFactory"

    def setUp(self) -> None:
        super().setUp()
        os.environ["PERSISTENCE_MODULE"] = "store.embedded"
        os.environ["LMDB_PATH"] = str(self.directory / "log")
        os.environ["LMDB_DURABILITY"] = "full"

    def tearDown(self) -> None:
        for name in ("PERSISTENCE_MODULE", "LMDB_PATH", "LMDB_DURABILITY"):
            del os.environ[name]
        super().tearDown()


def test_text_and_uuid_ids_are_told_apart() -> None:
    """
    The suites run each recorder with one type of id at a time; a log may hold both.
    """
    with tempfile.TemporaryDirectory() as directory:
        environment = acquire(Settings(path=Path(directory).resolve() / "log"))
        recorder = EmbeddedApplicationRecorder(environment)
        number = UUID(int=1)
        recorder.insert_rows(
            [(number, 1, "a", b"1"), (str(number), 1, "a", b"2"), ("", 1, "a", b"3")]
        )

        assert [b"1"] == [event.state for event in recorder.select_events(number)]
        assert [b"2"] == [event.state for event in recorder.select_events(str(number))]
        assert [number, str(number), ""] == [row[1] for row in recorder.iter_rows()]
        environment.release()

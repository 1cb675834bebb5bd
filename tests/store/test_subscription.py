"""
Following the log: no wake-up lost, nothing scanned twice, whoever commits.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventsourcing.persistence import ProgrammingError

from store.embedded.environment import acquire
from store.embedded.recorder import EmbeddedApplicationRecorder
from store.embedded.settings import Settings

REPO = Path(__file__).resolve().parent.parent.parent
WRITER = (
    "import sys\nfrom pathlib import Path\n"
    "from store.embedded.environment import acquire\n"
    "from store.embedded.recorder import EmbeddedApplicationRecorder\n"
    "from store.embedded.settings import Settings\n"
    "recorder = EmbeddedApplicationRecorder(acquire(Settings(Path(sys.argv[1]))))\n"
    "for number in range(1, 101):\n"
    "    recorder.insert_rows([(sys.argv[2], number, 'tick', b'x')])\n"
)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[EmbeddedApplicationRecorder]:
    environment = acquire(Settings((tmp_path / "log").resolve()))
    yield EmbeddedApplicationRecorder(environment)
    environment.release()


def put(recorder: EmbeddedApplicationRecorder, first: int, count: int, topic: str = "tick") -> None:
    recorder.insert_rows([("s", number, topic, b"x") for number in range(first, first + count)])


def test_two_processes_write_and_one_follows(recorder: EmbeddedApplicationRecorder) -> None:
    """
    Their commits come in one order, whole, and wake who waits.
    """
    path = recorder.environment.path
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, name], cwd=REPO)
        for name in ("one", "two")
    ]
    seen = []
    with recorder.subscribe() as subscription:
        # Whatever goes wrong in a writer, the test must come to an end and say so.
        guard = threading.Timer(60.0, subscription.stop)
        guard.start()
        for notification in subscription:
            seen.append(notification)
            if len(seen) == 200:
                break
        guard.cancel()
    assert [0, 0] == [writer.wait(timeout=30) for writer in writers]

    assert list(range(1, 201)) == [each.id for each in seen]
    for name in ("one", "two"):
        versions = [each.originator_version for each in seen if each.originator_id == name]
        assert list(range(1, 101)) == versions


@pytest.mark.needs_program("strace")
def test_a_commit_that_is_heard_of_before_it_can_be_read_is_delivered(recorder) -> None:
    """
    The engine writes its meta page before it tells readers; a writer that is slow between the two
    was heard, not seen, and never waited for again. Here each of its writes takes 50 ms longer.
    """
    command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=pwrite64",
               "-e", "inject=pwrite64:delay_exit=50000",
               sys.executable, "-c", WRITER.replace("101", "6"), recorder.environment.path,
               "one"]  # fmt: skip
    with recorder.subscribe() as subscription:
        guard = threading.Timer(30.0, subscription.stop)
        guard.start()
        with subprocess.Popen(command, cwd=REPO):
            seen = [next(subscription).id for _ in range(5)]
        guard.cancel()

    assert [1, 2, 3, 4, 5] == seen


def test_what_is_committed_while_the_subscription_is_made_is_delivered(recorder) -> None:
    """
    The library's own base class starts to listen too late and then waits for the next commit.
    """
    for number in range(1, 30):
        subscription = recorder.subscribe(gt=number - 1)
        put(recorder, number, 1)
        with subscription:
            assert number == next(subscription).id


def test_a_filtered_subscription_scans_nothing_twice(recorder, monkeypatch) -> None:
    """
    The library's own base class begins at the last match again and again.
    """
    put(recorder, 1, 1000, "noise")
    starts = []
    real = recorder.select_notifications

    def watched(start, *arguments, **named):
        starts.append(start)
        return real(start, *arguments, **named)

    monkeypatch.setattr(recorder, "select_notifications", watched)
    with recorder.subscribe(topics=["signal"]) as subscription:

        def write() -> None:
            for number in range(1001, 1006):
                put(recorder, number, 1, "noise")
                deadline = time.monotonic() + 5
                while (not starts or starts[-1] < number - 2) and time.monotonic() < deadline:
                    pass
            put(recorder, 1006, 1, "signal")

        thread = threading.Thread(target=write)
        thread.start()
        assert 1006 == next(subscription).id
        thread.join()

    assert sorted(set(starts)) == starts
    assert starts[0] == 0
    assert all(start >= 1000 for start in starts[1:])


def test_a_rare_topic_is_found_without_reading_the_rest(recorder, monkeypatch) -> None:
    """
    The mask in a frame's header lets it be passed over.
    """
    from store.embedded import reader

    for number in range(50):
        put(recorder, 1 + number * 10, 10, "signal" if number == 30 else "noise")
    opened = []
    real = reader.open_frame
    monkeypatch.setattr(
        reader, "open_frame", lambda *a, **k: opened.append(k["position"]) or real(*a, **k)
    )
    found = recorder.select_notifications(None, 100, topics=["signal"])

    assert list(range(301, 311)) == [each.id for each in found]
    assert [301] == opened


def test_it_can_be_stopped_at_any_time_and_entered_once(recorder) -> None:
    """
    As the library promises.
    """
    subscription = recorder.subscribe()
    subscription.stop()
    with subscription:
        assert [] == list(subscription)
        with pytest.raises(ProgrammingError):
            subscription.__enter__()
    subscription.stop()
    waiting = recorder.subscribe()
    threading.Timer(0.05, waiting.stop).start()
    with waiting:
        assert [] == list(waiting)


def test_it_survives_the_closing_of_everything_else(tmp_path: Path) -> None:
    """
    It holds a reference of its own.
    """
    environment = acquire(Settings((tmp_path / "log").resolve()))
    recorder = EmbeddedApplicationRecorder(environment)
    put(recorder, 1, 3)
    with recorder.subscribe() as subscription:
        environment.release()
        assert [1, 2, 3] == [next(subscription).id for _ in range(3)]
    with pytest.raises(ProgrammingError):
        environment.check_usable()

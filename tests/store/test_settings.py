"""
The settings of the embedded store, as the library hands them over.
"""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from eventsourcing.persistence import InfrastructureFactory, NotSupportedError, StoredEvent
from eventsourcing.utils import Environment as Variables

from store.embedded import EmbeddedFactory
from store.embedded.settings import MAP_SIZE, MODE, READERS_MAX, Settings, settings_from


def read(**given: str) -> Settings:
    return settings_from(given.get, lambda name: f"BENCH_{name}, {name}")


def test_what_is_not_given_has_the_safe_value() -> None:
    """
    Nobody should lose a log for want of a setting.
    """
    found = read(LMDB_PATH="/some/log")

    assert Settings(Path("/some/log"), MAP_SIZE, "full", READERS_MAX) == found
    assert (False, False, MODE) == (found.readonly, found.allow_network, found.mode)


def test_every_setting_is_taken() -> None:
    """
    Names and forms are those of the package's documentation.
    """
    found = read(
        LMDB_PATH="/some/log", LMDB_MAP_SIZE="0x100000", LMDB_MAX_READERS="7", LMDB_READONLY="yes",
        LMDB_ALLOW_NETWORK_FS="1", LMDB_MODE="0o640",
    )  # fmt: skip

    expected = Settings(
        Path("/some/log"), map_size=1 << 20, readers_max=7, readonly=True, allow_network=True,
        mode=0o640,
    )  # fmt: skip
    assert expected == found


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("LMDB_DURABILITY", "some", "full, relaxed, none, not 'some'"),
        ("LMDB_MAP_SIZE", "1 TiB", "LMDB_MAP_SIZE must be a whole number above 0, not '1 TiB'"),
        ("LMDB_MAX_READERS", "0", "LMDB_MAX_READERS must be a whole number above 0"),
        ("LMDB_READONLY", "maybe", "LMDB_READONLY must be yes or no, not 'maybe'"),
        ("LMDB_PATH", "", "BENCH_LMDB_PATH, LMDB_PATH"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name: str, value: str, told: str) -> None:
    """
    The library's own modules raise OSError naming what they looked for.
    """
    with pytest.raises(OSError, match=told):
        read(**{"LMDB_PATH": "/some/log", name: value})


@pytest.mark.parametrize(
    ("durability", "risk"),
    [("relaxed", "lose the last commit"), ("none", "lose commits or damage the log")],
)
def test_a_risk_is_told_at_the_start(durability: str, risk: str) -> None:
    """
    A power failure tells it too late.
    """
    with pytest.warns(RuntimeWarning, match=f"LMDB_DURABILITY={durability}.*{risk}"):
        assert durability == read(LMDB_PATH="/some/log", LMDB_DURABILITY=durability).durability


def test_a_factory_made_by_name_keeps_to_its_settings(tmp_path: Path) -> None:
    """
    The way of every application: PERSISTENCE_MODULE and variables, its own name first.
    """
    given = {"PERSISTENCE_MODULE": "store.embedded", "BENCH_LMDB_PATH": str(tmp_path / "log")}
    factory = InfrastructureFactory.construct(Variables("bench", given | {"LMDB_PATH": "/none"}))
    assert isinstance(factory, EmbeddedFactory)
    event = StoredEvent("s", 1, "tick", b"x")
    assert [1] == factory.application_recorder().insert_events([event])
    factory.close()
    mode = stat.S_IMODE((tmp_path / "log" / "data.mdb").stat().st_mode)
    reading = InfrastructureFactory.construct(Variables("bench", given | {"LMDB_READONLY": "y"}))
    recorder = reading.application_recorder()
    with pytest.raises(NotSupportedError):
        recorder.insert_events([event])

    assert (MODE, 1) == (mode, recorder.max_notification_id())
    reading.close()

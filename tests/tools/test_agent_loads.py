"""
What a worker measures of its host's load, and what of that it tells.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tools.agent import loads, logins, measure, rates


@pytest.mark.parametrize(
    ("told_kib", "seen_kib", "is_news"),
    [
        (100_000, 105_000, False),
        (100_000, 115_000, True),
        (10_000, 12_000, False),
        (10_000, 15_000, True),
        (100_000, 80_000, True),
    ],
)
def test_what_counts_as_a_change(told_kib: int, seen_kib: int, is_news: bool) -> None:
    """
    More than a tenth, and more than 4 MiB.
    """
    assert is_news == loads.has_changed(told_kib * 1000, seen_kib * 1000)


@pytest.mark.parametrize(
    ("told", "seen", "is_news"),
    [(0, 500, False), (0, 501, True), (4_000, 4_900, False), (4_000, 5_001, True)],
)
def test_a_run_queue_is_told_again_when_it_has_changed_much(
    told: int, seen: int, is_news: bool
) -> None:
    """
    By more than half a process and a quarter; what was never told is news.
    """
    news = loads.LoadNews()
    first = news.of({"r1m": told})
    assert [("r1m", told)] == [(each.resource, each.milli) for each in first]
    news.note(first)
    assert is_news == bool(news.of({"r1m": seen}))
    news.forget()
    assert news.of({"r1m": told})


def test_load_thresholds_of_run_queues_and_space_have_figures() -> None:
    """
    Those that sites bound most are measured.
    """
    assert {"mem", "swp", "tmp", "r1m", "r15m"} == set(loads.load_of_host())


@pytest.mark.parametrize(
    ("index", "told", "seen", "is_news"),
    [
        ("ut", 0, 100, False),
        ("ut", 0, 101, True),
        ("ut", 800, 950, False),
        ("pg", 0, 10_000, False),
        ("pg", 0, 11_000, True),
        ("io", 5_000_000, 6_100_000, False),
        ("io", 5_000_000, 6_400_000, True),
        ("ls", 1_000, 2_000, True),
        ("ls", 9_000, 8_000, True),
        ("it", 0, 1_000, True),
        ("it", 60_000, 66_000, False),
        ("it", 60_000, 67_000, True),
        ("it", 60_000, 0, True),
    ],
)
def test_a_load_index_is_told_again_when_its_change_matters(
    index: str, told: int, seen: int, is_news: bool
) -> None:
    """
    Each has what a threshold would be about; a host at rest adds next to nothing to the log.
    """
    news = loads.LoadNews()
    news.note(news.of({index: told}))

    assert is_news == bool(news.of({index: seen}))


def test_what_the_kernel_counts_becomes_means_of_a_minute(tmp_path: Path) -> None:
    """
    Only real disks count, time spent waiting for them is no work, and an old peak is forgotten.
    """
    for name, text in (
        ("proc/stat", "cpu  10 5 5 70 10 0 0 0 3 0\ncpu0 1 1 1 1\n"),
        ("proc/vmstat", "pgpgin 99\npswpin 7\npswpout 5\n"),
        ("proc/diskstats", "8 0 sda 1 1 100 1 1 1 50 1\n7 0 loop0 1 1 900 1 1 1 900 1\n"),
        ("sys/block/sda/device/model", "x"),
        ("sys/block/loop0/size", "9"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    read = rates.read_counters(tmp_path)
    rate = rates.Rates(tmp_path)
    rate.note(read._replace(at_us=read.at_us + 100_000))

    assert (20, 100, 12, 150) == read[1:]
    assert {} == rate.indices()
    half = rates.Counters(read.at_us + 10_000_000, 320, 500, 32, 20_150)
    rate.note(half)
    # 300 of 400 ticks; 20 pages and 10,000 KiB in 10 s.
    assert {"ut": 750, "pg": 2_000, "io": 1_000_000} == _near(rate.indices())
    rate.note(half._replace(at_us=half.at_us + 61_000_000, all_ticks=900))
    assert {"ut": 0, "pg": 0, "io": 0} == rate.indices()


def _near(indices: dict[str, int]) -> dict[str, int]:
    """
    Return rates without the moment that passed between two looks at the clock.
    """
    return {name: round(milli, -3) if milli > 1_000 else milli for name, milli in indices.items()}


def test_what_the_kernel_does_not_count_is_not_told(tmp_path: Path) -> None:
    """
    Nobody can tell a made-up 0 from an idle host.
    """
    rate = rates.Rates(tmp_path)
    rate.note(rates.read_counters(tmp_path)._replace(at_us=2**60))

    assert {} == rate.indices()


def test_input_at_a_terminal_ends_the_idle_time(tmp_path: Path) -> None:
    """
    The last one at any terminal counts; who is logged in is told where the system keeps a record.
    """
    pts = tmp_path / "dev" / "pts"
    pts.mkdir(parents=True)
    idle = logins.indices(tmp_path)
    for name, ago_s in (("0", 7_200), ("1", 125)):
        (pts / name).touch()
        os.utime(pts / name, (time.time() - ago_s, time.time()))
    typed = logins.indices(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "utmp").touch()

    assert {"it"} == set(idle)
    assert {"it": min(idle["it"], 2_000)} == typed
    assert {"it", "ls"} == set(logins.indices(tmp_path))


def test_a_worker_reports_what_it_measures_of_the_load_after_a_moment() -> None:
    """
    A rate needs two looks; until then a threshold of it has nothing to be compared with.
    """
    meter = measure.Meter("")
    first = meter.measure([])
    found: set[str] = set()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and "ut" not in found:
        time.sleep(0.2)
        told = meter.measure([])
        found |= {amount.resource for amount in told.load} if told else set()

    assert first is not None
    names = {amount.resource for amount in first.load}
    assert {"mem", "swp", "tmp", "r1m", "r15m", "it"} <= names
    assert not {"ut", "pg", "io"} & names
    assert {"ut", "pg"} <= found

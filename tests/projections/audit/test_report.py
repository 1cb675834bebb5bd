"""
The report is one page that says the truth, needs nothing from outside and shows in a real browser.
"""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from collections import Counter, defaultdict
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.events.jobs import JobEnded, JobFinished
from projections.audit.reading import Reading
from projections.audit.report.figures import report_of
from projections.audit.report.page import largest, page
from projections.audit.report.plots import nice_top, number
from projections.audit.report.series import Axis, ReasonSweep, axis_of, mean_levels, slots
from tests.projections.audit.logs import SECOND_US, a_cluster, dispatched, pended, short_of_slots
from tests.projections.audit.making import made

HOSTILE = '"><script>alert(1)</script><img src=http://evil.example/x>\n\u202e=1+1'


@pytest.fixture
def reading(tmp_path: Path):
    """
    Return tables of jobs of two users; one user and one job have hostile names.
    """
    log = a_cluster()
    for number_ in range(1, 9):
        job = log.job(number_, user=("ann", "ben")[number_ % 2], name=HOSTILE, project="p")
        log.session(("reasons", short_of_slots()), (job, pended()))
        log.session((job, dispatched(1, (number_ % 2, 1, 2))))
        if number_ < 8:
            log.add(job, JobFinished(attempt=1, exit_code=0), after_s=number_)
    with made(tmp_path / "a.db", log.envelopes) as opened:
        yield opened


class Outline(HTMLParser):
    """
    Collect the elements and addresses of a page, and whether every element is closed.
    """

    VOID = frozenset(("meta", "line", "img", "br"))

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs) -> None:
        self.tags[tag] += 1
        self.addresses += [
            str(v) for name, v in attrs if name in ("src", "href", "xlink:href", "action")
        ]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs) -> None:
        self.tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open.pop()


def outline(text: str) -> Outline:
    """
    Return the outline of a page.
    """
    found = Outline()
    found.feed(text)
    assert [] == found.open
    return found


def test_the_page_is_whole_and_asks_nothing_of_the_network(reading: Reading) -> None:
    """
    It opens on a machine without a network, and tells nobody that it was opened.
    """
    text = page(report_of(reading))

    found = outline(text)
    assert [] == found.addresses
    assert "script" not in found.tags
    assert not re.search(r"url\(|@import|https?:", text)
    assert "default-src 'none'" in text
    assert found.tags["svg"] >= 5


def test_names_that_users_chose_are_text_and_nothing_else(reading: Reading, tmp_path: Path) -> None:
    """
    A user named <script> is shown as that, on one line.
    """
    report = report_of(reading)
    report.users[0].figures.job_count += 0
    hostile = report.__class__(
        **{
            **{name: getattr(report, name) for name in report.__slots__},
            "cluster": HOSTILE,
            "lengths": {HOSTILE: report.lengths["normal"]},
            "refusals": {HOSTILE: 1},
        }
    )

    text = page(hostile)

    assert "<script" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    outline(text)


def test_the_same_log_gives_the_same_page(reading: Reading) -> None:
    """
    No clock and no chance: two reports can be compared.
    """
    assert page(report_of(reading)) == page(report_of(reading))


def test_the_figures_are_those_of_the_jobs(reading: Reading) -> None:
    """
    Mean wait of two seconds each; used slot time is the area under the plot.
    """
    report = report_of(reading)
    width = Fraction(report.axis.end_us - report.axis.begin_us, report.axis.buckets)
    now_us = reading.last_time_us()
    held = reading.rows("SELECT from_us, to_us, tasks_per_host FROM allocations")

    assert (7, 2 * SECOND_US) == (report.overall.job_count, report.overall.mean_wait_us)
    assert [("ann", 3), ("ben", 4)] == sorted(
        (one.name, one.figures.job_count) for one in report.users
    )
    area = sum(
        (r["to_us"] or now_us) * r["tasks_per_host"] - r["from_us"] * r["tasks_per_host"]
        for r in held
    )
    assert abs(sum(report.used) * width - area) < area / 1000


def test_how_jobs_ended_is_told_in_words_with_their_codes(tmp_path: Path) -> None:
    """
    Why a night's jobs are gone is what is asked first in the morning.
    """
    log = a_cluster()
    for number_, code in enumerate((3, 3, 0), 1):
        job = log.job(number_)
        log.session((job, dispatched(1)))
        log.add(job, JobFinished(attempt=1, exit_code=code))
    log.add(log.job(4), JobEnded(why="TERM_OWNER"))

    with made(tmp_path / "e.db", log.envelopes) as opened:
        report = report_of(opened)

    assert {"exit code 3": 2, "killed by its user (TERM_OWNER)": 1} == report.ends
    assert "<td>exit code 3</td><td>2</td>" in page(report)


def test_an_empty_log_has_a_page_too(tmp_path: Path) -> None:
    """
    On the first day there is nothing to draw.
    """
    with made(tmp_path / "b.db", []) as reading:
        outline(page(report_of(reading)))


# ----------------------------------------------------------------------------------------- series

INTERVALS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 50), st.integers(0, 50), st.integers(1, 3)),
    max_size=12,
)


@given(INTERVALS, st.integers(1, 7))
def test_safety_mean_levels_are_the_exact_areas_of_the_intervals(intervals, buckets: int) -> None:
    """
    Against the plain sum over every moment of a small axis.
    """
    axis = Axis(0, 49, buckets)
    deltas = [
        change
        for name, a, b, level in intervals
        for change in ((min(a, b), name, level), (max(a, b), name, -level))
    ]

    found = mean_levels(axis, deltas)

    edges = axis.edges()
    for name in "ab":
        for bucket, (begin, end) in enumerate(pairwise(edges)):
            area = sum(
                level
                for one, a, b, level in intervals
                if one == name
                for moment in range(begin, end)
                if min(a, b) <= moment < max(a, b)
            )
            means = found.get(name, [Fraction(0)] * buckets)
            assert Fraction(area, max(1, end - begin)) == means[bucket]


@pytest.mark.slow
@settings(max_examples=25)
@given(st.integers(0, 2**32), st.integers(5, 90), st.sampled_from(["builtin_fcfs", "strict_fcfs"]))
def test_safety_the_sweep_over_reasons_counts_what_the_view_says(
    seed: int, count: int, picker: str
) -> None:
    """
    The plot doesn't make the intervals of pend_reasons; it must count the same.
    """
    import tempfile

    from tests.projections.audit.driving import driven, some_actions

    history = driven(some_actions(seed, count), picker)
    with (
        tempfile.TemporaryDirectory() as folder,
        made(Path(folder, "a.db"), history.envelopes) as reading,
    ):
        axis = axis_of(reading, 7)
        swept = {code: sum(means) for code, means in ReasonSweep(reading, axis).means().items()}
        deltas = []
        for row in reading.rows("SELECT code, from_us, to_us FROM pend_reasons"):
            deltas.append((row["from_us"], row["code"], 1))
            if row["to_us"] is not None:
                deltas.append((row["to_us"], row["code"], -1))
        counted = {code: sum(means) for code, means in mean_levels(axis, deltas).items()}

        assert {c: n for c, n in counted.items() if n} == {c: n for c, n in swept.items() if n}


def test_slots_offered_are_those_of_hosts_that_have_not_left(reading: Reading) -> None:
    """
    Two hosts of four slots from their join on.
    """
    _, offered = slots(reading, axis_of(reading, 10))

    assert Fraction(8) == offered[-1]


def test_more_series_than_colours_are_summed() -> None:
    """
    An eighth colour could not be told from the others; the sum stays the same.
    """
    series = {f"s{index}": [Fraction(index), Fraction(1)] for index in range(1, 12)}

    chosen = largest(series)

    assert (8, "all others") == (len(chosen), chosen[-1][0])
    assert [66, 11] == [sum(column) for column in zip(*(one for _, one in chosen), strict=True)]


def test_axes_end_at_round_numbers() -> None:
    """
    People read 2,000 more easily than 1,013.
    """
    assert [Fraction(1), Fraction(2000), Fraction(25), Fraction(1, 5)] == [
        nice_top(value) for value in (Fraction(0), Fraction(1013), Fraction(21), Fraction(1, 5))
    ]
    assert ["1,013", "0.25", "-1.5"] == [
        number(v) for v in (Fraction(1013), Fraction(1, 4), Fraction(-3, 2))
    ]


# ---------------------------------------------------------------------------------------- browser


def pixels(path: Path) -> tuple[int, int, list[bytes]]:
    """
    Return width, height and rows of an 8-bit RGB or RGBA picture without interlacing, as RGB.
    """
    raw, at, data, size = path.read_bytes(), 8, b"", (0, 0, 0)
    while at < len(raw):
        length, kind = struct.unpack(">I4s", raw[at : at + 8])
        body = raw[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            wide, high, _, colour = struct.unpack(">IIBB", body[:10])
            size = (wide, high, {2: 3, 6: 4}[colour])
        elif kind == b"IDAT":
            data += body
        at += 12 + length
    wide, high, depth = size
    return wide, high, list(_unfiltered(zlib.decompress(data), wide * depth, depth))


def _unfiltered(data: bytes, stride: int, depth: int):
    before = bytearray(stride)
    for at in range(0, len(data), stride + 1):
        kind, line = data[at], bytearray(data[at + 1 : at + 1 + stride])
        for i in range(stride):
            left = line[i - depth] if i >= depth else 0
            corner = before[i - depth] if i >= depth else 0
            above = before[i]
            if kind == 1:
                line[i] = (line[i] + left) & 255
            elif kind == 2:
                line[i] = (line[i] + above) & 255
            elif kind == 3:
                line[i] = (line[i] + (left + above) // 2) & 255
            elif kind == 4:
                guess = left + above - corner
                distances = (abs(guess - left), abs(guess - above), abs(guess - corner))
                line[i] = (line[i] + (left, above, corner)[distances.index(min(distances))]) & 255
        before = line
        yield bytes(line[i] for i in range(stride) if depth == 3 or i % 4 != 3)


@pytest.mark.slow
@pytest.mark.needs_program("chromium")
def test_it_shows_in_a_real_browser(reading: Reading, tmp_path: Path) -> None:
    """
    Headless Chromium draws the plots in their colours, light and dark text on the page.
    """
    (tmp_path / "report.html").write_text(page(report_of(reading)), encoding="utf-8")
    subprocess.run(
        [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--window-size=700,2000",
            f"--screenshot={tmp_path / 'report.png'}",
            (tmp_path / "report.html").as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )

    wide, high, rows = pixels(tmp_path / "report.png")
    colours: defaultdict[bytes, int] = defaultdict(int)
    for row in rows:
        for at in range(0, len(row), 3):
            colours[row[at : at + 3]] += 1

    assert (700, 2000) == (wide, high)
    assert colours[bytes.fromhex("0072b2")] > 5000
    assert max(colours, key=colours.__getitem__) in (b"\xff\xff\xff", bytes.fromhex("14181e"))
    assert len(colours) > 20

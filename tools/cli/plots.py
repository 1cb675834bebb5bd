"""
Draw the curves of two schedules into one HTML page: plain SVG, nothing is loaded from anywhere.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from replay.diff import Schedule
from replay.moments import show_utc
from replay.series import span_of, used, waiting, waits
from tools.cli.output import show_duration

WIDTH: Final = 960
HEIGHT: Final = 240
LEFT: Final = 110
BOTTOM: Final = 30
SPANS: Final = 480
COLOURS: Final = ("#1f6fb2", "#d9822b")

Points = Sequence[Fraction | int]


def page(schedules: Sequence[Schedule], names: Sequence[str]) -> str:
    """
    Return a page with the jobs that wait, the slots in use and the waits of some schedules.
    """
    begin_us, end_us = span_of(schedules)
    ends = (show_utc(begin_us), show_utc(end_us))
    queue = [waiting(one, begin_us, end_us, SPANS).means for one in schedules]
    slots = [used(one, begin_us, end_us, SPANS).means for one in schedules]
    ranks = [waits(one, SPANS) for one in schedules]
    most = max((one.slots for one in schedules), default=1)
    keys = "".join(
        f'<span style="color:{colour}">&#9632; {html.escape(name)}</span> '
        for colour, name in zip(COLOURS, names, strict=False)
    )
    charts = (
        _chart("Jobs that wait", queue, ends, str),
        _chart("Slots in use", slots, ends, str, most=most),
        _chart("Waits, from the shortest to the longest", ranks, ("0 %", "100 %"), show_duration),
    )
    return (
        "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><title>Schedules</title>"
        "<style>body{font:14px sans-serif;margin:2em;max-width:1060px}"
        "text{font-size:12px;fill:#555}h2{font-size:16px}</style>"
        f"<h1>Schedules side by side</h1><p>{keys}</p>{''.join(charts)}</html>\n"
    )


def _chart(
    title: str, curves: Sequence[Points], ends: tuple[str, str], shown: object, *, most: int = 0
) -> str:
    """
    Return one chart: a heading and the curves over a common scale from 0.
    """
    assert callable(shown)
    top = max([most, 1, *(int(-(-value // 1)) for curve in curves for value in curve)])
    marks = "".join(
        f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" stroke="#ddd"/>'
        f'<text x="{LEFT - 6}" y="{y + 4}" text-anchor="end">'
        f"{html.escape(shown(top * part // 4))}</text>"
        for part in range(5)
        for y in (HEIGHT - HEIGHT * part // 4 + 10,)
    )
    lines = "".join(
        f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{_points(one, top)}"/>'
        for colour, one in zip(COLOURS, curves, strict=False)
    )
    below = HEIGHT + BOTTOM
    labels = (
        f'<text x="{LEFT}" y="{below}">{html.escape(ends[0])}</text>'
        f'<text x="{LEFT + WIDTH}" y="{below}" text-anchor="end">{html.escape(ends[1])}</text>'
    )
    size = f'viewBox="0 0 {LEFT + WIDTH + 10} {below + 10}"'
    return f"<h2>{html.escape(title)}</h2><svg {size}>{marks}{lines}{labels}</svg>"


def _points(curve: Points, top: int) -> str:
    """
    Return the points of a curve, in tenths of a pixel.
    """
    found = []
    for place, value in enumerate(curve):
        x = LEFT * 10 + WIDTH * 10 * place // max(1, len(curve) - 1)
        y = (HEIGHT + 10) * 10 - int(value * HEIGHT * 10 // top)
        found.append(f"{x // 10}.{x % 10},{y // 10}.{y % 10}")
    return " ".join(found)

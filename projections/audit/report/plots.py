"""
Plots as SVG texts: areas over time, and bars. No scripts, no fonts, nothing from outside.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from fractions import Fraction

from projections.audit.escaping import plain
from projections.audit.report.series import Axis
from projections.audit.times import moment

WIDTH, HEIGHT = 860, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 34
BAR_HEIGHT, BAR_GAP, NAME_WIDTH = 18, 6, 150
# Okabe and Ito's colours: told apart also by people who see few colours.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#f0e442", "#777777")
TICKS = 4
# Below it minutes alone would stand several times on the axis.
SHORT_US = 600_000_000


def text_of(value: object) -> str:
    """
    Return a text as it may stand in the page: on one line, and nothing of it is markup.
    """
    return html.escape(plain(str(value)))


def colour(index: int) -> str:
    """
    Return the colour of the series of a number.
    """
    return COLOURS[min(index, len(COLOURS) - 1)]


def nice_top(value: Fraction) -> Fraction:
    """
    Return the least of 1, 2, 2.5, 5 times a power of ten that isn't below a value; 1 for nothing.
    """
    if value <= 0:
        return Fraction(1)
    power = Fraction(1)
    while power > value:
        power /= 10
    while power * 10 < value:
        power *= 10
    return next(power * f for f in (1, 2, Fraction(5, 2), 5, 10) if power * f >= value)


def number(value: Fraction) -> str:
    """
    Return a number with as many decimals as it needs, three at most.
    """
    thousandths = round(value * 1000)
    sign = "-" if thousandths < 0 else ""
    whole, rest = divmod(abs(thousandths), 1000)
    return f"{sign}{whole:,}" + (f".{rest:03d}".rstrip("0") if rest else "")


def _place(share: Fraction, length: int) -> str:
    tenths = round(share * length * 10)
    return f"{tenths // 10}.{tenths % 10}"


def areas(
    axis: Axis,
    series: Sequence[tuple[str, list[Fraction]]],
    *,
    label: str,
    unit: str,
    line: tuple[str, list[Fraction]] | None = None,
) -> str:
    """
    Return series stacked upon each other over time.

    Args:
        axis: The time axis.
        series: Name and a level a bucket, the lowest first.
        label: What the plot shows, for those who can't see it.
        unit: Of the levels.
        line: Name and levels of something drawn as a line over them.
    """
    stacked, total = [], [Fraction(0)] * axis.buckets
    for name, levels in series:
        below, total = total, [a + b for a, b in zip(total, levels, strict=True)]
        stacked.append((name, below, total))
    highest = max([*total, *(line[1] if line else ())], default=Fraction(0))
    top = nice_top(highest)
    parts = [_frame(axis, top, unit)]
    for index, (name, below, above) in enumerate(stacked):
        parts.append(_area(below, above, top, colour(index), name))
    if line:
        parts.append(_line(line[1], top, line[0]))
    return _svg(HEIGHT, label, "".join(parts))


def _svg(height: int, label: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{text_of(label)}">'
        f"<title>{text_of(label)}</title>{content}</svg>"
    )


def _frame(axis: Axis, top: Fraction, unit: str) -> str:
    """
    Return the axes with their ticks.
    """
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    parts = []
    steps = _steps(top)
    for tick in range(steps + 1):
        y = TOP + high - high * tick // steps
        shown = number(top * tick / steps)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{LEFT + wide}" y1="{y}" y2="{y}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 6}" y="{y + 4}" text-anchor="end">{shown}</text>'
        )
    length = 19 if axis.end_us - axis.begin_us < SHORT_US else 16
    for tick in range(TICKS + 1):
        x = LEFT + wide * tick // TICKS
        shown = moment(axis.begin_us + (axis.end_us - axis.begin_us) * tick // TICKS)[:length]
        anchor = "start" if tick == 0 else "end" if tick == TICKS else "middle"
        parts.append(
            f'<text class="tick" x="{x}" y="{HEIGHT - 12}" text-anchor="{anchor}">'
            f"{text_of(shown.replace('T', ' '))}</text>"
        )
    parts.append(
        f'<text class="tick" transform="rotate(-90)" x="{-TOP - high // 2}" y="12" '
        f'text-anchor="middle">{text_of(unit)}</text>'
    )
    return "".join(parts)


def _steps(top: Fraction) -> int:
    """
    Return how many steps the scale has: jobs and slots are whole, and so are their steps.
    """
    return next((count for count in (5, 4, 2, 1) if (top / count).denominator == 1), 5)


def _points(levels: list[Fraction], top: Fraction) -> list[tuple[str, str]]:
    """
    Return the corners of steps: each bucket is level from its begin to its end.
    """
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    corners = []
    for bucket, level in enumerate(levels):
        y = _place((1 - level / top) + Fraction(TOP, high), high)
        for edge in (bucket, bucket + 1):
            x = _place(Fraction(edge, len(levels)) + Fraction(LEFT, wide), wide)
            corners.append((x, y))
    return corners


def _area(below: list[Fraction], above: list[Fraction], top: Fraction, fill: str, name: str) -> str:
    outline = [*_points(above, top), *reversed(_points(below, top))]
    path = " ".join(f"{x},{y}" for x, y in outline)
    return f'<polygon points="{path}" fill="{fill}"><title>{text_of(name)}</title></polygon>'


def _line(levels: list[Fraction], top: Fraction, name: str) -> str:
    path = " ".join(f"{x},{y}" for x, y in _points(levels, top))
    return f'<polyline class="line" points="{path}"><title>{text_of(name)}</title></polyline>'


def legend(names: Sequence[str], line: str = "") -> str:
    """
    Return what the colours mean.
    """
    items = [
        f'<li><span style="background:{colour(index)}"></span>{text_of(name)}</li>'
        for index, name in enumerate(names)
    ]
    if line:
        items.append(f'<li><span class="stroke"></span>{text_of(line)}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def bars(rows: Sequence[tuple[str, Fraction, str]], *, label: str) -> str:
    """
    Return horizontal bars: name, value, and the value in words.
    """
    top = nice_top(max((value for _, value, _ in rows), default=Fraction(0)))
    wide = WIDTH - NAME_WIDTH - 150
    parts = []
    for index, (name, value, words) in enumerate(rows):
        y = index * (BAR_HEIGHT + BAR_GAP)
        length = _place(value / top, wide)
        shown = name if len(name) <= 20 else name[:19] + "\u2026"
        parts.append(
            f'<text class="name" x="{NAME_WIDTH - 8}" y="{y + 13}" text-anchor="end">'
            f"{text_of(shown)}"
            f"<title>{text_of(name)}</title></text>"
            f'<rect x="{NAME_WIDTH}" y="{y}" width="{length}" height="{BAR_HEIGHT}" '
            f'fill="{colour(0)}">'
            f"<title>{text_of(name)}: {text_of(words)}</title></rect>"
            f'<text class="tick" x="{NAME_WIDTH + 6 + round(value / top * wide)}" y="{y + 13}">'
            f"{text_of(words)}</text>"
        )
    return _svg(max(1, len(rows)) * (BAR_HEIGHT + BAR_GAP), label, "".join(parts))

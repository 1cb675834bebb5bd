"""
The page: one HTML text that says everything in words and numbers, and shows it in plots.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from domain.units import show_duration_rounded
from projections.audit.report.figures import USERS_SHOWN, Report
from projections.audit.report.plots import areas, bars, legend, number, text_of
from projections.audit.times import moment
from projections.figures import SECOND_US, Figures, Group, shown

HOUR_US = 3600 * SECOND_US
# More series than colours can't be told apart: the rest is summed.
SERIES_MAX = 7
REST = "all others"
USERS_NOTE = f'<p class="pale">At most {USERS_SHOWN} users: those with the most slot time.</p>'

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --pale: #5b6675; --page: #fff; --rule: #d8dde4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --pale: #9aa5b4; --page: #14181e; --rule: #333b46; }
}
body { margin: 0 auto; max-width: 60rem; padding: 1rem 1.25rem 4rem; background: var(--page);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .3rem; }
p, li { max-width: 46rem; } .pale { color: var(--pale); }
svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--pale); } svg .name { fill: var(--ink); }
svg .grid { stroke: var(--rule); } svg .line { fill: none; stroke: var(--ink); stroke-width: 1.5; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: 0;
  margin: .3rem 0; font-size: .85rem; }
.legend span { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }
.legend .stroke { height: 0; border-top: 2px solid var(--ink); vertical-align: middle; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin-top: .6rem; }
th, td { text-align: right; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--rule); }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
td { font-variant-numeric: tabular-nums; }
"""


def page(report: Report) -> str:
    """
    Return the page of a report. It loads nothing, runs nothing, and is the same for the same log.
    """
    title = f"Cluster {report.cluster}" if report.cluster else "Cluster"
    sections = [
        _head(report, title),
        _overall(report),
        _utilisation(report),
        _lengths(report),
        _reasons(report),
        _groups("Waits by queue", report.queues, "queue"),
        _groups("Waits by user", report.users, "user", USERS_NOTE),
        *_projects(report),
        _preemptions(report),
        _ends(report),
        _outages(report),
        _refusals(report),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{text_of(title)}: audit report</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def _head(report: Report, title: str) -> str:
    axis = report.axis
    return (
        f'<h1>{text_of(title)}</h1>\n<p class="pale">Audit report on log {text_of(report.log_id)}, '
        f"positions 1 to {report.position:,}, {text_of(moment(axis.begin_us))} to "
        f"{text_of(moment(axis.end_us))} (UTC).</p>"
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f'<th scope="col">{text_of(one)}</th>' for one in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{text_of(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _lasted(figure: Fraction | int | None) -> str:
    return "-" if figure is None else show_duration_rounded(int(figure))


def _percent(share: Fraction | None) -> str:
    return "-" if share is None else shown(share * 100, 1) + " %"


def _slowdown(figures: Figures) -> str:
    mean = figures.mean_bounded_slowdown
    return "-" if mean is None else shown(mean, 2)


def _overall(report: Report) -> str:
    figures = report.overall
    rows = [
        ("jobs submitted", f"{sum(report.counts.values()):,}"),
        *((f"now {state}", f"{count:,}") for state, count in report.counts.items()),
        ("jobs that ran and ended", f"{figures.job_count:,}"),
        ("mean wait", _lasted(figures.mean_wait_us)),
        ("mean bounded slowdown (bound 10s)", _slowdown(figures)),
        ("utilisation over the makespan", _percent(figures.utilisation)),
        ("makespan", _lasted(figures.makespan_us)),
        ("slots", f"{figures.slots:,}"),
    ]
    return "<h2>At a glance</h2>\n" + _table(("figure", "value"), rows)


def _utilisation(report: Report) -> str:
    plot = areas(
        report.axis,
        [("slots used", report.used)],
        label="Slots used and offered over time",
        unit="slots",
        line=("slots offered", report.offered),
    )
    return f"<h2>Utilisation</h2>\n{legend(['slots used'], 'slots offered')}{plot}"


def largest(
    series: dict[str, list[Fraction]], keep: int = SERIES_MAX
) -> list[tuple[str, list[Fraction]]]:
    """
    Return the series with the largest sums, and the sum of the rest as one more.
    """
    ordered = sorted(series.items(), key=lambda item: (-sum(item[1]), item[0]))
    if len(ordered) > keep:
        rest = [
            sum(column, Fraction(0))
            for column in zip(*(one for _, one in ordered[keep:]), strict=True)
        ]
        ordered = [*ordered[:keep], (REST, rest)]
    return [one for one in ordered if any(one[1])]


def _stack(
    report: Report, title: str, series: dict[str, list[Fraction]], empty: str, unit: str
) -> str:
    chosen = largest(series)
    if not chosen:
        return f"<h2>{title}</h2>\n<p>{empty}</p>"
    plot = areas(report.axis, chosen, label=f"{title} over time", unit=unit)
    return f"<h2>{title}</h2>\n{legend([name for name, _ in chosen])}{plot}"


def _lengths(report: Report) -> str:
    return _stack(report, "Queue lengths", report.lengths, "No job ever waited.", "waiting jobs")


def _reasons(report: Report) -> str:
    named = {report.texts.get(code) or code: levels for code, levels in report.reasons.items()}
    return _stack(report, "Why jobs waited", named, "No job ever waited.", "waiting jobs")


def _groups(title: str, groups: tuple[Group, ...], kind: str, note: str = "") -> str:
    if not groups:
        return f"<h2>{title}</h2>\n<p>No job has run and ended yet.</p>"
    rows = [
        (
            one.name,
            one.figures.mean_wait_us or Fraction(0),
            _lasted(one.figures.mean_wait_us),
        )
        for one in groups
    ]
    table = _table(
        (kind, "jobs", "mean wait", "longest wait", "mean bounded slowdown", "slot hours"),
        [
            (
                one.name,
                f"{one.figures.job_count:,}",
                _lasted(one.figures.mean_wait_us),
                _lasted(one.longest_wait_us),
                _slowdown(one.figures),
                number(Fraction(one.figures.used_slot_us, HOUR_US)),
            )
            for one in groups
        ],
    )
    return f"<h2>{title}</h2>\n{note}{bars(rows, label=f'Mean wait by {kind}')}{table}"


def _projects(report: Report) -> list[str]:
    """
    Return the waits by project, nothing where nobody names one.
    """
    named = tuple(one for one in report.projects if one.name)
    return [_groups("Waits by project", named, "project")] if named else []


def _ends(report: Report) -> str:
    """
    Return how jobs ended that didn't end well, most first.
    """
    if not report.ends:
        return "<h2>Why jobs ended</h2>\n<p>Every job that ended did so well.</p>"
    rows = [(words, f"{count:,}") for words, count in report.ends.items()]
    return "<h2>Why jobs ended</h2>\n" + _table(("jobs that didn't end well", "count"), rows)


def _preemptions(report: Report) -> str:
    words = f"The scheduler suspended jobs {report.preemptions:,} times."
    if not report.stopped:
        return f"<h2>Preemptions</h2>\n<p>{words}</p>"
    return _stack(report, "Suspended jobs", report.stopped, "", "jobs") + f"<p>{words}</p>"


def _outages(report: Report) -> str:
    if not report.outages:
        return "<h2>Hosts out of service</h2>\n<p>None was.</p>"
    rows = [
        (one["host"], one["status"], one["why"], one["times"], _lasted(one["total_us"]))
        for one in report.outages
    ]
    return "<h2>Hosts out of service</h2>\n" + _table(
        ("host", "status", "why", "times", "for how long"), rows
    )


def _refusals(report: Report) -> str:
    if not report.refusals:
        return "<h2>Refused, denied, ignored</h2>\n<p>Nothing was.</p>"
    rows = [(kind, f"{count:,}") for kind, count in report.refusals.items()]
    return "<h2>Refused, denied, ignored</h2>\n" + _table(("kind", "count"), rows)

"""
Accounting: waits, slowdown, utilisation and makespan of the jobs in a log, by queue, user, project.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tools.cli.audit_asking import fresh_option, from_option, time_of, to_option
from tools.cli.options import dir_option, json_option
from tools.cli.output import say, say_json, table

if TYPE_CHECKING:
    from projections.audit.accounting import Accounts
    from projections.figures import Figures, Group

KINDS = ("queue", "user", "project")
HOUR_US = 3_600_000_000


@click.command(
    "figures",
    epilog="""
\b
Examples:
  xce audit figures
  xce audit figures --by user --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z
  xce audit figures --dir run1 --by project --json     of a simulation that was kept in run1
Of jobs that ran and ended, by their end. wait = dispatch - submit; bounded slowdown =
max(1, (wait + run) / max(run, 10 s)); utilisation = slot time used / slots of all hosts in the
makespan of the group; makespan = last end - first submission.
""",
)
@click.option("--by", "kind", type=click.Choice(KINDS), help="Only of these groups.")
@from_option
@to_option
@fresh_option
@dir_option
@json_option
def figures(
    directory: Path,
    kind: str | None,
    from_text: str | None,
    to_text: str | None,
    *,
    stale: bool,
    as_json: bool,
) -> None:
    """
    Sum up waits, slowdown, utilisation and makespan, by queue, user and project.
    """
    from projections.audit.accounting import figures_of
    from tools.cli.audit import asked

    with asked(directory, fresh=not stale) as reading:
        found = figures_of(
            reading,
            from_us=time_of(reading, from_text, "from"),
            to_us=time_of(reading, to_text, "to"),
        )
        position = reading.position()
    kinds = KINDS if kind is None else (kind,)
    if as_json:
        overall = {**plain(found.overall), "longest_wait_us": _longest(found)}
        say_json({"position": position, "all": overall, **_by_kind(found, kinds)})
    else:
        _show(found, kinds, position)


def _groups(found: Accounts, kind: str) -> tuple[Group, ...]:
    return {"queue": found.queues, "user": found.users, "project": found.projects}[kind]


def _longest(found: Accounts) -> int | None:
    """
    Return the longest wait of all jobs, each of which is in one queue; None where there is none.
    """
    return max((one.longest_wait_us for one in found.queues), default=None)


def _by_kind(found: Accounts, kinds: tuple[str, ...]) -> dict[str, object]:
    return {
        f"{kind}s": [
            {kind: one.name, **plain(one.figures), "longest_wait_us": one.longest_wait_us}
            for one in _groups(found, kind)
        ]
        for kind in kinds
    }


def plain(one: Figures) -> dict[str, object]:
    """
    Return figures as `xce simulate` prints them, and the slot time they took.
    """
    from tools.cli.simulate import figures_row

    return {**figures_row(one), "used_slot_us": one.used_slot_us}


def _show(found: Accounts, kinds: tuple[str, ...], position: int) -> None:
    heads = "GROUP JOBS WAIT_S LONGEST_S SLOWDOWN UTIL SLOT_HOURS MAKESPAN_S"
    rows = [_row("all", found.overall, _longest(found))]
    for kind in kinds:
        rows += [
            _row(f"{kind} {one.name or '-'}", one.figures, one.longest_wait_us)
            for one in _groups(found, kind)
        ]
    table(heads.split(), rows, numbers=heads.partition(" ")[2])
    say(f"As of position {position} of the log.")


def _row(name: str, one: Figures, longest_wait_us: int | None) -> tuple[object, ...]:
    from fractions import Fraction

    from projections.figures import SECOND_US, shown

    def told(figure: Fraction | int | None, unit: int, decimals: int) -> str | None:
        return None if figure is None else shown(Fraction(figure) / unit, decimals)

    return (
        name,
        one.job_count,
        told(one.mean_wait_us, SECOND_US, 1),
        told(longest_wait_us, SECOND_US, 1),
        told(one.mean_bounded_slowdown, 1, 2),
        told(one.utilisation, 1, 4),
        told(one.used_slot_us, HOUR_US, 2),
        told(one.makespan_us, SECOND_US, 1),
    )

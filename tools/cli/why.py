"""
Say why a job waits or waited, on one screen: the verdict, what limits it with amounts, the nearest
host, its place in the order, what ran instead, and since when.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from domain.errors import Refused
from tools.cli.audit_asking import answered_by_scheduler, now_us_of
from tools.cli.options import dir_option, json_option
from tools.cli.output import say, say_json, show_duration, table

if TYPE_CHECKING:
    from projections.audit.reading import Reading


@click.command(epilog="""
\b
Examples:
  xce why 12
  xce why 12 --at 2026-11-29T03:10:00Z     as it was then; a position of the log does too
  xce why 12 --ahead             who is taken before it, and who holds what meanwhile
  xce why 12 --hosts             every host by name, with what it had available
  xce why 12 --history           all reasons over time, and how long each lasted
  xce why 12 --trace             how it was decided: every limit, plan and host that was tried
  xce why 12 --json | jq .satisfiable
It is told from the log, also with the scheduler down and when the job ended long ago. The first
question about a long log takes it in and leaves snapshots beside it, about half a minute a million
events; then each takes about a second. Next: xce history 12 tells how it came here, xce hosts shows
what the hosts have.
""")
@click.argument("job_id", metavar="JOB")
@click.option(
    "--at", "at_text", metavar="TIME|POSITION", help="At that moment, not at the log's end."
)
@click.option(
    "--history", "as_history", is_flag=True, help="All reasons over time, and how long each lasted."
)
@click.option("--ahead", "with_ahead", is_flag=True, help="Which jobs come before it.")
@click.option("--hosts", "with_hosts", is_flag=True, help="What every host was short of.")
@click.option("--trace", "as_trace", is_flag=True, help="How it was decided, step by step.")
@click.option(
    "--level", type=click.Choice(["summary", "full"]), default=None,
    help="Of the trace: outcomes and counts, or everything.  [default: full]",
)
@click.option(
    "--lines", "lines_max", metavar="N", type=click.IntRange(1, 1_000_000), default=None,
    help="The most lines of a trace.  [default: 1000]",
)
@dir_option
@json_option
def why(  # noqa: PLR0913 - one parameter an option
    directory: Path,
    job_id: str,
    at_text: str | None,
    *,
    as_history: bool,
    with_ahead: bool,
    with_hosts: bool,
    as_trace: bool,
    level: str | None,
    lines_max: int | None,
    as_json: bool,
) -> None:
    """
    Say why a job waits or waited, and whether it can ever start; or what became of it.
    """
    if as_trace:
        _check_alone(is_alone=not (as_history or with_ahead or with_hosts))
        _tell_trace(directory, job_id, at_text, level, lines_max, as_json=as_json)
        return
    if level is not None or lines_max is not None:
        name = "level" if level is not None else "lines"
        raise Refused(name, "must be given with --trace", level or str(lines_max))
    if as_history and (at_text is not None or with_ahead or with_hosts):
        raise Refused(
            "history", "must not be given with --at, --ahead or --hosts", None,
            "It tells the whole wait.",
        )
    needs_log = as_history or with_ahead or at_text is not None

    def answer() -> None:
        from tools.cli.why_live import tell

        tell(directory, job_id, all_hosts=with_hosts, as_json=as_json)

    only_log = "--at, --history and --ahead" if needs_log else ""
    if answered_by_scheduler(directory, answer, only_log=only_log):
        return
    if as_history:
        _tell_intervals(directory, job_id, as_json=as_json)
    else:
        _tell_moment(
            directory, job_id, at_text,
            with_ahead=with_ahead, with_hosts=with_hosts, as_json=as_json,
        )


def _check_alone(*, is_alone: bool) -> None:
    if not is_alone:
        raise Refused(
            "trace", "must not be given with --history, --ahead or --hosts", None,
            "It tells one decision.",
        )  # fmt: skip


def _tell_trace(
    directory: Path, job_id: str, at_text: str | None, level: str | None, lines_max: int | None,
    *, as_json: bool,
) -> None:  # fmt: skip
    from projections.scheduling.trace import LINES_MAX
    from tools.cli.why_trace import tell_live_trace, tell_trace

    told, lines = level or "full", lines_max or LINES_MAX

    def answer() -> None:
        tell_live_trace(directory, job_id, level=told, lines_max=lines, as_json=as_json)

    only_log = "" if at_text is None else "--at"
    if not answered_by_scheduler(directory, answer, only_log=only_log, may_be_far=True):
        tell_trace(directory, job_id, at_text, level=told, lines_max=lines, as_json=as_json)


def _tell_intervals(directory: Path, job_id: str, *, as_json: bool) -> None:
    from tools.cli.audit import asked

    with asked(directory) as reading:
        _show_intervals(reading, job_id, as_json=as_json)


def _tell_moment(
    directory: Path, job_id: str, at_text: str | None,
    *, with_ahead: bool, with_hosts: bool, as_json: bool,
) -> None:  # fmt: skip
    from tools.cli.why_recorded import hosts_of, moment_of
    from tools.cli.why_screen import show, show_ahead, show_holders, show_hosts

    with moment_of(directory, job_id, at_text, with_state=with_ahead) as moment:
        short = hosts_of(moment) if with_hosts else []
        ahead, holders = (moment.ahead(), moment.holders()) if with_ahead else ([], [])
        if as_json:
            more: dict[str, object] = {"hosts": short} if with_hosts else {}
            if with_ahead:
                more["ahead"] = [asdict(one) for one in ahead]
                more["holders"] = [asdict(one) for one in holders]
            say_json({**moment.plain(), **more})
            return
        show(moment, is_now=at_text is None)
        show_hosts(short)
        if with_ahead:
            show_ahead(ahead)
            show_holders(holders)


def _show_intervals(reading: Reading, job_id: str, *, as_json: bool) -> None:
    """
    Show all reasons over time, and how long each lasted.
    """
    from projections.audit.pending import reason_history
    from projections.audit.times import moment

    found = reason_history(reading, job_id)
    now_us = now_us_of(reading)
    total_us = sum((now_us if one.to_us is None else one.to_us) - one.from_us for one in found)
    if as_json:
        intervals = [asdict(one) for one in found]
        say_json(
            {
                "job_id": job_id,
                "position": reading.position(),
                "now_us": now_us,
                "waited_us": total_us,
                "intervals": intervals,
            }
        )
        return
    rows = [
        (
            moment(one.from_us),
            show_duration((now_us if one.to_us is None else one.to_us) - one.from_us),
            one.code,
            ("never: " if one.never else "") + one.reasons,
        )
        for one in found
    ]
    table(("SINCE", "LASTED", "CODE", "REASONS"), rows, numbers="LASTED")
    say(f"Waited {show_duration(total_us)} in all, as of position {reading.position()}.")

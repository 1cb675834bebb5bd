"""
Why a job waits or waited, from the tables alone: on one screen, or over time.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tools.cli.audit_asking import fresh_option, position_of
from tools.cli.options import dir_option, json_option
from tools.cli.output import say, say_json, table

if TYPE_CHECKING:
    from projections.audit.pending import Why
    from projections.audit.reading import Reading, Row


@click.command(
    "why",
    epilog="""
\b
Examples:
  xce audit why 4711
  xce audit why 4711 --at 2026-11-29T03:10:00Z
  xce audit why 4711 --at 15200 --hosts
  xce audit why 4711 --history
""",
)
@click.argument("job_id", metavar="JOB")
@click.option(
    "--at", "at_text", metavar="TIME|POSITION", help="At that moment, not at the log's end."
)
@click.option("--history", "as_history", is_flag=True, help="All reasons over time, with seconds.")
@click.option("--hosts", is_flag=True, help="What each host was short of.")
@fresh_option
@dir_option
@json_option
def why(
    directory: Path,
    job_id: str,
    at_text: str | None,
    *,
    as_history: bool,
    hosts: bool,
    stale: bool,
    as_json: bool,
) -> None:
    """
    Say why a job waits, or waited at some moment, also when it ended long ago.
    """
    from projections.audit.pending import hosts_short, why_at
    from tools.cli.audit import asked

    with asked(directory, fresh=not stale) as reading:
        if as_history:
            show_intervals(reading, job_id, as_json=as_json)
            return
        told = why_at(reading, job_id, position_of(reading, at_text, "at"))
        short = hosts_short(reading, told) if hosts else []
    if as_json:
        say_json(told.plain() | ({"hosts": short} if hosts else {}))
        return
    show_why(told)
    show_hosts(short)


def show_hosts(short: list[Row]) -> None:
    """
    Show what each host was short of.
    """
    if short:
        heads = ("HOST", "REASON", "RESOURCE", "ASKED", "AVAILABLE")
        table(
            heads,
            [
                (
                    row["host"],
                    row["text"],
                    row["resource"],
                    _amount(row, "requested_milli"),
                    _amount(row, "available_milli"),
                )
                for row in short
            ],
        )


def _amount(row: dict[str, Any], which: str) -> str | None:
    from projections.audit.wording import amount_words

    return amount_words(row["resource"], row[which]) if row["resource"] else None


VERDICTS = {
    "waits": "waits: it can start, but not now",
    "never": "can never start on the cluster as it was then",
    "held": "is held",
    "runs": "doesn't wait: it has its hosts",
    "ended": "doesn't wait: it has ended",
    "unknown": "doesn't wait: contact with its host is lost",
}


def show_why(told: Why) -> None:
    """
    Show one moment on one screen.
    """
    from projections.audit.times import moment

    say(f"Job {told.job_id} {VERDICTS[told.verdict]} ({told.state}).")
    if told.code:
        say(f"Main reason  {told.code}: {told.reasons}")
        for one in told.shortages:
            say(f"             {one.words()}")
        if told.blocker:
            say(f"Held back by job {told.blocker}")
        before = "none" if told.ahead == 0 else f"{told.ahead}"
        say(
            f"In its queue {before} of the waiting jobs were submitted before it; which are taken "
            f"before it: xce why {told.job_id} --ahead"
        )
    if told.dispatched_instead:
        say(
            f"Ran instead  {told.dispatched_instead} jobs since it was submitted, "
            f"the latest: {', '.join(told.instead)}"
        )
    say(f"Since        {moment(told.since_us)} (position {told.since_position})")
    say(f"As of        {moment(told.time_us)} (position {told.position})")


def show_intervals(reading: Reading, job_id: str, *, as_json: bool) -> None:
    """
    Show all reasons over time, with their seconds.
    """
    from dataclasses import asdict

    from projections.audit.pending import reason_history
    from projections.audit.times import moment, seconds

    found = reason_history(reading, job_id)
    now_us = reading.last_time_us()
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
            seconds((now_us if one.to_us is None else one.to_us) - one.from_us),
            one.code,
            ("never: " if one.never else "") + one.reasons,
        )
        for one in found
    ]
    table(("SINCE", "SECONDS", "CODE", "REASONS"), rows, numbers="SECONDS")
    say(f"Waited {seconds(total_us)} s in all, as of position {reading.position()}.")

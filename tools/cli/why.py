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
from tools.cli.options import dir_option, json_option
from tools.cli.output import counted, note, say, say_json, show_amount, table

if TYPE_CHECKING:
    from replay.why import BudgetUse, Holder, Waiting
    from tools.cli.why_recorded import Moment

ROWS_SHOWN = 20
HOSTS_SHOWN = 4
# Taking in so many events takes some seconds; a person who asks of now shouldn't wait for them.
FAR_EVENTS = 100_000


@click.command(epilog="""
\b
Examples:
  xce why 12
  xce why 12 --at 2026-11-29T03:10:00Z     as it was then; a position of the log does too
  xce why 12 --ahead             who is taken before it, and who holds what meanwhile
  xce why 12 --hosts             every host by name, with what it had available
  xce why 12 --history           all reasons over time, with seconds that sum to the wait
  xce why 12 --json | jq .satisfiable
It is told from the log, also with the scheduler down and when the job ended long ago. Next:
xce history 12 tells how it came here, xce hosts shows what the hosts have.
""")
@click.argument("job_id", metavar="JOB")
@click.option(
    "--at", "at_text", metavar="TIME|POSITION", help="At that moment, not at the log's end."
)
@click.option("--history", "as_history", is_flag=True, help="All reasons over time, with seconds.")
@click.option("--ahead", "with_ahead", is_flag=True, help="Which jobs come before it.")
@click.option("--hosts", "with_hosts", is_flag=True, help="What every host was short of.")
@dir_option
@json_option
def why(
    directory: Path,
    job_id: str,
    at_text: str | None,
    *,
    as_history: bool,
    with_ahead: bool,
    with_hosts: bool,
    as_json: bool,
) -> None:
    """
    Say why a job waits or waited, and whether it can ever start; or what became of it.
    """
    if as_history and (at_text is not None or with_ahead or with_hosts):
        raise Refused(
            "history", "must not be given with --at, --ahead or --hosts", None,
            "It tells the whole wait.",
        )
    needs_log = as_history or with_ahead or at_text is not None
    if _answered_by_scheduler(
        directory, job_id, needs_log=needs_log, with_hosts=with_hosts, as_json=as_json
    ):
        return
    if as_history:
        _tell_intervals(directory, job_id, as_json=as_json)
    else:
        _tell_moment(
            directory, job_id, at_text,
            with_ahead=with_ahead, with_hosts=with_hosts, as_json=as_json,
        )


def _answered_by_scheduler(
    directory: Path, job_id: str, *, needs_log: bool, with_hosts: bool, as_json: bool
) -> bool:
    """
    Have the scheduler answer where the log may not be read, or would take long to be taken in.

    Raises:
        Refused: Only the log has the answer, and it may not be read.
    """
    from tools.cli.client import NoScheduler
    from tools.cli.why_live import tell
    from tools.cli.why_recorded import events_behind, may_read

    is_readable = may_read(directory)
    if needs_log and not is_readable and (directory / "log").exists():
        raise Refused(
            "log", "must be readable to you for --at, --history and --ahead", str(directory),
            "Ask the owner of the cluster, or leave them out.",
        )
    if is_readable and (needs_log or events_behind(directory) <= FAR_EVENTS):
        return False
    try:
        tell(directory, job_id, all_hosts=with_hosts, as_json=as_json)
    except NoScheduler:
        if not is_readable:
            raise
        return False
    if is_readable:
        note(
            "xce: the audit tables are far behind, so this is from the scheduler alone. Bring them "
            "up: xce audit catch-up."
        )
    return True


def _tell_intervals(directory: Path, job_id: str, *, as_json: bool) -> None:
    from tools.cli.audit import asked
    from tools.cli.audit_why import show_intervals

    with asked(directory) as reading:
        show_intervals(reading, job_id, as_json=as_json)


def _tell_moment(
    directory: Path, job_id: str, at_text: str | None,
    *, with_ahead: bool, with_hosts: bool, as_json: bool,
) -> None:  # fmt: skip
    from tools.cli.audit_why import show_hosts
    from tools.cli.why_recorded import hosts_of, moment_of

    with moment_of(directory, job_id, at_text) as moment:
        short = hosts_of(moment) if with_hosts else []
        ahead, holders = (moment.ahead(), moment.holders()) if with_ahead else ([], [])
        if as_json:
            more: dict[str, object] = {"hosts": short} if with_hosts else {}
            if with_ahead:
                more["ahead"] = [asdict(one) for one in ahead]
                more["holders"] = [asdict(one) for one in holders]
            say_json({**moment.plain(), **more})
            return
        _show(moment, is_now=at_text is None)
        show_hosts(short)
        if with_ahead:
            _show_ahead(ahead)
            _show_holders(holders)


# ------------------------------------------------------------------------------------- the screen


def _show(moment: Moment, *, is_now: bool) -> None:
    from projections.audit.times import moment as shown

    say(_headline(moment, is_now=is_now))
    if moment.code:
        _show_reasons(moment)
        _show_place(moment)
    elif moment.waits:
        from projections.audit.times import seconds

        say(f"Waited       {seconds(moment.waited_us())} s, at last: {moment.waits[-1].reasons}")
    told = moment.told
    if told.dispatched_instead:
        named = ", ".join(told.instead)
        say(
            f"Ran instead  {counted(told.dispatched_instead, 'job')} while it waited, the latest: "
            f"{named}"
        )
    position, time_us = moment.since
    say(f"Since        {shown(time_us)} (position {position})")
    say(f"As of        {shown(told.time_us)} (position {told.position})")


def _headline(moment: Moment, *, is_now: bool) -> str:
    told = moment.told
    start = f"Job {told.job_id} ({told.state})"
    if told.verdict == "held":
        return f"{start} is held: it doesn't start until it is resumed."
    if not moment.code:
        return f"{start} doesn't wait: {moment.state_says['verdict']}"
    if moment.state_says["never"]:
        return f"{start} can never start on the cluster as it {'is' if is_now else 'was then'}."
    return f"{start} waits: it can start, but not {'now' if is_now else 'then'}."


def _show_reasons(moment: Moment) -> None:
    say(f"Main reason  {moment.code}: {moment.summary}")
    for shortage in () if moment.queue_reason else moment.told.shortages:
        say(f"             {shortage.words()}")
    for budget in moment.limits():
        say(f"Limit        {_limit_words(budget)}")
    request = moment.request()
    if request is not None:
        least, most = request.tasks_min, request.tasks_max
        tasks = counted(least, "task") if least == most else f"{least:,} to {counted(most, 'task')}"
        say(f"It asks for  {', '.join(filter(None, (tasks, request.resreq)))}")


def _limit_words(budget: BudgetUse) -> str:
    owner = f" for {budget.owner}" if budget.owner else ""
    words = (
        f"{budget.limit}{owner}: {show_amount(budget.resource, budget.used_milli)} of "
        f"{show_amount(budget.resource, budget.most_milli)} {budget.resource} in use"
    )
    if budget.missing_milli is None or budget.asked_milli is None:
        return words
    return (
        f"{words}, {show_amount(budget.resource, budget.asked_milli)} asked for, short of "
        f"{show_amount(budget.resource, budget.missing_milli)}"
    )


def _show_place(moment: Moment) -> None:
    order = moment.order
    if moment.told.blocker:
        say(f"Held back    by job {moment.told.blocker}: see xce why {moment.told.blocker}")
    if order is None:
        return
    if order.place is None:
        say("Its place    none: it isn't tried as long as its queue takes no jobs")
        return
    nearest = ", ".join(one.job_id for one in order.ahead[-1:-4:-1])
    before = f", just after {nearest}" if nearest else ""
    say(f"Its place    {order.place:,} of {order.waiting_count:,} that wait{before}")


def _show_ahead(ahead: list[Waiting]) -> None:
    from projections.audit.times import moment as shown

    if not ahead:
        say("No waiting job is taken before it.")
        return
    say(f"{counted(len(ahead), 'job')} taken before it:")
    table(
        "PLACE JOB USER QUEUE QUEUE_PRIORITY PRIORITY TASKS REQUEST SINCE".split(),
        [
            (
                place, one.job_id, one.user, one.queue, one.queue_priority, one.job_priority,
                one.tasks_min, one.resreq, shown(one.queue_us),
            )
            for place, one in enumerate(ahead[:ROWS_SHOWN], 1)
        ],
        numbers="PLACE QUEUE_PRIORITY PRIORITY TASKS",
    )  # fmt: skip
    _say_rest(len(ahead))


def _show_holders(holders: list[Holder]) -> None:
    from projections.audit.times import moment as shown

    if not holders:
        say("No job has hosts.")
        return
    say(f"{counted(len(holders), 'job')} with hosts meanwhile:")
    table(
        "JOB USER QUEUE STATE TASKS HOSTS EXPECTED_END".split(),
        [
            (
                one.job_id, one.user, one.queue, one.state, one.tasks, _hosts(one.hosts),
                "unknown" if one.expected_end_us is None else shown(one.expected_end_us),
            )
            for one in holders[:ROWS_SHOWN]
        ],
        numbers="TASKS",
    )  # fmt: skip
    _say_rest(len(holders))


def _hosts(names: tuple[str, ...]) -> str:
    more, shown = len(names) - HOSTS_SHOWN, " ".join(names[:HOSTS_SHOWN])
    return f"{shown} and {counted(more, 'more host')}" if more > 0 else shown


def _say_rest(count: int) -> None:
    if count > ROWS_SHOWN:
        say(f"and {count - ROWS_SHOWN:,} more; --json names them all")

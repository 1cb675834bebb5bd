"""
The screen of xce why: verdict, main reason with amounts, place in the order, what ran instead.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from domain.amounts import SLOTS
from tools.cli.output import (
    US,
    counted,
    say,
    say_hanging,
    show_amount,
    show_duration,
    show_recent,
    table,
)
from tools.cli.why_help import HELPS_SHOWN
from tools.cli.why_live import promise_lines
from tools.cli.why_slots import OF_SPAN

if TYPE_CHECKING:
    from projections.audit.reading import Row
    from replay.placed import Placement
    from replay.why import BudgetUse, Holder, Waiting
    from tools.cli.why_recorded import Moment
    from tools.cli.why_slots import SlotsWanted

LABEL = 13
ROWS_SHOWN = 20
HOSTS_SHOWN = 4


def show(moment: Moment, *, is_now: bool) -> None:
    """
    Show one moment of a job on one screen.
    """
    from projections.audit.times import moment as shown

    _say(_headline(moment, is_now=is_now))
    if moment.code:
        _show_reasons(moment)
        for number, line in enumerate(promise_lines(moment.state_says)):
            _say(f"{'' if number else 'Promises':<13}{line}")
        _show_place(moment)
    elif moment.waits:
        _show_wait(moment)
    if moment.placement is not None:
        _show_placement(moment.placement)
    told = moment.told
    if told.dispatched_instead:
        named = ", ".join(told.instead)
        _say(
            f"Ran instead  {counted(told.dispatched_instead, 'job')} while it waited, the latest: "
            f"{named}"
        )
    position, time_us = moment.since
    _say(f"Since        {shown(time_us)} (position {position})")
    _say(f"As of        {shown(told.time_us)} (position {told.position})")


def _say(line: str) -> None:
    """
    Print a line of the screen: a word or two, and what is said beside it.
    """
    say_hanging(line, LABEL)


def _headline(moment: Moment, *, is_now: bool) -> str:
    told = moment.told
    start = f"Job {told.job_id} ({told.state})"
    if told.verdict == "held":
        return f"{start} is held: it doesn't start until it is resumed."
    if not moment.code:
        return f"{start} doesn't wait: {moment.state_says['verdict']}"
    if moment.state_says["never"] and moment.job is not None and moment.job.forced_on:
        return f"{start} can never start on the hosts that an operator named."
    if moment.state_says["never"]:
        return f"{start} can never start on the cluster as it {'is' if is_now else 'was then'}."
    return f"{start} waits: it can start, but not {'now' if is_now else 'then'}."


def _show_wait(moment: Moment) -> None:
    waited_us = moment.waited_us()
    # What starts at once has only been new: that kept it back from nothing.
    last = f", at last: {moment.waits[-1].reasons}" if waited_us else ""
    _say(f"Waited       {show_duration(waited_us)}{last}")


def _show_reasons(moment: Moment) -> None:
    from projections.audit.pending import with_unit

    slots = moment.slots_wanted()
    _show_request(moment, is_short_told=slots is not None)
    _say(f"Main reason  {moment.code}: {moment.summary}")
    for shortage in () if moment.queue_reason else moment.told.shortages:
        # What the parts of a job were tried with says nothing of slots that is of use.
        is_told = shortage.code in ("HOST_SLOTS", OF_SPAN) and slots is not None
        if shortage.words() != moment.summary and not is_told:
            _say(f"             {shortage.words().removeprefix(f'{moment.summary}; ')}")
    if slots is not None:
        _say(f"             {_slots_words(slots)}")
    for host, resource, milli in moment.freer_by_now():
        told = moment.told
        if slots is None or resource != SLOTS:
            _say(
                f"             by position {told.position} {host} has {with_unit(milli, resource)} "
                f"free: it was tried last at position {told.figures_position}"
            )
    _show_conditions(moment)
    proved_by = moment.state_says["proved_by"]
    if proved_by not in ("", moment.told.job_id):
        _say(f"             as found for job {proved_by}, which asks for the same")
    for budget in moment.limits():
        _say(f"Limit        {_limit_words(budget)}")
    for number, words in enumerate(moment.helps()[:HELPS_SHOWN]):
        _say(f"{'' if number else 'What helps':<13}{words}")


def _show_request(moment: Moment, *, is_short_told: bool) -> None:
    request = moment.request()
    if request is None:
        return
    least, most = request.tasks_min, request.tasks_max
    tasks = counted(least, "task") if least == most else f"{least:,} to {counted(most, 'task')}"
    slots = moment.slots()
    more = f"; all hosts together have {counted(slots, 'slot')}"
    more = more if least > slots and not is_short_told else ""
    _say(f"It asks for  {', '.join(filter(None, (tasks, request.resreq)))}{more}")


def _slots_words(slots: SlotsWanted) -> str:
    """
    Return of a job of several tasks how many slots it is short of, and where those are that are
    free.
    """
    suit = f"{counted(slots.host_count, 'host')} that suit{'s' * (slots.host_count == 1)} it"
    free = f"{slots.free:,} free (of {slots.total:,}) on {suit}"
    words = f"{slots.wanted:,} slots asked for{_tile_words(slots)} {free}"
    if not slots.free:
        return words
    named = ", ".join(f"{count:,} on {host}" for host, count in slots.freest[:HOSTS_SHOWN])
    more = len(slots.freest) - HOSTS_SHOWN
    return f"{words}: {named}" + (f" and some on {counted(more, 'more host')}" if more > 0 else "")


def _tile_words(slots: SlotsWanted) -> str:
    """
    Return on how many hosts a span wants how many slots, with the sign that ends the clause.
    """
    if not slots.tile:
        return ","
    whole, rest = divmod(slots.wanted, slots.tile)
    on_last = f" ({rest:,} on the last)" if rest else ""
    return f", {slots.tile:,} on each of {whole + bool(rest):,} hosts{on_last};"


def _show_conditions(moment: Moment) -> None:
    """
    Show for what its user has it wait: other jobs, and a moment.
    """
    from projections.audit.times import moment as shown

    if moment.job is None:
        return
    spec = moment.job.spec
    if spec.dependency_text:
        _say(f"Waits for    {spec.dependency_text}")
    if spec.begin_us is not None:
        _say(f"Not before   {shown(spec.begin_us)}")


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
        _say(f"Held back    by job {moment.told.blocker}: see xce why {moment.told.blocker}")
    if order is None:
        return
    if order.place is None and moment.job is not None and moment.job.forced_on:
        hosts = _hosts(tuple(each.text() for each in moment.job.forced_on))
        _say(f"Its place    before all others: an operator wants it on {hosts}")
        return
    if order.place is None:
        _say("Its place    none: it isn't tried as long as its queue takes no jobs")
        return
    nearest = ", ".join(one.job_id for one in order.ahead[-1:-4:-1])
    before = f", just after {nearest}" if nearest else ""
    _say(f"Its place    {order.place:,} of {order.waiting_count:,} that wait{before}")


def _show_placement(placed: Placement) -> None:
    hosts = _hosts(tuple(f"{tasks}*{host}" for host, tasks in placed.hosts))
    _say(
        f"Placed       on {hosts} by {placed.allocator}, attempt {placed.attempt} "
        f"(position {placed.position})"
    )
    why = placed.why
    if placed.is_forced and placed.is_same:
        _say("Why there    an operator named these hosts")
        return
    if why is None:
        known = "each part of its requirement found hosts of its own"
        unknown = "not known: the policies of now would decide otherwise (xce replay verify)"
        _say(f"Why there    {known if placed.is_same else unknown}")
        return
    _say(
        f"Why there    {counted(why.considered_count, 'host')} considered, {why.order}; "
        f"{why.with_room_count:,} had room for a task"
    )
    # Those with room are what people wonder about.
    passed = sorted(
        (one for one in why.considered if not one.taken_tasks), key=lambda one: not one.room_tasks
    )
    for one in passed[:HOSTS_SHOWN]:
        room = f"room for {counted(one.room_tasks, 'task')}" if one.room_tasks else one.short_of
        _say(f"             passed over {one.host}: {room}")
    if len(passed) > HOSTS_SHOWN:
        _say(f"             and {counted(len(passed) - HOSTS_SHOWN, 'more host')} before the last")
    if why.next_host:
        _say(f"             the next with room was {why.next_host}")
    for cause in why.unmatched:
        _say(f"             left out {counted(cause.host_count, 'host')}: {cause.text}")


def show_ahead(ahead: list[Waiting]) -> None:
    """
    Show which jobs are taken before it.
    """
    if not ahead:
        say("No waiting job is taken before it.")
        return
    say(f"{counted(len(ahead), 'job')} taken before it:")
    now_us = int(time.time() * US)
    table(
        "PLACE JOB USER QUEUE QUEUE_PRIORITY PRIORITY TASKS REQUEST SINCE".split(),
        [
            (
                place, one.job_id, one.user, one.queue, one.queue_priority, one.job_priority,
                one.tasks_min, one.resreq, show_recent(one.queue_us, now_us),
            )
            for place, one in enumerate(ahead[:ROWS_SHOWN], 1)
        ],
        numbers="PLACE QUEUE_PRIORITY PRIORITY TASKS",
    )  # fmt: skip
    _say_rest(len(ahead))


def show_holders(holders: list[Holder]) -> None:
    """
    Show who has hosts meanwhile.
    """
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


def show_hosts(short: list[Row]) -> None:
    """
    Show what each host was short of.
    """
    if short:
        # Of a job of many tasks only a part was tried there.
        heads = ("HOST", "REASON", "RESOURCE", "ASKED_THERE", "AVAILABLE")
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
    return show_amount(row["resource"], row[which]) if row["resource"] else None

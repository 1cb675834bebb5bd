"""
Why a job waits or waited, from what is recorded: the tables, and the state at that position.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from domain.amounts import SLOTS
from domain.errors import Refused
from domain.ids import job_stream
from domain.job_states import STOPPED
from domain.units import MILLI
from tools.cli.client import Json
from tools.cli.why_help import helps
from tools.cli.why_slots import (
    OF_CHOICE,
    OF_SPAN,
    SlotsWanted,
    free_slots,
    slots_wanted,
    tile_of,
    too_many,
)

if TYPE_CHECKING:
    from projections.audit.pending import Interval, Why
    from projections.audit.reading import Reading, Row
    from projections.scheduling.core import Core
    from projections.scheduling.records import JobRecord
    from replay.at import Ladder
    from replay.placed import Placement
    from replay.why import BudgetUse, Holder, Order, Waiting
    from store.log import EventLog

# What the scheduler itself says of a job when its queue takes none; no decision is recorded then.
OF_THE_QUEUE = {"QUE_INACT": "queue.inactivated", "QUE_WINDOW": ""}


@dataclass(frozen=True)
class Moment:
    """
    Hold one moment of a job's life, as it was recorded.

    Args:
        reading: The tables.
        told: What the tables say.
        log: Where all that comes from.
        ladder: The states of the log.
    """

    reading: Reading
    told: Why
    log: EventLog
    ladder: Ladder

    @cached_property
    def core(self) -> Core:
        """
        Return the state at the moment. It takes time; a job that doesn't wait needs only the one
        in which it was placed.
        """
        return self.ladder.at(self.told.position).core

    @property
    def is_stopped(self) -> bool:
        """
        Say whether the job was suspended then: why, only the state knows.
        """
        return self.told.state in STOPPED

    @property
    def is_waiting(self) -> bool:
        """
        Say whether the job waited then, for whatever.
        """
        return self.told.verdict in ("waits", "never", "held")

    @cached_property
    def job(self) -> JobRecord | None:
        """
        Return the job's record, None when it doesn't wait.
        """
        if not self.is_waiting:
            return None
        return self.core.state.stored.jobs[job_stream(self.told.job_id)]

    @cached_property
    def state_says(self) -> Json:
        """
        Return what the scheduler said at that moment.
        """
        from tools.daemon.promised import no_promise_fields
        from tools.daemon.views import why

        if self.job is not None:
            return why(self.core.state, self.job)
        if self.is_stopped:
            stored = self.core.state.stored.jobs
            return why(self.core.state, stored[job_stream(self.told.job_id)])
        words = {"since_us": self.told.since_us, "never": False, "reasons": [], "blocker": ""}
        return {**words, **no_promise_fields(), "proved_by": "", "verdict": self._end()}

    def _end(self) -> str:
        """
        Return what became of the job, in the words of the scheduler.
        """
        from tools.daemon.views import verdict_words

        told = self.told
        hosts = [host for host, _ in self.placement.hosts] if self.placement is not None else []
        if self.placement is None:
            query = (
                "SELECT hosts FROM attempts WHERE job_id = ? AND dispatch_position <= ? "
                "ORDER BY attempt DESC LIMIT 1"
            )
            found = self.reading.value(query, (told.job_id, told.position))
            hosts = [str(found)] if found else []
        end = self.reading.one(
            "SELECT exit_code, signal, why FROM attempts WHERE job_id = ? AND end_position = ?",
            (told.job_id, told.since_position),
        ) or self.reading.one(
            "SELECT NULL AS exit_code, NULL AS signal, end_reason AS why FROM jobs WHERE "
            "job_id = ?",
            (told.job_id,),
        )
        assert end is not None
        return verdict_words(told.state, hosts, end["exit_code"], end["signal"], end["why"] or "")

    def look(self, *, with_state: bool) -> None:
        """
        Do what takes time.
        """
        if self.is_waiting or self.is_stopped or with_state:
            self.core  # noqa: B018 - it is kept
        else:
            self.placement  # noqa: B018 - it is kept

    @cached_property
    def queue_reason(self) -> str:
        """
        Return the code of the reason when the whole queue waits, else "".
        """
        codes = [str(one["code"]) for one in self.state_says["reasons"]]
        return next((code for code in codes if code in OF_THE_QUEUE), "")

    @property
    def code(self) -> str:
        """
        Return the code of the main reason, "" when the job doesn't wait.
        """
        return self.queue_reason or self.told.code

    @property
    def summary(self) -> str:
        """
        Return all reasons in words.
        """
        if self.queue_reason:
            return str(self.state_says["reasons"][0]["text"])
        return self.told.reasons

    @cached_property
    def since(self) -> tuple[int, int]:
        """
        Return position and time of the event that made it so.
        """
        found = None
        if OF_THE_QUEUE.get(self.queue_reason) and self.job is not None:
            found = self.reading.one(
                "SELECT position, time_us FROM events WHERE stream = ? AND type = ? AND "
                "position <= ? ORDER BY position DESC LIMIT 1",
                (
                    f"queue:{self.job.spec.queue}",
                    OF_THE_QUEUE[self.queue_reason],
                    self.told.position,
                ),
            )
        begun = self.told.since_position, self.told.since_us
        return begun if found is None else max(begun, (found["position"], found["time_us"]))

    @cached_property
    def order(self) -> Order | None:
        """
        Return the job's place in the order, None when it doesn't pend.
        """
        from replay.why import order_of

        if self.job is None or self.told.state != "PEND":
            return None
        return order_of(self.core, self.job)

    def ahead(self) -> list[Waiting]:
        """
        Return the waiting jobs that are taken before it, in order.
        """
        from replay.why import waiting

        order = self.order
        return [waiting(self.core.state, one) for one in (order.ahead if order else ())]

    def holders(self) -> list[Holder]:
        """
        Return the jobs that have hosts meanwhile.
        """
        from replay.why import holders

        return holders(self.core.state)

    @cached_property
    def placement(self) -> Placement | None:
        """
        Return where a job that has hosts, or had them, was placed and why there; None when it
        waits, or never had any, or that part of the log was pruned.
        """
        from domain.errors import NotFound
        from replay.placed import placement_at

        row = self.reading.one(
            "SELECT a.dispatch_position, s.position AS first FROM attempts a JOIN sessions s ON "
            "s.number = a.session WHERE a.job_id = ? AND a.dispatch_position <= ? "
            "ORDER BY a.attempt DESC LIMIT 1",
            (self.told.job_id, self.told.position),
        )
        if row is None or self.is_waiting:
            return None
        try:
            step = list(self.log.read(row["first"] - 1, row["dispatch_position"]))
            return placement_at(self.ladder, step)
        except NotFound:
            return None

    def request(self) -> Waiting | None:
        """
        Return what the job asks for, None when it doesn't wait.
        """
        from replay.why import waiting

        if self.job is None or not self.code:
            return None
        return waiting(self.core.state, self.job)

    def slots(self) -> int:
        """
        Return how many slots all hosts had together.
        """
        return int(self.core.state.capacity.slots.sum())

    def slots_wanted(self) -> SlotsWanted | None:
        """
        Return what a job of several tasks lacks of slots, None when that isn't why it waits.
        """
        request = self.request()
        codes = {one.code for one in self.told.shortages}
        if request is None or self.job is None or request.tasks_min == 1:
            return None
        wanted, state = request.tasks_min, self.core.state
        tile = tile_of(state.effective(self.job).requirement, wanted)
        # A span that wants all of it on one host is told by the host that is nearest to it.
        of_slots = OF_SPAN if tile else "HOST_SLOTS"
        if self.told.code not in (of_slots, *OF_CHOICE) or of_slots not in codes:
            return None
        return slots_wanted(state, self.state_says["reasons"], wanted, tile)

    def helps(self) -> list[str]:
        """
        Return what would help the job; nothing when it doesn't wait, or only time does.
        """
        if self.job is None or not self.code:
            return []
        codes = [self.code, *(str(one["code"]) for one in self.state_says["reasons"])]
        slots, never = self.slots_wanted(), bool(self.state_says["never"])
        found = helps(
            codes, self.told.job_id, self.job.spec.queue, never=never,
            slots=None if slots is None else slots.most_tasks,
            is_of_hosts=slots is not None and slots.is_of_hosts,
        )  # fmt: skip
        if slots is None or self.told.code not in OF_CHOICE or slots.total >= slots.wanted:
            return found
        named = too_many(self.told.job_id, slots)
        return [named, *(words for words in found if not words.startswith("fewer tasks"))]

    def freer_by_now(self) -> list[tuple[str, str, int]]:
        """
        Return host, resource and amount of each shortage whose nearest host has more free at this
        moment than when the job was tried last.
        """
        if self.queue_reason:
            return []
        found: dict[tuple[str, str], int] = {}
        for one in self.told.shortages:
            if one.nearest_host is not None and one.is_of_what_is_free:
                free_milli = self._free_milli(one.nearest_host, one.resource)
                if free_milli > (one.available_milli or 0):
                    found[one.nearest_host, one.resource] = free_milli
        return [(*key, milli) for key, milli in found.items()]

    def _free_milli(self, host: str, resource: str) -> int:
        """
        Return how much of a resource a host has free, 0 for what hosts don't have by themselves.
        """
        state = self.core.state
        number = state.stored.workers[host].number
        if resource == SLOTS:
            return free_slots(state, number) * MILLI
        column = state.capacity.resources.get(resource)
        return 0 if column is None else int(column.available[number])

    def limits(self) -> list[BudgetUse]:
        """
        Return the limits that keep it back, with what is in use.
        """
        from replay.why import budgets_short

        if self.job is None:
            return []
        names = {str(one["detail"]) for one in self.state_says["reasons"]} - {""}
        return budgets_short(self.core.state, self.job, names)

    @cached_property
    def waits(self) -> tuple[Interval, ...]:
        """
        Return what it waited for up to this moment.
        """
        from projections.audit.pending import reason_history

        found = reason_history(self.reading, self.told.job_id)
        return tuple(one for one in found if one.from_position <= self.told.position)

    def waited_us(self) -> int:
        """
        Return how long it had waited.
        """
        now_us, position = self.told.time_us, self.told.position
        ends = [
            now_us if one.to_us is None or (one.to_position or 0) > position else one.to_us
            for one in self.waits
        ]
        return sum(end - one.from_us for end, one in zip(ends, self.waits, strict=True))

    def plain(self) -> Json:
        """
        Return everything of the screen as plain data.
        """
        told, order = self.told.plain(), self.order
        request, last = self.request(), self.waits[-1] if self.waits else None
        kept = "job_id position time_us state satisfiable dispatched_instead instead".split()
        return {
            **{name: told[name] for name in kept},
            "situation": self.told.verdict,
            "verdict": self.state_says.get("verdict", ""),
            "code": self.code,
            "summary": self.summary,
            "never": self.state_says["never"],
            "reasons": self.state_says["reasons"],
            "shortages": [] if self.queue_reason else told["shortages"],
            "figures_position": None if self.queue_reason else self.told.figures_position,
            "freer_by_now": [
                {"host": host, "resource": resource, "available_milli": milli}
                for host, resource, milli in self.freer_by_now()
            ],
            "limits": [
                {**asdict(one), "missing_milli": one.missing_milli} for one in self.limits()
            ],
            "blocker": self.told.blocker,
            "proved_by": self.state_says["proved_by"],
            **{name: self.state_says[name] for name in ("promise", "overtaken_by", "beside")},
            "request": None if request is None else asdict(request),
            "picker": order.picker if order else None,
            "place": order.place if order else None,
            "waiting_count": order.waiting_count if order else None,
            "since_us": self.since[1],
            "since_position": self.since[0],
            "waited_us": self.waited_us(),
            "last_reason": last.reasons if last else "",
            "helps": self.helps(),
            "placed": _plain_placement(self.placement),
        }


def _plain_placement(placed: Placement | None) -> Json | None:
    if placed is None:
        return None
    hosts = [{"host": host, "tasks": tasks} for host, tasks in placed.hosts]
    return {**asdict(placed), "hosts": hosts}


@contextmanager
def moment_of(
    directory: Path, job_id: str, at_text: str | None, *, with_state: bool
) -> Iterator[Moment]:
    """
    Give a moment of a job's life, the log's end unless another is named.

    Args:
        directory: The cluster's or the log's.
        job_id: Which job.
        at_text: A position or a time.
        with_state: The whole state is needed, also when the job doesn't wait.

    Raises:
        NotFound: There is no such job, or not yet at that moment.
        Refused: The log ends before that moment.
    """
    from projections.audit.pending import why_at
    from replay.at import ladder_of
    from replay.plugins import found_plugins
    from store.log import EventLog
    from tools.cli.audit import Bar, asked
    from tools.cli.audit_asking import position_of

    with ExitStack() as stack:
        with folding_meanwhile(directory, at_text):
            reading = stack.enter_context(asked(directory))
        log = stack.enter_context(EventLog.open(directory, writable=False))
        asked_for, last = position_of(reading, at_text, "at"), reading.position()
        if asked_for is not None and asked_for > last:
            raise Refused("at", f"must not be after the log's last position {last}", asked_for)
        told = why_at(reading, job_id, reading.boundary(last if asked_for is None else asked_for))
        # The first question about a long log takes a while: it leaves the ladder's rungs.
        with Bar(told.position, "folding") as bar:
            ladder = ladder_of(log, plugins=found_plugins(), on_progress=bar)
            moment = Moment(reading, told, log, ladder)
            moment.look(with_state=with_state)
        yield moment


@contextmanager
def folding_meanwhile(directory: Path, at_text: str | None) -> Iterator[None]:
    """
    Have another process leave the ladder's rungs while this one brings the tables up, where that
    takes long: the first question about a log needs both.
    """
    from tools.cli.audit_asking import FAR_EVENTS, events_behind

    if len(os.sched_getaffinity(0)) == 1 or events_behind(directory) <= FAR_EVENTS:
        yield
        return
    asking = ["replay", "state", str(directory), "--at", at_text or "end", "--hash"]
    folding = subprocess.Popen(
        [sys.executable, "-P", "-m", "tools.cli", *asking, "--no-progress"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        # The rungs that it left are whole; we go on from the last one, to where we must.
        folding.terminate()
        folding.wait()


def hosts_of(moment: Moment) -> list[Row]:
    """
    Return host by host what the job was short of.
    """
    from projections.audit.pending import hosts_short

    return [] if moment.queue_reason else hosts_short(moment.reading, moment.told)

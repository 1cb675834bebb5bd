"""
Hold what only richer traces say of a job: names, amounts, constraints, precedence.

Most jobs of a trace ask for what others asked for before them, so the asks are kept once each and a
column holds their numbers. A workload in plain SWF has none of this and pays nothing for it.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress
from typing import final

from domain.resreq.syntax import Requirement

UNKNOWN = -1
# "cpu" would be a load index, and "cores" a count that nothing holds.
CPU, GPU, MEM = "cpus", "gpu", "mem"


def attribute_word(text: str) -> str:
    """
    Return a name that a requirement can hold: CPU-Gold-6130 becomes CPU_Gold_6130.
    """
    word = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return (word if word[:1].isalpha() else f"_{word}")[:39]


def id_word(text: str) -> str:
    """
    Return a name that users and queues can have: what can't stand in one becomes an underscore.
    """
    word = re.sub(r"[^A-Za-z0-9_.@+-]", "_", text)[:128]
    return word if re.match(r"[A-Za-z0-9]", word) else f"x{word}"[:128]


@final
@dataclass(frozen=True, slots=True)
class TraceNeed:
    """
    Say how much of one resource a job asks for.

    Args:
        resource: Name of the resource, as hosts call it.
        milli: Thousandths of its base unit; memory in thousandths of a KiB.
        per_task: Whether it counts for each task; otherwise once on each host.
    """

    resource: str
    milli: int
    per_task: bool = False


Alternatives = tuple[tuple[str, str], ...]
"""Attributes with their values, one of which a host must have."""


@final
@dataclass(frozen=True, slots=True)
class Ask:
    """
    Hold what many jobs of a trace have in common; "" and UNKNOWN where the trace doesn't say.

    Args:
        user_name: As the trace writes it.
        queue_name: The queue, or the partition where the system calls it so; several with commas.
        hosts: On how many hosts the tasks are to run.
        needs: Amounts besides slots, each resource once.
        select: What a host must have, all of it.
        constraint: The whole request as it is written, for people.
        is_exclusive: Whether it wants its hosts for itself.
        own: The whole request in our own form, where the trace is a log of ours.
    """

    user_name: str = ""
    group_name: str = ""
    queue_name: str = ""
    project_name: str = ""
    hosts: int = UNKNOWN
    needs: tuple[TraceNeed, ...] = ()
    select: tuple[Alternatives, ...] = ()
    constraint: str = ""
    is_exclusive: bool = False
    own: Requirement | None = None


@final
@dataclass(frozen=True, slots=True)
class Details:
    """
    Hold the details of one job.

    Args:
        ask: What it asks for.
        trace_name: Its id in the trace where that is no number, such as 4711_[3]; else "".
        job_name: The name that its user gave it.
        preceding_ids: Trace ids of the jobs that must end before it is submitted.
    """

    ask: Ask = Ask()
    trace_name: str = ""
    job_name: str = ""
    preceding_ids: tuple[int, ...] = ()


NO_DETAILS = Details()


@final
@dataclass(frozen=True, slots=True)
class DetailColumns:
    """
    Hold the details of the jobs of a workload, in their order.

    Args:
        asks: Each different ask once, in order of first appearance.
        ask_numbers: Each job's index in asks.
        trace_names: Each job's name in the trace.
        job_names: Each job's own name.
        preceding_ids: The ids that each job waits for.
    """

    asks: list[Ask] = field(default_factory=list)
    ask_numbers: array[int] = field(default_factory=lambda: array("q"))
    trace_names: list[str] = field(default_factory=list)
    job_names: list[str] = field(default_factory=list)
    preceding_ids: list[tuple[int, ...]] = field(default_factory=list)
    _number_of: dict[Ask, int] = field(default_factory=dict, repr=False, compare=False)

    def append(self, details: Details) -> None:
        """
        Add the details of the next job.
        """
        number = self._number_of.setdefault(details.ask, len(self.asks))
        if number == len(self.asks):
            self.asks.append(details.ask)
        self.ask_numbers.append(number)
        self.trace_names.append(details.trace_name)
        self.job_names.append(sys.intern(details.job_name))
        self.preceding_ids.append(details.preceding_ids)

    def job(self, index: int) -> Details:
        """
        Return the details of the job at an index.
        """
        return Details(
            self.asks[self.ask_numbers[index]],
            self.trace_names[index],
            self.job_names[index],
            self.preceding_ids[index],
        )

    def kept(self, is_kept: Iterable[bool]) -> DetailColumns:
        """
        Return the details of the jobs that are kept; the asks stay, with their numbers.
        """
        chosen = list(is_kept)
        return DetailColumns(
            self.asks,
            array("q", compress(self.ask_numbers, chosen)),
            list(compress(self.trace_names, chosen)),
            list(compress(self.job_names, chosen)),
            list(compress(self.preceding_ids, chosen)),
            self._number_of,
        )

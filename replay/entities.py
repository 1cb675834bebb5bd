"""
Show the state of a core as plain data: the whole of it, or one entity, and what differs.

Plain data is what JSON knows: records become objects in order of their fields, so nothing that a
record holds can be forgotten here.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

from domain.allocations import Allocation
from domain.envelope import Envelope
from domain.errors import NotFound, Refused
from domain.ids import JOB_ID_PATTERN, job_stream
from domain.job_states import WAITING
from domain.plain import to_json
from domain.reasons import show_grouped
from domain.resreq.render import render
from domain.resreq.syntax import Requirement
from domain.units import show_by_name
from projections.scheduling.core import Core
from projections.scheduling.records import JobRecord, WorkerRecord
from projections.scheduling.status import recorded_reasons
from replay.moments import show_utc

Plain = dict[str, Any]

LINE_MAX: Final = 120
"""A change that fits is told on one line of so many characters."""

LINES_MAX: Final = 6
"""So many lines at most tell the fields of a record that came or went."""

TEXT_MAX: Final = 108
"""So much is shown of a long value, at most."""

KINDS: Final = ("job", "host", "queue", "cluster", "reasons", "keys", "documents")
_HOW: Final = (
    "Give job:12, host:NAME, queue:NAME, cluster, reasons, keys, documents, or a bare name."
)


def digest_of(core: Core) -> str:
    """
    Return the SHA-256 of the canonical state: equal states, equal digests.
    """
    return hashlib.sha256(core.snapshot()).hexdigest()


def plain(record: object) -> Any:
    """
    Return a record or value as plain data.
    """
    return json.loads(to_json(record))


def whole(core: Core) -> Plain:
    """
    Return the whole stored state, and what the accounts of each host come to.
    """
    state: Plain = json.loads(core.snapshot())
    state["accounts"] = {
        worker.name: accounts_of(core, worker) for worker in core.state.hosts
    }
    return state


def entity(core: Core, text: str) -> Plain:
    """
    Return one entity as plain data.

    Raises:
        NotFound: The state knows none of that name.
        Refused: The text names no kind of entity.
    """
    kind, name = _parsed(core, text)
    stored = core.state.stored
    if kind == "job":
        return job(core, core.state.job(name))
    if kind == "host":
        return host(core, core.state.worker(name))
    if kind == "queue":
        return _queue(core, name)
    if kind == "cluster":
        return plain(stored.cluster) if stored.cluster is not None else {}
    if kind == "reasons":
        return {str(number): plain(kept) for number, kept in stored.reason_sets.items()}
    records: dict[str, Any] = stored.keys if kind == "keys" else stored.documents
    return {key: plain(record) for key, record in records.items()}


def _parsed(core: Core, text: str) -> tuple[str, str]:
    """
    Return kind and name; a bare text is a job id, or the name of a host or a queue.
    """
    kind, mark, name = text.partition(":")
    kind = "host" if kind == "worker" else kind
    if mark and kind in ("job", "host", "queue"):
        return kind, name.lstrip("0") if kind == "job" else name
    if not mark and kind in KINDS[3:]:
        return kind, ""
    if mark:
        raise Refused("entity", "must be of a known kind", text, _HOW)
    if re.fullmatch(JOB_ID_PATTERN, text):
        return "job", text
    if text in core.state.stored.workers:
        return "host", text
    if text in core.state.stored.queues:
        return "queue", text
    raise NotFound("entity", "must be known at that moment", text, _HOW)


def job(core: Core, record: JobRecord) -> Plain:
    """
    Return a job, with its hosts and its reasons in words.
    """
    found = {"job_id": record.job_id, **plain(record)}
    found["hosts"] = hosts_of(core, record.allocation)
    found["reasons"] = reasons_of(core, record)
    return found


def hosts_of(core: Core, allocation: Allocation | None) -> str:
    """
    Return the hosts of an allocation as LSF writes them: "4*alpha:beta"; "" without one.
    """
    if allocation is None:
        return ""
    names = core.state.host_names(allocation)
    return ":".join(f"{tasks}*{name}" if tasks > 1 else name for name, tasks in names)


def reasons_of(core: Core, record: JobRecord) -> str:
    """
    Return why a job waits: what is recorded of it, or of its queue; "" when it doesn't wait.
    """
    if record.state not in WAITING:
        return ""
    never, reasons = recorded_reasons(core.state, record)
    words = show_grouped(reasons)
    return f"never: {words}" if never else words


def host(core: Core, record: WorkerRecord) -> Plain:
    """
    Return a host, with its accounts and the jobs on it.
    """
    number = record.number
    jobs = [
        one.job_id
        for one in core.state.live.values()
        if one.allocation is not None
        and any(run.first <= number < run.first + run.hosts for run in one.allocation.runs)
    ]
    return {**plain(record), "accounts": accounts_of(core, record), "jobs": jobs}


def accounts_of(core: Core, record: WorkerRecord) -> Plain:
    """
    Return what a host has, what is charged on it and what is left; thousandths, slots whole.
    """
    capacity, number = core.state.capacity, record.number
    found: Plain = {
        "slots": int(capacity.slots[number]),
        "slots_used": int(capacity.used[number]),
        "slots_usable": int(capacity.usable[number]),
    }
    for name in sorted(capacity.resources):
        column = capacity.resources[name]
        if column.total[number] or column.charged[number]:
            found[name] = {
                "total_milli": int(column.total[number]),
                "charged_milli": int(column.charged[number]),
                "available_milli": int(column.available[number]),
            }
    return found


def _queue(core: Core, name: str) -> Plain:
    found = plain(core.state.queue(name))
    counts: dict[str, int] = {}
    for record in core.state.stored.jobs.values():
        if record.spec.queue == name:
            counts[record.state.value] = counts.get(record.state.value, 0) + 1
    return {**found, "jobs": dict(sorted(counts.items()))}


def job_counts(core: Core) -> dict[str, int]:
    """
    Return how many jobs are in each state, by state.
    """
    counts: dict[str, int] = {}
    for record in core.state.stored.jobs.values():
        counts[record.state.value] = counts.get(record.state.value, 0) + 1
    return dict(sorted(counts.items()))


def stream_of(text: str) -> str:
    """
    Return the stream that an entity's text names: 12 and job:12 are the same.
    """
    kind, mark, name = text.partition(":")
    if not mark:
        return job_stream(text)
    if kind == "job":
        return job_stream(name.lstrip("0"))
    return f"worker:{name}" if kind == "host" else text


def for_people(value: Any) -> Any:
    """
    Return plain data as people read it: requirements as they are written, and environments as the
    count of their variables.

    Their values may be passwords, and so many that nobody finds the rest.
    """
    if isinstance(value, list):
        return [for_people(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {key: _for_people(key, inner) for key, inner in value.items()}


def _for_people(key: str, inner: Any) -> Any:
    if key == "env" and isinstance(inner, list) and inner:
        return _count_of(inner)
    if key in _PARSED and isinstance(inner, dict):
        return render(Requirement.model_validate_json(json.dumps(inner)))
    return for_people(inner)


_PARSED: Final = ("requirement", "stop_when", "resume_when")
"""Fields that hold a requirement worked out from a text, or from a workload that has no text."""


def _count_of(variables: list[Any]) -> str:
    return f"{len(variables)} variable{'' if len(variables) == 1 else 's'}"


def show_event(envelope: Envelope) -> str:
    """
    Return an event on one line: position, time, stream, kind, and every field that has no default.
    """
    fields = for_people(json.loads(envelope.event.model_dump_json(exclude_defaults=True)))
    shown = " ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value)}"
        for name, value in fields.items()
    )
    place = f"{envelope.position} {show_utc(envelope.time_us)} {envelope.stream}"
    return f"{place} {envelope.event.TYPE_CODE} {shown}".rstrip()


# ------------------------------------------------------------------------------------- differences


@final
@dataclass(frozen=True, slots=True)
class Change:
    """
    Name one value that differs: where it is, and the two values as JSON; None where there is none.
    """

    path: str
    before: str | None
    after: str | None


MOMENTS: Final = (
    "accepted_us", "begin_us", "deadline_us", "dispatch_us", "eased_us", "empty_since_us",
    "finish_us", "gave_up_us", "joined_us", "kill_us", "orphan_us", "queue_us", "report_us",
    "since_us", "start_us", "started_us", "submit_us", "time_us", "unreachable_us", "until_us",
)  # fmt: skip
"""Names of fields that hold a moment; whatever else is in microseconds is a duration."""


NONE_IS_0: Final = ("kill_us", "started_us")
"""Moments that are 0 where there is none; of others 0 is the time that a simulation begins with."""


def change_lines(change: Change) -> list[str]:
    """
    Return a change in words: on one line, or with the fields of what came or went on some more.
    """
    if ".env[" in change.path:
        return [f"{change.path}: (not shown) -> (not shown)"]
    texts = [
        "(absent)" if text is None else _value_words(change.path, json.loads(text))
        for text in (change.before, change.after)
    ]
    line = f"{change.path}: {texts[0]} -> {texts[1]}"
    if len(line) <= LINE_MAX:
        return [line]
    nothing = (None, "null")
    if change.before not in nothing and change.after not in nothing:
        return [f"{change.path}:", *(f"  {mark} {_cut(text)}" for mark, text in
                                     zip(("before", "after "), texts, strict=True))]  # fmt: skip
    has_come = change.before in nothing
    whole_text = (change.after if has_come else change.before) or "{}"
    fields = flat(for_people(json.loads(whole_text)))
    words = (
        f"{path} {text_words(path, value)}" for path, value in fields if value not in ("0", "False")
    )
    told = textwrap.wrap(", ".join(words), LINE_MAX, break_on_hyphens=False)
    more = [] if len(told) <= LINES_MAX else ["..."]
    head = f"{change.path}: {'came' if has_come else 'went'}"
    return [head, *(f"  {each}" for each in (*told[:LINES_MAX], *more))]


def _value_words(path: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return _number_words(path, value)
    return json.dumps(for_people(value))


def is_moment(path: str) -> bool:
    """
    Say whether a field holds a moment.
    """
    return path.rpartition(".")[2] in MOMENTS


def text_words(path: str, text: str) -> str:
    """
    Return what `flat` says of a value, with the unit of its field's name where it is a number.
    """
    return _number_words(path, int(text)) if text.isdecimal() else text


def _number_words(path: str, number: int) -> str:
    """
    Return a number in the unit of its field's name; a moment as it can be given.
    """
    if is_moment(path) and (number or not path.endswith(NONE_IS_0)):
        return show_utc(number)
    return show_by_name(path, number)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."


def flat(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """
    Yield path and text of every value in plain data; what is empty is left out.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{path}[{index}]")
    elif value not in (None, "", []):
        yield path, ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def changes(before: Any, after: Any, path: str = "") -> Iterator[Change]:
    """
    Yield every value that differs between two plain states, in order of the first.
    """
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            inner = f"{path}.{key}" if path else str(key)
            yield from _inner(before, after, key, inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from changes(old, new, f"{path}[{index}]")
    else:
        yield Change(path, json.dumps(before), json.dumps(after))


def _inner(before: Plain, after: Plain, key: str, path: str) -> Iterator[Change]:
    if key not in after:
        yield Change(path, json.dumps(before[key]), None)
    elif key not in before:
        yield Change(path, None, json.dumps(after[key]))
    else:
        yield from changes(before[key], after[key], path)

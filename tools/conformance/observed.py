"""
What can be seen of a scheduler after a cycle, and how a vector's expectations are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tools.conformance.values import (
    Fields,
    Malformed,
    differing,
    items_of,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)

Shares = dict[str, int]
"""Tasks by host, in the order in which the hosts were claimed."""


@dataclass(slots=True)
class Waiting:
    """
    Hold why a job waits, as codes: ``RES_SHORT(lic)``, ``HOST_JOB_RUSAGE(mem)``,
    ``RES_LIMIT(name,what)``.

    Args:
        main: The reason of the whole job, "" when there is none.
        hosts: For each host the codes that hold there, the first cause first.
    """

    main: str = ""
    hosts: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Observed:
    """
    Hold what can be seen after a cycle. Jobs and hosts are called as the vector calls them.

    Args:
        shares: What each started job has.
        states: The state of every job.
        waiting: Why each pending job waits.
        rejected: Jobs whose submission was refused.
        victims: For each job, whom it made be suspended in this cycle.
        signals: The signal each job was sent in this cycle.
        kill_signals: What the last kill of this cycle sends, in order.
        used: What is taken of shared resources, in whole units.
        host_status: The status of each host.
        terms: Why each ended job ended (TERM_...).
        suspended_for: Why each suspended job is (SUSP_...).
        queues: The queue of each job.
        run_limits_min: The run limit of each job in minutes, None without one.
        term_numbers: The number of why each ended job ended, where there is one.
        exit_codes: The exit code of each ended job, None where a signal ended it.
        tasks: What each job asks for: a count, or the fewest and the most.
        dependencies: What each job waits for, as written, None for nothing.
        submitted_min: When each job was submitted, in minutes.
        queued_min: Since when each counts among its equals, in minutes.
        order: Jobs that wait or run, in the order in which they are considered.
        reserved: The slots that each pending job has gathered, by host; so its memory in MB.
        estimated_start: When each of these starts, in minutes, None when nobody knows.
        usage: What each limit is charged, in whole units.
        denied: Whether the last action was denied to whoever tried it.
        error: Why the last action was refused, "" when it wasn't.
    """

    shares: dict[str, Shares] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    waiting: dict[str, Waiting] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    victims: dict[str, list[str]] = field(default_factory=dict)
    signals: dict[str, str] = field(default_factory=dict)
    kill_signals: list[str] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)
    host_status: dict[str, str] = field(default_factory=dict)
    terms: dict[str, str] = field(default_factory=dict)
    suspended_for: dict[str, str] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    run_limits_min: dict[str, int | None] = field(default_factory=dict)
    term_numbers: dict[str, int] = field(default_factory=dict)
    exit_codes: dict[str, int | None] = field(default_factory=dict)
    tasks: dict[str, int | list[int]] = field(default_factory=dict)
    dependencies: dict[str, str | None] = field(default_factory=dict)
    submitted_min: dict[str, int] = field(default_factory=dict)
    queued_min: dict[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    reserved: dict[str, Shares] = field(default_factory=dict)
    reserved_mem: dict[str, Shares] = field(default_factory=dict)
    estimated_start: dict[str, int | None] = field(default_factory=dict)
    usage: dict[str, int] = field(default_factory=dict)
    denied: bool = False
    error: str = ""

    def only_job(self) -> str:
        """
        Return the one job that waits or was started in this cycle, for expectations that name none.
        """
        names = list(dict.fromkeys([*self.waiting, *self.shares, *self.states, *self.rejected]))
        if not names:
            raise Malformed("there is no job to look at")
        return names[0] if len(names) == 1 else [*self.waiting, *self.shares, *names][0]


SMALL_WORDS: Final = frozenset({"not", "in", "of", "is", "a", "the", "for", "no", "to"})

Compare = Callable[[object, Observed], list[str]]


def compare(expect: Fields, seen: Observed) -> list[str]:
    """
    Return what differs from a vector's expectations.
    """
    found = []
    for name, expected in expect.items():
        run = COMPARISONS.get(name)
        if run is None:
            raise Malformed(f"nothing is known of expecting {name!r}")
        found += run(expected, seen)
    return found


# ---------------------------------------------------------------------------------- allocations


def _dispatch(expected: object, seen: Observed) -> list[str]:
    found = []
    for job, shares in mapping_of(expected).items():
        found += differing(f"{job} runs on", dict(mapping_of(shares)), seen.shares.get(job))
    return found


def _alloc(expected: object, seen: Observed) -> list[str]:
    job = seen.only_job()
    return differing("allocation", dict(mapping_of(expected)), seen.shares.get(job))


def _first(expected: object, seen: Observed) -> list[str]:
    return differing("first host", expected, next(iter(seen.shares.get(seen.only_job(), {})), None))


def _sequence(expected: object, seen: Observed) -> list[str]:
    return differing("hosts in order", list(texts_of(expected)), list(seen.shares[seen.only_job()]))


def _run(expected: object, seen: Observed) -> list[str]:
    return differing("is started", bool(expected), seen.only_job() in seen.shares)


def _used(expected: object, seen: Observed) -> list[str]:
    found = []
    for name, amount in mapping_of(expected).items():
        found += differing(f"{name} in use", amount, seen.used.get(name, 0))
    return found


# -------------------------------------------------------------------------------------- reasons


def _pend(expected: object, seen: Observed) -> list[str]:
    if isinstance(expected, bool):
        return differing("is pending", expected, seen.only_job() in seen.waiting)
    found = []
    wanted_by_job = mapping_of(expected)
    if {"main", "hosts", "any"}.intersection(wanted_by_job):
        wanted_by_job = {seen.only_job(): wanted_by_job}
    for job, wanted in wanted_by_job.items():
        waiting = seen.waiting.get(job)
        if waiting is None:
            found.append(f"{job}: expected to wait, is {seen.states.get(job, 'unknown')}")
        elif wanted is not True:
            found += [f"{job}: {line}" for line in waiting_differences(mapping_of(wanted), waiting)]
    return found


def waiting_differences(wanted: Fields, waiting: Waiting) -> list[str]:
    """
    Return what differs in why one job waits: its main reason, or the first code on each host named.
    """
    if wanted.get("any") is True:
        return []
    if not {"main", "hosts"}.intersection(wanted):
        raise Malformed(f"why a job waits is any, main or hosts, not {dict(wanted)!r}")
    if "main" in wanted:
        found = differing("main reason", wanted["main"], waiting.main)
        return found if waiting.main else [*found, f"hosts: {waiting.hosts}"]
    found = []
    if waiting.main:
        found.append(f"expected reasons of hosts, found {waiting.main} for the whole job")
    for code, hosts in mapping_of(wanted.get("hosts")).items():
        for host in texts_of(hosts):
            first = next(iter(waiting.hosts.get(host, ())), None)
            found += differing(f"reason on {host}", code, first)
    return found


def _reasons_shown(expected: object, seen: Observed) -> list[str]:
    waiting = seen.waiting[seen.only_job()]
    shown = 0 if waiting.main else len(waiting.hosts)
    return differing("host reasons shown", whole_of(expected), shown)


# --------------------------------------------------------------------------------------- states


def _states(expected: object, seen: Observed) -> list[str]:
    return _by_name("state", mapping_of(expected), seen.states)


def _by_name(what: str, expected: Fields, found: Mapping[str, object]) -> list[str]:
    return [
        line
        for name, wanted in expected.items()
        for line in differing(f"{what} of {name}", wanted, found.get(name))
    ]


def _reject(expected: object, seen: Observed) -> list[str]:
    if isinstance(expected, bool):
        return differing("refused", expected, bool(seen.rejected))
    return differing("refused", list(texts_of(expected)), seen.rejected)


def _preempt(expected: object, seen: Observed) -> list[str]:
    wanted = {job: sorted(texts_of(victims)) for job, victims in mapping_of(expected).items()}
    return differing(
        "preempted for", wanted, {job: sorted(each) for job, each in seen.victims.items()}
    )


def _preempt_count(expected: object, seen: Observed) -> list[str]:
    count = sum(len(victims) for victims in seen.victims.values())
    return differing("count of victims", whole_of(expected), count)


def _term(expected: object, seen: Observed) -> list[str]:
    if isinstance(expected, str):
        return differing("end", expected, seen.terms.get(seen.only_job()))
    return _by_name("end", mapping_of(expected), seen.terms)


def _counts(expected: object, seen: Observed) -> list[str]:
    """
    Compare the elements of an array, counted by state.
    """
    counts = {"NJOBS": len(seen.states)}
    for state in seen.states.values():
        counts[state] = counts.get(state, 0) + 1
    return differing("counts", dict(mapping_of(expected)), counts)


def _keeps(expected: object, seen: Observed) -> list[str]:
    found = []
    for job, wanted in mapping_of(expected).items():
        kept = {"jobid": True, "submit_time": seen.submitted_min.get(job)}
        asked = mapping_of(wanted)
        unknown = sorted(set(asked) - set(kept))
        if unknown:
            raise Malformed(f"nothing is known of keeping {', '.join(unknown)}")
        found += differing(f"{job} keeps", dict(asked), {name: kept[name] for name in asked})
    return found


def _error(expected: object, seen: Observed) -> list[str]:
    """
    Compare an error that a vector calls by a name of its own: what the name speaks of, the message
    must speak of too.
    """
    words = [word for word in text_of(expected).split("_") if word not in SMALL_WORDS]
    missing = [word for word in words if word not in seen.error.lower()]
    if seen.error and not missing:
        return []
    return [f"error: expected {expected!r}, found {seen.error or 'none'!r}"]


def _ok(expected: object, seen: Observed) -> list[str]:
    shown = f" ({seen.error})" if seen.error else ""
    return [f"{line}{shown}" for line in differing("is allowed", expected, not seen.error)]


def _of_only(what: str, values: Callable[[Observed], Mapping[str, object]]) -> Compare:
    """
    Return the comparison of something of the one job that a case is about.
    """

    def run(expected: object, seen: Observed) -> list[str]:
        return differing(what, expected, values(seen).get(seen.only_job()))

    return run


def _reserved(expected: object, seen: Observed) -> list[str]:
    wanted = {job: dict(mapping_of(hosts)) for job, hosts in mapping_of(expected).items()}
    return differing("gathered slots", wanted, seen.reserved)


def _by_product(expected: object, seen: Observed) -> list[str]:
    """
    Compare where the vendor and this program differ: ours holds.
    """
    return compare(mapping_of(expected), seen)


def _nothing(expected: object, seen: Observed) -> list[str]:
    del expected, seen
    return []


COMPARISONS: Final[dict[str, Compare]] = {
    "dispatch": _dispatch,
    "alloc": _alloc,
    "first": _first,
    "sequence": _sequence,
    "run": _run,
    "used": _used,
    "pend": _pend,
    "host_reasons_shown": _reasons_shown,
    "states": _states,
    "reject": _reject,
    "preempt": _preempt,
    "preempt_count": _preempt_count,
    "signal": lambda expected, seen: _by_name("signal to", mapping_of(expected), seen.signals),
    "host_status": lambda expected, seen: _by_name(
        "status", mapping_of(expected), seen.host_status
    ),
    "term": _term,
    "susp_reason": lambda expected, seen: _by_name(
        "suspension", mapping_of(expected), seen.suspended_for
    ),
    "counts": _counts,
    "keeps": _keeps,
    "error": _error,
    "ok": _ok,
    "denied": lambda expected, seen: differing("denied", expected, seen.denied),
    "reason": _of_only(
        "main reason", lambda seen: {job: each.main for job, each in seen.waiting.items()}
    ),
    "queue": _of_only("queue", lambda seen: seen.queues),
    "state": _of_only("state", lambda seen: seen.states),
    "runlimit_min": _of_only("run limit in minutes", lambda seen: seen.run_limits_min),
    "n": _of_only("tasks", lambda seen: seen.tasks),
    "code": _of_only("exit code", lambda seen: seen.exit_codes),
    "term_number": _of_only("number of its end", lambda seen: seen.term_numbers),
    "dependency": _of_only("dependency", lambda seen: seen.dependencies),
    "queue_order": lambda expected, seen: differing(
        "order", list(texts_of(expected)), list(seen.order)
    ),
    "reserved": _reserved,
    "reserved_mem": lambda expected, seen: _by_name(
        "gathered memory of", mapping_of(expected), seen.reserved_mem
    ),
    "estimated_start": lambda expected, seen: _by_name(
        "start of", mapping_of(expected), seen.estimated_start
    ),
    "usage": lambda expected, seen: _by_name("usage of", mapping_of(expected), seen.usage),
    "xce": _by_product,
    "vendor": _nothing,
}
"""How each expectation is compared."""


def names_expected(expect: Fields) -> Sequence[str]:
    """
    Return the names of what a vector expects, so that a runner can tell at once what it can't see.
    """
    return [text_of(name) for name in items_of(list(expect))]

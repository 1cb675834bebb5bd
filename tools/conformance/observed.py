"""
How a vector's expectations are compared with what is seen after a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tools.conformance.expected_reasons import (
    CANDIDATES,
    Compare,
    key_reason,
    of_candidates,
    pend,
    reasons_shown,
    same_reasons,
)
from tools.conformance.seen import Observed
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

SMALL_WORDS: Final = frozenset({"not", "in", "of", "is", "a", "the", "for", "no", "to"})


SAME: Final = {
    "range": "n", "tasks": "n", "clipped": "n", "effective": "n", "allocation": "alloc",
    "order": "queue_order", "dispatch_order": "started", "term_code": "term_number",
    "exit_info": "term_number", "exitInfo": "term_number", "exit_code": "code",
    "suspend_reason": "susp_reason", "status": "states", "shared_used": "used", "terms": "term",
}  # fmt: skip
"""Other names of expectations."""


def compare(expect: Fields, seen: Observed) -> list[str]:
    """
    Return what differs from a vector's expectations.
    """
    found = []
    for name, expected in expect.items():
        run = COMPARISONS.get(SAME.get(name, name))
        if run is None:
            raise Malformed(f"nothing is known of expecting {name!r}")
        found += run(expected, seen)
    return found


# ---------------------------------------------------------------------------------- allocations


def _dispatch(expected: object, seen: Observed) -> list[str]:
    if expected == []:
        return differing("started", [], seen.started)
    if isinstance(expected, list):
        missing = [job for job in texts_of(expected) if job not in seen.shares]
        return [f"{job}: expected to run, is {seen.states.get(job, 'unknown')}" for job in missing]
    if not mapping_of(expected):
        return differing("started", [], seen.started)
    found = []
    for job, shares in mapping_of(expected).items():
        if isinstance(shares, str | list):
            # Hosts by name, once for each task.
            names = texts_of(shares)
            wanted: dict[str, object] = {host: names.count(host) for host in names}
        else:
            wanted = dict(mapping_of(shares))
        found += differing(f"{job} runs on", wanted, seen.shares.get(job))
    return found


def _alloc(expected: object, seen: Observed) -> list[str]:
    both = mapping_of(expected)
    if set(both) == {"vendor", "xce"}:
        expected = both["xce"]
    job = seen.only_job()
    return differing("allocation", dict(mapping_of(expected)), seen.shares.get(job))


def _first(expected: object, seen: Observed) -> list[str]:
    is_by_job = isinstance(expected, Mapping) and expected
    wanted = mapping_of(expected) if is_by_job else {seen.only_job(): expected}
    found = {job: next(iter(shares), None) for job, shares in seen.shares.items()}
    return _by_name("first host", wanted, found)


def _sequence(expected: object, seen: Observed) -> list[str]:
    return differing("hosts in order", list(texts_of(expected)), list(seen.shares[seen.only_job()]))


def _run(expected: object, seen: Observed) -> list[str]:
    return differing("is started", bool(expected), seen.only_job() in seen.shares)


def _used(expected: object, seen: Observed) -> list[str]:
    wanted = mapping_of(expected)
    found = [] if wanted else differing("in use", {}, {n: a for n, a in seen.used.items() if a})
    for name, amount in wanted.items():
        found += differing(f"{name} in use", amount, seen.used.get(name, 0))
    return found


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
        lately = seen.rejected if seen.rejected_lately is None else seen.rejected_lately
        return differing("refused", expected, bool(lately))
    wanted = list(texts_of(expected))
    return [] if wanted == seen.rejected_lately else differing("refused", wanted, seen.rejected)


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
    wanted = mapping_of(expected)
    arrays = [each for each in wanted.values() if isinstance(each, Mapping)]
    if not arrays:
        return _counts_differ("counts", wanted, seen.states.values())
    found = []
    for array, each in wanted.items():
        states = [state for job, state in seen.states.items() if job.startswith(f"{array}[")]
        found += _counts_differ(f"counts of {array}", mapping_of(each), states)
    return found


def _counts_differ(what: str, wanted: Fields, states: Iterable[str]) -> list[str]:
    """
    Return what differs: a state that isn't told has nobody, but the sum needn't be told.
    """
    told = {state: count for state, count in wanted.items() if count != 0}
    counted = _counted(states)
    if "NJOBS" not in told:
        del counted["NJOBS"]
    return differing(what, told, counted)


def _counted(states: Iterable[str]) -> dict[str, int]:
    counts = {"NJOBS": 0}
    for state in states:
        counts["NJOBS"] += 1
        counts[state] = counts.get(state, 0) + 1
    return counts


def _elements(expected: object, seen: Observed) -> list[str]:
    """
    Compare the indices of arrays.
    """
    found = []
    for array, wanted in mapping_of(expected).items():
        indices = [
            int(job.removeprefix(f"{array}[").rstrip("]"))
            for job in seen.states
            if job.startswith(f"{array}[")
        ]
        found += differing(f"elements of {array}", list(items_of(wanted)), indices)
    return found


def _order(expected: object, seen: Observed) -> list[str]:
    """
    Compare the order in which jobs are considered; those that run are in it where they are named.
    """
    wanted = list(texts_of(expected))
    order = [job for job in seen.order if job in seen.waiting or job in wanted]
    return differing("order", wanted, order)


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
        found = values(seen)
        if isinstance(expected, Mapping) and set(expected) <= set(seen.states):
            return _by_name(what, mapping_of(expected), found)
        return differing(what, expected, found.get(seen.only_job()))

    return run


def _reserved(expected: object, seen: Observed) -> list[str]:
    wanted = {job: dict(mapping_of(hosts)) for job, hosts in mapping_of(expected).items()}
    return differing("gathered slots", wanted, seen.reserved)


def _host_status(expected: object, seen: Observed) -> list[str]:
    found = dict(seen.host_status)
    for host, wanted in mapping_of(expected).items():
        if host in seen.silent_hosts and wanted == "unreach":
            # We don't tell which of its daemons still answers.
            found[host] = "unreach"
    return _by_name("status", mapping_of(expected), found)


def _usage(expected: object, seen: Observed) -> list[str]:
    """
    Compare what limits are charged: each amount by its name, or a number for the first that a limit
    bounds.
    """
    found = []
    for name, wanted in mapping_of(expected).items():
        charged = seen.usage.get(name, {})
        if isinstance(wanted, Mapping) and wanted:
            shown = {text_of(amount): charged.get(text_of(amount), 0) for amount in wanted}
            found += differing(f"usage of {name}", dict(wanted), shown)
            continue
        first = next((each for each in FIRST_CHARGED if each in charged), None)
        amounts = [charged[first]] if first else sorted(charged.values()) or [0]
        found += differing(f"usage of {name}", [wanted], amounts)
    return found


FIRST_CHARGED: Final = ("SLOTS", "TASKS", "JOBS")
"""What a bare number says of a limit that bounds several amounts."""


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
    "pend": pend,
    "host_reasons_shown": reasons_shown,
    **{name: of_candidates(name) for name in CANDIDATES},
    "same_reasons": same_reasons,
    "p1": key_reason,
    "states": _states,
    "reject": _reject,
    "preempt": _preempt,
    "preempt_count": _preempt_count,
    "signal": lambda expected, seen: (
        _by_name("signal to", mapping_of(expected), seen.signals)
        if expected
        else differing("signals", {}, seen.signals)
    ),
    "host_status": _host_status,
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
    "queue_order": _order,
    "elements": _elements,
    "started": lambda expected, seen: differing(
        "started in order", list(texts_of(expected)), seen.started
    ),
    "reserved": _reserved,
    "reserved_mem": lambda expected, seen: _by_name(
        "gathered memory of", mapping_of(expected), seen.reserved_mem
    ),
    "estimated_start": lambda expected, seen: _by_name(
        "start of", mapping_of(expected), seen.estimated_start
    ),
    "usage": _usage,
    "xce": _by_product,
    "vendor": _nothing,
    "alloc_xce": _alloc,
    "alloc_vendor": _nothing,
}
"""How each expectation is compared."""

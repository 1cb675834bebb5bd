"""
How what a vector expects of the reasons of waiting jobs is compared with what is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from domain.reasons import NO_CANDIDATES
from tools.conformance.seen import Observed, Waiting
from tools.conformance.values import (
    Fields,
    Malformed,
    differing,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)

Compare = Callable[[object, Observed], list[str]]


def pend(expected: object, seen: Observed) -> list[str]:
    """
    Compare whether and why jobs wait.
    """
    if isinstance(expected, bool):
        return differing("is pending", expected, seen.only_job() in seen.waiting)
    found = []
    if isinstance(expected, list):
        # Jobs that wait, whatever for.
        expected = dict.fromkeys(texts_of(expected), True)
    wanted_by_job = mapping_of(expected)
    if not wanted_by_job:
        return differing("waiting", [], list(seen.waiting))
    if {"main", "hosts", "any"}.intersection(wanted_by_job):
        wanted_by_job = {seen.only_job(): wanted_by_job}
    for job, wanted in wanted_by_job.items():
        waiting = seen.waiting.get(job)
        if waiting is None:
            found.append(f"{job}: expected to wait, is {seen.states.get(job, 'unknown')}")
        elif isinstance(wanted, str):
            codes = {codes[0] for codes in waiting.hosts.values()}
            shown = {waiting.main} if waiting.main else codes
            found += differing(f"{job}: reason", {_code_of(wanted)}, shown)
        elif wanted is not True:
            lines = waiting_differences(mapping_of(wanted), waiting, seen.silent_hosts)
            found += [f"{job}: {line}" for line in lines]
    return found


OF_SILENT_HOSTS: Final = frozenset({"LOAD_UNAVAIL", "SBD_UNREACH"})
"""Of a host that is down, with both its daemons silent, either may be told."""


def waiting_differences(
    wanted: Fields, waiting: Waiting, silent: Collection[str] = ()
) -> list[str]:
    """
    Return what differs in why one job waits: its main reason, or the first code on each host named.

    Args:
        wanted: What is expected.
        waiting: What is seen.
        silent: The hosts that are down.
    """
    unknown = sorted(set(map(text_of, wanted)) - {"any", "main", "hosts", *CANDIDATES})
    if unknown or not wanted:
        raise Malformed(f"why a job waits is any, main or hosts, not {dict(wanted)!r}")
    found = []
    if wanted.get("main") is not None:
        found += differing("main reason", _code_of(wanted["main"]), waiting.main)
        if not waiting.main:
            found.append(f"hosts: {waiting.hosts}")
    for name, is_wanted in CANDIDATES.items():
        if name in wanted:
            found += _candidates_differ(name, wanted[name], waiting, is_candidate=is_wanted)
    if "hosts" not in wanted:
        return found
    if waiting.main and "main" not in wanted:
        found.append(f"expected reasons of hosts, found {waiting.main} for the whole job")
    for code, hosts in mapping_of(wanted.get("hosts")).items():
        if isinstance(hosts, int):
            count = sum(codes[0] == _code_of(code) for codes in waiting.hosts.values())
            found += differing(f"hosts of {code}", hosts, count)
            continue
        for host in texts_of(hosts):
            first = next(iter(waiting.hosts.get(host, ())), None)
            if host in silent and {code, first} <= OF_SILENT_HOSTS:
                continue
            found += differing(f"reason on {host}", _code_of(code), first)
    return found


def _code_of(wanted: object) -> object:
    """
    Return a code as we tell it: what a limit allows for each processor is a bound of slots.
    """
    if not isinstance(wanted, str):
        return wanted
    return wanted.replace(",SLOTS_PER_PROCESSOR)", ",SLOTS)")


CANDIDATES: Final = {
    "candidate": True, "candidates": True, "p2": True, "non_candidate": False,
    "non_candidates": False, "noncandidate": False, "noncandidates": False, "p3": None,
}  # fmt: skip
"""Names of hosts that could run the job if nothing else ran there, of the others, and of all."""


def _candidates_differ(
    name: str, expected: object, waiting: Waiting, *, is_candidate: bool | None
) -> list[str]:
    """
    Return what differs in the hosts of such a kind: their names, their count, or names by code.
    """
    by_code: dict[str, list[str]] = {}
    for host, codes in waiting.hosts.items():
        code = codes[0]
        if is_candidate is None or (code.partition("(")[0] not in NO_CANDIDATES) == is_candidate:
            by_code.setdefault(code, []).append(host)
    hosts = sorted(host for each in by_code.values() for host in each)
    if isinstance(expected, Mapping):
        wanted = {text_of(code): sorted(texts_of(each)) for code, each in expected.items()}
        return differing(name, wanted, {code: sorted(each) for code, each in by_code.items()})
    if isinstance(expected, int):
        return differing(name, expected, len(hosts))
    return differing(name, sorted(texts_of(expected)), hosts)


def of_candidates(name: str) -> Compare:
    """
    Return the comparison of the hosts of the only waiting job, or of each job that is named.
    """

    def run(expected: object, seen: Observed) -> list[str]:
        jobs: Fields = {}
        if isinstance(expected, Mapping) and set(expected) <= set(seen.waiting):
            jobs = mapping_of(expected)
        found = []
        for job, wanted in (jobs or {seen.only_job(): expected}).items():
            if job not in seen.waiting:
                found.append(f"{job}: expected to wait, is {seen.states.get(job, 'unknown')}")
                continue
            found += _candidates_differ(
                name, wanted, seen.waiting[job], is_candidate=CANDIDATES[name]
            )
        return found

    return run


def key_reason(expected: object, seen: Observed) -> list[str]:
    """
    Compare the one reason that is told first: that of the whole job, or of most hosts.
    """
    waiting = seen.waiting.get(seen.only_job(), Waiting())
    firsts = [codes[0] for codes in waiting.hosts.values()]
    most = max(firsts, key=firsts.count, default="")
    return differing("key reason", expected, waiting.main or most)


def same_reasons(expected: object, seen: Observed) -> list[str]:
    """
    Compare that jobs wait for the same reasons.
    """
    first, *others = texts_of(expected)
    return [
        line
        for other in others
        for line in differing(f"reasons of {other}", seen.waiting.get(first),
                              seen.waiting.get(other))
    ]  # fmt: skip


def reasons_shown(expected: object, seen: Observed) -> list[str]:
    """
    Compare how many hosts are told of, none where the whole job has a reason.
    """
    waiting = seen.waiting[seen.only_job()]
    shown = 0 if waiting.main else len(waiting.hosts)
    return differing("host reasons shown", whole_of(expected), shown)

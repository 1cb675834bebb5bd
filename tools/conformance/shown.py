"""
Run vectors of the kind ``format``: records of LSF's files, and how reasons are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from domain.allocations import HostSpan
from domain.errors import Refused
from domain.reason_summary import summary_of
from domain.reasons import PendReason, ReasonCode, grouped, is_candidates, show_grouped
from domain.terminations import Termination, termination_of
from replay.workloads.lsf_records import (
    Record,
    fields_of,
    record_of,
    statuses_of,
    tasks_by_host,
    tokens_of,
    wait_status_of,
)
from tools.conformance.core_view import code_of
from tools.conformance.record_types import TYPES, WORDS, of_types
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    items_of,
    known_only,
    mapping_of,
    text_of,
    texts_of,
    whole_of,
)


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    found = []
    for label, case in cases_of(vector.fields):
        found += [f"{label} {line}".strip() for line in _of_case(case)]
    return found


def _of_case(case: Fields) -> list[str]:
    by_field: list[tuple[str, Callable[[Fields], list[str]]]] = [
        ("fields", _of_listed_fields),
        ("line", _of_record),
        ("jStatus", _of_status),
        ("exitStatus", _of_wait_status),
        ("exitInfo", _of_termination),
        ("term", _of_termination_number),
        *((name, of_types) for name in TYPES),
        ("given", _of_given),
    ]
    for name, run in by_field:
        if name not in case:
            continue
        wanted = case.get("expect")
        if not isinstance(wanted, Mapping) or set(wanted) not in ({"reject"}, {"error"}):
            return run(case)
        try:
            run({**case, "expect": {}})
        except Refused as refused:
            return [] if any(wanted.values()) else [str(refused)]
        return ["expected a refusal"] if any(wanted.values()) else []
    raise Malformed(f"nothing is known of a format case with {', '.join(case)}")


# ------------------------------------------------------------------------------------- records


def _of_record(case: Fields) -> list[str]:
    line, expect = text_of(case["line"]), mapping_of(case.get("expect"))
    if WORDS.intersection(expect):
        about = {name: value for name, value in expect.items() if name in WORDS}
        rest = {name: value for name, value in expect.items() if name not in WORDS}
        return _of_record({**case, "expect": rest}) + of_types({"line": line, "expect": about})
    if "fields" in expect:
        known_only(expect, ["fields"], "the fields of a record")
        wanted = tuple(_plain(value) for value in items_of(expect["fields"]))
        return differing("fields", wanted, tokens_of(line))
    return _compare(record_of(line), expect)


def _of_listed_fields(case: Fields) -> list[str]:
    tokens = tokens_of(text_of(case["line"]))
    names = text_of(case["fields"]).split()
    expect = mapping_of(case.get("expect"))
    wanted = [name for name in names if name != "next" or "next" in expect]
    return _compare(fields_of(tokens, wanted), expect)


def _compare(record: Record, expect: Fields) -> list[str]:
    found = []
    for name, expected in expect.items():
        if name == "tasks":
            hosts = record["execHosts"]
            assert isinstance(hosts, tuple)
            found += differing(name, dict(mapping_of(expected)), tasks_by_host(hosts))
        else:
            found += differing(name, _plain(expected), record.get(name))
    return found


def _plain(value: object) -> object:
    """
    Return a value of the file as the records have it.
    """
    if isinstance(value, float):
        return Decimal(str(value))
    return tuple(_plain(each) for each in value) if isinstance(value, list) else value


def _of_status(case: Fields) -> list[str]:
    expected = case.get("expect")
    wanted = [expected] if isinstance(expected, str) else list(items_of(expected))
    return differing("status", wanted, list(statuses_of(whole_of(case["jStatus"]))))


def _of_wait_status(case: Fields) -> list[str]:
    status = wait_status_of(whole_of(case["exitStatus"]))
    expect = mapping_of(case.get("expect"))
    found: dict[str, object] = {
        "code": status.code,
        "signal": status.signal,
        "shown": status.shown,
        "reading": status.reading,
    }
    return [line for name in expect for line in differing(name, expect[name], found.get(name))]


def _of_termination(case: Fields) -> list[str]:
    found = termination_of(whole_of(case["exitInfo"]))
    expect = case.get("expect")
    wanted = next(iter(mapping_of(expect).values())) if isinstance(expect, Mapping) else expect
    return differing("end", wanted, found.value if isinstance(found, Termination) else found)


def _of_termination_number(case: Fields) -> list[str]:
    expect = case.get("expect")
    wanted = (
        next(iter(mapping_of(expect).values()), None) if isinstance(expect, Mapping) else expect
    )
    return differing("number", wanted, Termination(text_of(case["term"])).number)


# ------------------------------------------------------------------------------------- reasons


def _of_given(case: Fields) -> list[str]:
    if set(TYPES).intersection(mapping_of(case["given"])):
        return of_types({**mapping_of(case["given"]), "expect": case.get("expect")})
    return _of_reasons(case)


def _of_reasons(case: Fields) -> list[str]:
    given, expect = mapping_of(case["given"]), mapping_of(case.get("expect"))
    if "jobs" in given:
        known_only(given, ["jobs"], "given")
        return _of_summary(mapping_of(given["jobs"]), expect)
    by_host = mapping_of(given.get("hosts"))
    if by_host and all(isinstance(code, str) for code in by_host.values()):
        return _of_hosts(by_host, expect)
    reasons = _reasons_of(given)
    counts = grouped(reasons)
    codes = {reason.text(): code_of(reason) for reason in reasons}
    found: dict[str, object] = {
        "order": [codes[words] for words, _ in counts],
        "counts": [count for _, count in counts],
    }
    line = show_grouped(reasons)
    differ = []
    for name, expected in expect.items():
        if name in LEVELS:
            differ += _level_differences(name, expected, reasons)
        elif name in {"singular", "plural"}:
            is_there = any(part.endswith(f": {expected}") for part in line.split("; "))
            differ += [] if is_there else [f"{name}: {expected!r} isn't in {line!r}"]
        else:
            differ += differing(name, expected, found.get(name))
    return differ


def _of_hosts(by_host: Fields, expect: Fields) -> list[str]:
    """
    Return what differs where the reason of each host is given by the host's name: hosts by level,
    or the grouped codes.
    """
    counted: dict[str, object] = {}
    for code in map(text_of, by_host.values()):
        counted[code] = whole_of(counted.get(code, 0)) + 1
    found = []
    for name, expected in expect.items():
        is_of_hosts = isinstance(expected, list) and set(expected) <= set(by_host)
        if name not in LEVELS or not is_of_hosts:
            found += _of_reasons({"given": {"hosts": counted}, "expect": {name: expected}})
            continue
        level = LEVELS[name]
        hosts = [
            host
            for host, code in by_host.items()
            if level == 3 or is_candidates(_reason_of(text_of(code), _hosts(1))) == (level > 0)
        ]
        found += differing(name, sorted(texts_of(expected)), sorted(hosts))
    return found


LEVELS: Final = {
    "p1": 1, "p2": 2, "p3": 3, "candidate": 2, "candidates": 2, "non_candidate": 0,
    "non_candidates": 0, "noncandidates": 0,
}  # fmt: skip
"""How much of the reasons is shown: the key one, those of candidate hosts, all; 0 for the rest."""


def _level_differences(name: str, expected: object, reasons: Sequence[PendReason]) -> list[str]:
    """
    Return what differs in the reasons that are shown on a level: codes, or codes with counts.
    """
    level = LEVELS[name]
    shown = [reason for reason in reasons if level == 3 or is_candidates(reason) == (level > 0)]
    counts = {code_of(reason): reason.host_count() for reason in shown}
    if isinstance(expected, Mapping):
        return differing(name, dict(expected), counts)
    if level == 1:
        return differing(name, expected, max(counts, key=lambda code: counts[code], default=None))
    wanted = sorted(map(text_of, items_of(expected)))
    return differing(name, wanted, sorted(counts))


def _reasons_of(given: Fields) -> list[PendReason]:
    """
    Return the reasons that a mapping of codes to counts of hosts stands for, or the one main
    reason.
    """
    known_only(given, ("main", "hosts"), "the reasons of a job")
    if "main" in given:
        return [_reason_of(text_of(given["main"]))]
    return [
        _reason_of(text_of(code), hosts=_hosts(whole_of(count)))
        for code, count in mapping_of(given.get("hosts")).items()
    ]


def _reason_of(code: str, hosts: tuple[HostSpan, ...] = ()) -> PendReason:
    """
    Return the reason that a vector's code stands for: ``HOST_RES_REQ``, ``HOST_JOB_RUSAGE(mem)``,
    ``RES_LIMIT(name,what)``.
    """
    word, _, about = code.rstrip(")").partition("(")
    name, is_limit, resource = about.rpartition(",")
    detail = name if is_limit else ""
    return PendReason(code=ReasonCode(word), resource=resource.lower(), detail=detail, hosts=hosts)


def _hosts(count: int) -> tuple[HostSpan, ...]:
    return (HostSpan(first=0, hosts=count),)


def _of_summary(jobs: Fields, expect: Fields) -> list[str]:
    reasons: Sequence[list[PendReason]] = [_reasons_of(mapping_of(job)) for job in jobs.values()]
    summary = summary_of(reasons)
    found: dict[str, object] = {
        "by_jobs": dict(summary.by_jobs),
        "occurrences": {code.value: count for code, count in summary.occurrences},
    }
    return [line for name in expect for line in differing(name, expect[name], found.get(name))]

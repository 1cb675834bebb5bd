"""
Run vectors of the kind ``format``: records of LSF's files, and how reasons are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from domain.allocations import HostSpan
from domain.reason_summary import summary_of
from domain.reasons import PendReason, ReasonCode, grouped, show_grouped
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
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    items_of,
    mapping_of,
    text_of,
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
        ("given", _of_reasons),
    ]
    for name, run in by_field:
        if name in case:
            return run(case)
    raise Malformed(f"nothing is known of a format case with {', '.join(case)}")


# ------------------------------------------------------------------------------------- records


def _of_record(case: Fields) -> list[str]:
    line, expect = text_of(case["line"]), mapping_of(case.get("expect"))
    if "fields" in expect:
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


# ------------------------------------------------------------------------------------- reasons


def _of_reasons(case: Fields) -> list[str]:
    given, expect = mapping_of(case["given"]), mapping_of(case.get("expect"))
    if "jobs" in given:
        return _of_summary(mapping_of(given["jobs"]), expect)
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
        if name in {"singular", "plural"}:
            is_there = any(part.endswith(f": {expected}") for part in line.split("; "))
            differ += [] if is_there else [f"{name}: {expected!r} isn't in {line!r}"]
        else:
            differ += differing(name, expected, found.get(name))
    return differ


def _reasons_of(given: Fields) -> list[PendReason]:
    """
    Return the reasons that a mapping of codes to counts of hosts stands for, or the one main
    reason.
    """
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

"""
Run vectors of the kind ``account``: what is available on a host, from reports, reservations and
use.
"""

from __future__ import annotations

from tools.conformance.core_trial import CoreTrial
from tools.conformance.features import refuse_left_out
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    mapping_of,
    mappings_of,
    whole_of,
)

AVAILABLE = ("available", "slack", "charged")


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    found = []
    for label, case in cases_of(vector.fields):
        if "host" not in case:
            raise Malformed("nothing is known of accounting without a host")
        found += [f"{label} {line}".strip() for line in _of_case(case)]
    return found


def _of_case(case: Fields) -> list[str]:
    """
    Let jobs run on one host with the reservations and the use that the case gives, then ask the
    core.
    """
    jobs = mappings_of(case.get("jobs"))
    host = {"name": "h1", "slots": len(jobs) + 1, **mapping_of(case["host"])}
    trial = CoreTrial({"cluster": {"hosts": [host]}})
    used = {}
    for number, job in enumerate(jobs):
        name = f"job{number}"
        trial.run({"id": name, "alloc": {"h1": 1}, "R": f"rusage[mem={whole_of(job['reserved'])}]"})
        used[name] = whole_of(job.get("used", 0))
    trial.report("h1", free_mb=whole_of(case["reported"]), used_mb=used)
    found = _amounts(trial, case)
    return [
        line
        for name, expected in mapping_of(case.get("expect")).items()
        for line in _difference(name, expected, found, trial, case)
    ]


def _amounts(trial: CoreTrial, case: Fields) -> dict[str, int]:
    memory = trial.memory_mb("h1")
    total = whole_of(mapping_of(case["host"])["maxmem"])
    reserved = sum(whole_of(job["reserved"]) for job in mappings_of(case.get("jobs")))
    return {
        "available": memory.available,
        "slack": memory.slack,
        "charged": memory.charged,
        "available_by_report": whole_of(case["reported"]) - memory.slack,
        "reservable_by_vendor_gate": total - reserved,
        "reservable_by_xce": total - memory.charged,
    }


def _difference(
    name: str, expected: object, found: dict[str, int], trial: CoreTrial, case: Fields
) -> list[str]:
    if name == "admit":
        return differing(name, expected, _is_admitted(trial, whole_of(case["request"])))
    if name.startswith("request_"):
        return differing(name, expected, _is_admitted(trial, int(name.removeprefix("request_"))))
    if name not in found:
        raise Malformed(f"nothing is known of expecting {name!r}")
    return differing(name, expected, found[name])


def _is_admitted(trial: CoreTrial, memory_mb: int) -> bool:
    """
    Say whether a job with such a reservation starts; it is ended again.
    """
    name = f"asks for {memory_mb}"
    trial.submit({"id": name, "R": f"rusage[mem={memory_mb}]"})
    trial.cycle()
    is_started = name in trial.observe().shares
    if is_started:
        trial.happen({"finish": [name]})
    return is_started

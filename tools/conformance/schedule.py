"""
Run vectors of the kind ``schedule``: a cluster and jobs, one cycle or several, and what comes of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tools.conformance.actions import Arrivals, carry_out
from tools.conformance.causes import with_causes
from tools.conformance.core_trial import CoreTrial
from tools.conformance.features import refuse_left_out
from tools.conformance.observed import compare
from tools.conformance.trial import NotYet, Trial
from tools.conformance.values import (
    Fields,
    Vector,
    cases_of,
    items_of,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)

MakeTrial = Callable[[Fields], Trial]

JOB_FIELDS: Final = (
    "n", "R", "q", "m", "W", "x", "user", "project", "sp", "b", "w", "J", "t", "We", "M", "Q", "r",
    "H", "hold", "rerunnable", "submit_type", "group", "ti", "c", "v", "p", "T", "G", "P",
)  # fmt: skip
"""In a case without jobs these describe the one job, called J."""


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    return differences_with(vector, CoreTrial)


def differences_with(vector: Vector, make_trial: MakeTrial) -> list[str]:
    """
    Return what differs when the vector is tried on schedulers that *make_trial* sets up.
    """
    found = []
    for label, case in cases_of(vector.fields):
        try:
            lines = _of_case(with_defaults(with_causes(case)), make_trial)
        except NotYet as missing:
            lines = [f"not yet: {missing}"]
        found += [f"{label} {line}".strip() for line in lines]
    return found


def with_defaults(case: Fields) -> Fields:
    """
    Return a case with a cluster and jobs, however briefly it says them.
    """
    filled = {**case, **_by_name(case)}
    if "hosts" in case and "cluster" not in case:
        filled["cluster"] = {"hosts": filled.pop("hosts")}
    if "cluster" in filled:
        filled["cluster"] = cluster_in(mapping_of(filled["cluster"]))
    for place in ("jobs", "running", "suspended"):
        if place in filled:
            filled[place] = [_placed(job) for job in _listed(filled[place], "id")]
    if "free" in case:
        hosts = [{"name": name, "slots": free} for name, free in mapping_of(case["free"]).items()]
        filled["cluster"] = {"hosts": hosts}
    if "jobs" not in case and _has_one_job(case):
        job = {name: case[name] for name in JOB_FIELDS if name in case}
        filled["jobs"] = [{"id": "J", **job}]
    filled.setdefault("jobs", [])
    if "cluster" not in filled:
        filled["cluster"] = {"hosts": [{"name": "h1"}]}
    expect = case.get("expect")
    if isinstance(expect, Mapping) and "sequence" in expect:
        # The order of all hosts shows in a job that fills them.
        slots = [
            host.get("slots", 4) for host in mappings_of(mapping_of(filled["cluster"]).get("hosts"))
        ]
        filled["jobs"] = [
            {"n": sum(map(whole_of, slots)), **job} for job in mappings_of(filled["jobs"])
        ]
    return filled


def cluster_in(cluster: Fields) -> Fields:
    """
    Return a cluster with its hosts and shared resources as lists, however briefly it says them.
    """
    shared = cluster.get("shared")
    if isinstance(shared, Mapping):
        shared = [
            {"name": name, **(each if isinstance(each, Mapping) else {"total": each})}
            for name, each in shared.items()
        ]
    found = {**cluster, "hosts": _listed(cluster.get("hosts"), "name")}
    return found if shared is None else {**found, "shared": shared}


OF_ONE_JOB: Final = frozenset(
    {"alloc", "first", "sequence", "run", "used", "pend", "reject", "vendor", "xce", "state"}
)
"""What is expected of a job that a case doesn't name."""


def _has_one_job(case: Fields) -> bool:
    """
    Say whether a case without jobs is about one job: it says something of it, expects something of
    it, or there is nothing else to look at.
    """
    if not {"running", "suspended", "ended"}.intersection(case):
        return True
    expect = case.get("expect")
    is_expected = isinstance(expect, Mapping) and bool(OF_ONE_JOB.intersection(expect))
    return is_expected or bool(set(JOB_FIELDS).intersection(case))


NAMED: Final = {"queues": "name", "users": "name", "limits": "NAME", "apps": "name"}
"""What may be told as a list, or as a mapping by name."""


def _by_name(case: Fields) -> Fields:
    return {
        field: _listed(case[field], name)
        for field, name in NAMED.items()
        if isinstance(case.get(field), Mapping | list)
    }


def _listed(value: object, name: str) -> list[Fields]:
    """
    Return a list of mappings; a bare name stands for one with nothing else.
    """
    if isinstance(value, Mapping):
        return [{name: text_of(each), **_more(name, more)} for each, more in value.items()]
    return [{name: each} if isinstance(each, str) else mapping_of(each) for each in items_of(value)]


def _more(name: str, told: object) -> Fields:
    """
    Return what is told of something by its name: of a host its slots, where it is a number.
    """
    return {"slots": told} if name == "name" and isinstance(told, int) else mapping_of(told)


def _placed(job: Fields) -> Fields:
    """
    Return a job that runs on hosts named by ``alloc``: a mapping, or one task on each that is
    named.
    """
    alloc = job.get("alloc")
    if isinstance(alloc, str | list):
        hosts = texts_of(alloc)
        return {**job, "alloc": {host: hosts.count(host) for host in dict.fromkeys(hosts)}}
    return job


def _of_case(case: Fields, make_trial: MakeTrial) -> list[str]:
    trial = make_trial(case)
    jobs = mappings_of(case.get("jobs"))
    arrivals = Arrivals(trial, jobs)
    arrivals.until(0)
    if any(job.get("just_submitted") for job in jobs):
        return compare(mapping_of(case.get("expect")), trial.observe())
    found = []
    for number, action in enumerate(mappings_of(case.get("actions")), 1):
        carry_out(trial, action, arrivals)
        lines = compare(mapping_of(action.get("expect")), trial.observe())
        found += [f"action {number}: {line}" for line in lines]
    steps = mappings_of(case.get("steps"))
    only = [{"clock": case.get("clock"), "expect": case.get("expect")}]
    for number, step in enumerate(steps or only, 1):
        carry_out(trial, step, arrivals)
        if not steps:
            arrivals.all()
        trial.cycle()
        seen = trial.observe()
        if not steps:
            # What is expected of the whole case is about all that was refused in it.
            seen.rejected_lately = None
        lines = compare(mapping_of(step.get("expect")), seen)
        prefix = f"step {number}: " if len(steps) > 1 else ""
        found += [f"{prefix}{line}" for line in lines]
    if steps and case.get("expect") is not None:
        seen = trial.observe()
        seen.rejected_lately = None
        found += compare(mapping_of(case.get("expect")), seen)
    return found

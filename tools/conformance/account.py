"""
Run vectors of the kind ``account``: what is available on a host, from reports, reservations and
use.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from domain.amounts import MEM
from domain.fairshare import HOUR_US, Use, decayed, dynamic_priority
from domain.resreq import parse
from domain.resreq.syntax import RusageTerm
from domain.resreq.timing import reserved_milli_at
from domain.units import (
    MILLI,
    MINUTE_US,
    SECOND_US,
    MemoryUnit,
    parse_memory_milli,
    show_milli,
)
from tools.conformance.core_policies import FACTORS, SWITCHES, rules_of
from tools.conformance.core_setup import MB_MILLI
from tools.conformance.core_trial import CoreTrial
from tools.conformance.features import refuse_left_out
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    items_of,
    known_only,
    mapping_of,
    mappings_of,
    text_of,
    whole_of,
)

TIMES: Final = (
    "at", "at_min", "minute", "minutes", "t", "t_min", "elapsed", "elapsed_min", "run_min",
    "after_min", "age_min", "at_s", "elapsed_s", "run_s",
)  # fmt: skip
"""Fields that may hold how long a job has run: minutes, or seconds where the name says so."""

DURATIONS: Final = ("duration", "duration_min", "duration_s")
JOB: Final = {"reserved", "used", "hosts", "R", "decay", *DURATIONS, *TIMES}
"""What is known of a job that has memory reserved."""


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    found = []
    for label, case in cases_of(vector.fields):
        if {"rusage", *DURATIONS}.intersection(case) or "rusage[" in text_of(case.get("R")):
            lines = _of_reservation(case)
        elif "shares" in case:
            lines = _of_priority(case)
        elif "usage_h" in case:
            lines = _of_decay(case)
        elif "host" in case:
            lines = _of_case(case)
        else:
            raise Malformed("nothing is known of accounting without a host or a duration")
        found += [f"{label} {line}".strip() for line in lines]
    return found


def _of_priority(case: Fields) -> list[str]:
    """
    Return what differs in an account's dynamic priority.
    """
    params = _params_of(case)
    use = Use(
        cpu_us=_hours_us(case, "cpu_h"),
        run_us=_hours_us(case, "run_h") + _hours_us(case, "hist_run_h"),
        # What is counted is what is left of it.
        committed_us=max(0, _hours_us(case, "committed_h") - _hours_us(case, "run_h")),
        slots=whole_of(case.get("slots", 0)),
    )
    found = dynamic_priority(whole_of(case["shares"]), use, rules_of(params))
    return _near("priority", case, found)


def _params_of(case: Fields) -> Fields:
    params = mapping_of(case.get("params"))
    known_only(params, {*FACTORS, *SWITCHES, "HIST_HOURS"}, "params")
    return params


def _of_decay(case: Fields) -> list[str]:
    """
    Return what differs in what is left of a use after a time.
    """
    params = {**_params_of(case), **case}
    history_us = rules_of({"HIST_HOURS": params.get("HIST_HOURS", 5)}).history_us
    left_us = decayed(_hours_us(case, "usage_h"), _hours_us(case, "age_h"), history_us)
    return _near("left", case, Fraction(left_us, HOUR_US))


def _hours_us(case: Fields, name: str) -> int:
    return int(Fraction(text_of(case.get(name, 0))) * HOUR_US)


def _near(what: str, case: Fields, found: Fraction) -> list[str]:
    wanted = Fraction(text_of(case.get("expect")))
    if abs(wanted - found) <= Fraction(text_of(case.get("tolerance", "0.0001"))):
        return []
    return [f"{what}: expected {float(wanted)}, found {float(found):.6f}"]


def _of_reservation(case: Fields) -> list[str]:
    """
    Return what differs in what a reservation is worth after some run time, in minutes.

    Expected is one amount at the case's time, or amounts by minute.
    """
    term = _term_of(case)
    found = []
    for step in mappings_of(case.get("steps")) or [case]:
        name = next((name for name in TIMES if name in step), "")
        unit_us = SECOND_US if name.endswith("_s") else MINUTE_US
        for what, minute, amount in _worths(step.get(name), step.get("expect")):
            if not text_of(minute).isdecimal():
                raise Malformed(f"nothing is known of expecting {text_of(minute)!r}")
            worth = reserved_milli_at(term, int(text_of(minute)) * unit_us)
            shown = Fraction(worth, MB_MILLI if term.resource == MEM else MILLI)
            if what == "factor":
                shown = Fraction(worth, term.milli)
            found += differing(f"{what} at minute {minute}", Fraction(text_of(amount)), shown)
    return found


def _worths(at: object, expect: object) -> list[tuple[str, object, object]]:
    """
    Return what is expected: of what, at which minute, and how much.
    """
    if isinstance(at, Mapping):
        return [("reserved", minute, amount) for minute, amount in at.items()]
    if not isinstance(expect, Mapping):
        expect = {"reserved": expect}
    ((what, amount),) = expect.items() if len(expect) == 1 else (("reserved", expect),)
    if isinstance(amount, Mapping):
        return [(text_of(what), minute, each) for minute, each in amount.items()]
    if at is None:
        return [("reserved", minute, each) for minute, each in expect.items()]
    if isinstance(at, list):
        amounts = items_of(amount)
        return [(text_of(what), *pair) for pair in zip(at, amounts, strict=True)]
    return [(text_of(what), at, amount)]


def _term_of(case: Fields) -> RusageTerm:
    text = text_of(case.get("R"))
    if not text and "rusage" in case:
        text = f"rusage[{text_of(case['rusage']).removeprefix('rusage[').rstrip(']')}]"
    if not text:
        name = next((name for name in DURATIONS if name in case), "")
        duration = text_of(case.get(name)) + "s" * name.endswith("_s")
        reserved = text_of(case.get("reserved", case.get("mem")))
        more = f":duration={duration}:decay={whole_of(case.get('decay', 0))}" if duration else ""
        text = f"rusage[mem={reserved}{more}]"
    return parse(text).only.rusage[0][0]


def _memory_milli(value: object) -> int:
    """
    Return an amount of memory that is told in MB.
    """
    return parse_memory_milli(text_of(value), unit=MemoryUnit.MB)


def _reserved_milli(job: Fields) -> int:
    """
    Return what a job's reservation of memory is worth now.
    """
    known_only(job, JOB, "a job")
    if job.get("reserved") is None and "R" not in job:
        return 0
    name = next((name for name in TIMES if name in job), "")
    unit_us = SECOND_US if name.endswith("_s") else MINUTE_US
    return reserved_milli_at(_term_of(job), whole_of(job.get(name, 0)) * unit_us)


def _jobs_of(case: Fields) -> list[Fields]:
    """
    Return the jobs of a case; how long they have run may be said once for all of them.
    """
    at = {name: case[name] for name in TIMES if name in case}
    return [{**at, **job} for job in mappings_of(case.get("jobs"))]


def _of_case(case: Fields) -> list[str]:
    """
    Let jobs run on one host with the reservations and the use that the case gives, then ask the
    core.
    """
    jobs = _jobs_of(case)
    host = {"name": "h1", "slots": len(jobs) + 1, **mapping_of(case["host"])}
    trial = CoreTrial({"cluster": {"hosts": [host]}})
    used = {}
    for number, job in enumerate(jobs):
        name = f"job{number}"
        reserved_kib = show_milli(_reserved_milli(job))
        trial.run({"id": name, "alloc": {"h1": 1}, "R": f"rusage[mem={reserved_kib}K]"})
        used[name] = _memory_milli(job.get("used") or 0)
    free = case.get("reported")
    trial.report("h1", free_milli=None if free is None else _memory_milli(free), used_milli=used)
    found = _amounts(trial, case)
    return [
        line
        for name, expected in mapping_of(case.get("expect")).items()
        for line in _difference(name, expected, found, trial, case)
    ]


def _amounts(trial: CoreTrial, case: Fields) -> dict[str, Fraction]:
    """
    Return what can be asked of the memory of the host, in MB.
    """
    memory = trial.memory("h1")
    total = _memory_milli(mapping_of(case["host"])["maxmem"])
    reserved = sum(map(_reserved_milli, _jobs_of(case)))
    free = case.get("reported")
    found = {
        "available": memory.available_milli,
        "slack": memory.slack_milli,
        "charged": memory.charged_milli,
        "available_by_report": (total if free is None else _memory_milli(free))
        - memory.slack_milli,
        "reservable_by_vendor_gate": total - reserved,
        "reservable_by_xce": total - memory.charged_milli,
    }
    return {name: Fraction(milli, MB_MILLI) for name, milli in found.items()}


def _difference(
    name: str, expected: object, found: dict[str, Fraction], trial: CoreTrial, case: Fields
) -> list[str]:
    if name == "admit":
        return differing(name, expected, _is_admitted(trial, whole_of(case["request"])))
    if name.startswith("request_"):
        return differing(name, expected, _is_admitted(trial, int(name.removeprefix("request_"))))
    if name not in found:
        raise Malformed(f"nothing is known of expecting {name!r}")
    shown = found[name]
    if isinstance(expected, int | float) and Fraction(text_of(expected)) == shown:
        return []
    return differing(name, expected, float(shown))


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

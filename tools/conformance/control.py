"""
Run vectors of the kind ``control``: commands about jobs, what happens to them, and their states
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tools.conformance import array_names, dependencies, shown
from tools.conformance.actions import Arrivals, carry_out
from tools.conformance.brief import brief_actions, with_given
from tools.conformance.core_trial import CoreTrial
from tools.conformance.features import refuse_left_out
from tools.conformance.observed import compare
from tools.conformance.schedule import JOB_FIELDS, MakeTrial, with_defaults
from tools.conformance.shape import STATES
from tools.conformance.trial import NotYet, Trial
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)

Run = Callable[[Vector], list[str]]

UNTIL_NEXT_CYCLE: Final = frozenset(
    {"JOB_NEW", "JOB_REQUEUED", "JOB_SWITCH", "JOB_MODIFY", "USER_RESUME", "SBD_JOB_REQUEUE",
     "USER_STOP", "ADMIN_STOP", "QUE_PRE_FAIL", "JOB_PRE_EXEC"}
)  # fmt: skip
"""Reasons that hold until the next cycle: it isn't held before they are looked at."""


ENDS_OF_QUEUE: Final = {"top": 0, "first": 0, "head": 0, "bottom": -1, "last": -1, "tail": -1}
"""Words for where a job stands among those that wait."""

SEEN_ELSEWHERE: Final = frozenset({"killed_at", "hold_variant", "position"})
SWITCHED_AT: Final = 7
"""A later minute than that of the submission, so that it shows whether a switch counts as one."""

"""Expectations that aren't looked at once everything has happened."""


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    cases = [case for _, case in cases_of(vector.fields)]
    if any("w" in case and _is_verdict(case) for case in cases):
        return dependencies.differences(vector)
    if all({"term", "exitInfo"}.intersection(case) for case in cases):
        return shown.differences(vector)
    if all("J" in case for case in cases):
        return array_names.differences(vector)
    return differences_with(vector, CoreTrial)


def _is_verdict(case: Fields) -> bool:
    """
    Say whether a case with a dependency is about the condition itself, not about a job that waits.
    """
    expect = case.get("expect")
    is_of_job = isinstance(expect, Mapping) and "reject" not in expect
    return "expect_elements" in case or not is_of_job


def differences_with(vector: Vector, make_trial: MakeTrial) -> list[str]:
    """
    Return what differs when the vector is tried on schedulers that *make_trial* sets up.
    """
    found = []
    for label, case in cases_of(vector.fields):
        try:
            lines = _of_case(_with_one_job(with_given(_transition(case))), make_trial)
        except NotYet as missing:
            lines = [f"not yet: {missing}"]
        found += [f"{label} {line}".strip() for line in lines]
    return found


def _transition(case: Fields) -> Fields:
    """
    Return a case; where it tells from which state to which, the latter is expected.
    """
    if case.get("to") not in STATES or "expect" in case:
        return case
    rest = {name: value for name, value in case.items() if name != "to"}
    return {**rest, "expect": {"state": case["to"]}}


def _with_one_job(case: Fields) -> Fields:
    """
    Return a case with the one job, in the state that is said, that brief cases are about.
    """
    if isinstance(case.get("queue"), Mapping):
        queue = {"name": "normal", **mapping_of(case["queue"])}
        case = {**{name: value for name, value in case.items() if name != "queue"},
                "queues": [queue]}  # fmt: skip
    if {"running", "jobs", "suspended"}.intersection(case):
        return with_defaults({"jobs": [], **case})
    ended = next(
        (name for name in ("exit_code", "signal", "pre_exec_exit", "over") if name in case), None
    )
    before = case.get("from") if case.get("from") in STATES else None
    state = text_of(case.get("state") or before or ("PEND" if ended is None else "RUN"))
    job: Fields = {name: case[name] for name in JOB_FIELDS if name in case}
    if "over" in case:
        job = {**job, "over": case["over"]}
    if "from" in case and case["from"] not in STATES:
        job = {**job, "q": case["from"]}
    if state == "PSUSP":
        job = {**job, "hold": True}
    if state in {"PEND", "PSUSP"}:
        return with_defaults({**case, "jobs": [{"id": "J", **job}]})
    if state in {"DONE", "EXIT"}:
        return with_defaults({**case, "jobs": [], "ended": {"J": int(state == "EXIT")}})
    if state not in {"RUN", "USUSP", "SSUSP"}:
        raise Malformed(f"a job can't be {state} from the beginning")
    where = "running" if state == "RUN" else "suspended"
    more = {"by": "preemption" if state == "SSUSP" else "user"} if state != "RUN" else {}
    hosts = mappings_of(mapping_of(case.get("cluster")).get("hosts"))
    host = case.get("host") or (hosts[0]["name"] if hosts else "h1")
    placed = {"id": "J", "alloc": {host: job.get("n", 1)}, **job, **more}
    return with_defaults({**case, "jobs": [], where: [placed]})


def _of_case(case: Fields, make_trial: MakeTrial) -> list[str]:
    trial = make_trial(case)
    arrivals = Arrivals(trial, mappings_of(case.get("jobs")))
    arrivals.all()
    expect = _expectations_of(case)
    if "position" in expect:
        trial.go_to(SWITCHED_AT)
    found = _carried_out(trial, case, arrivals)
    if "position" in expect:
        found += _place_differences(trial, text_of(expect["position"]))
    for option, state in mapping_of(expect.get("hold_variant")).items():
        found += _requeue_differences(case, make_trial, option, state)
    if "killed_at" in expect:
        found += _kill_differences(trial, whole_of(expect["killed_at"]))
    return found + _compared(trial, case, expect)


def _expectations_of(case: Fields) -> Fields:
    """
    Return what a case expects: a word alone is the state of its one job.
    """
    expect = case.get("expect")
    return {"state": expect} if isinstance(expect, str) else mapping_of(expect)


def _carried_out(trial: Trial, case: Fields, arrivals: Arrivals) -> list[str]:
    """
    Let the actions and steps of a case happen; return what differs from what is expected meanwhile.
    """
    found = []
    for action in [*mappings_of(case.get("actions")), *brief_actions(case)]:
        carry_out(trial, action, arrivals)
        if "expect" in action:
            found += _compared(trial, case, mapping_of(action["expect"]))
    for step in mappings_of(case.get("steps")):
        carry_out(trial, step, arrivals)
        trial.cycle()
        found += compare(mapping_of(step.get("expect")), trial.observe())
    return found


def _compared(trial: Trial, case: Fields, wanted: Fields) -> list[str]:
    """
    Return what differs once everything has happened.
    """
    found = []
    expect = {name: value for name, value in wanted.items() if name not in SEEN_ELSEWHERE}
    is_told_by_host = "exit_code" in case or "signal" in case
    is_ended = "term" in expect or "over" in case
    if "code" in expect and is_ended and not is_told_by_host:
        # Of a job that was ended the number of the reason is meant, not an exit code.
        expect["term_number"] = expect.pop("code")
    signals = expect.pop("signals", None)
    if isinstance(signals, list):
        found += differing("signals", signals, trial.observe().kill_signals)
    elif signals is not None:
        expect["signals"] = signals
    if _needs_a_cycle(expect) or _waits_for_others(case):
        trial.cycle()
    return found + compare(expect, trial.observe())


def _place_differences(trial: Trial, position: str) -> list[str]:
    """
    Return what differs from the place that a switched job is expected to have among its equals.
    """
    seen = trial.observe()
    if position in ENDS_OF_QUEUE:
        waiting = [job for job in seen.order if job in seen.waiting]
        return differing("place", waiting[ENDS_OF_QUEUE[position]], seen.only_job())
    if position != "as_new_submission":
        raise Malformed(f"nothing is known of the position {position!r}")
    return differing("counts from minute", SWITCHED_AT, seen.queued_min.get(seen.only_job()))


def _requeue_differences(
    case: Fields, make_trial: MakeTrial, option: str, state: object
) -> list[str]:
    """
    Return what differs when jobs are put back with an option: they are in that state then.
    """
    actions: list[Fields] = []
    names: list[str] = []
    for action in mappings_of(case.get("actions")):
        jobs = texts_of(action.get("brequeue"))
        names += jobs
        actions.append({**action, "brequeue": dict.fromkeys(jobs, option)} if jobs else action)
    if not names:
        raise Malformed("hold_variant is about a brequeue, and there is none")
    expect = {"states": dict.fromkeys(names, state)}
    varied = _of_case({**case, "actions": actions, "expect": expect}, make_trial)
    return [f"with {option}: {line}" for line in varied]


def _kill_differences(trial: Trial, minute: int) -> list[str]:
    """
    Return what differs from being killed at that minute, and not before.
    """
    found = []
    trial.cycle()
    for at, is_alive in ((minute - 1, True), (minute, False)):
        trial.go_to(at)
        trial.cycle()
        states = trial.observe().states.values()
        found += differing(f"runs at minute {at}", is_alive, "RUN" in states)
    return found


def _waits_for_others(case: Fields) -> bool:
    """
    Say whether a job depends on others: only a cycle shows what became of it.
    """
    return any("w" in job for job in mappings_of(case.get("jobs")))


def _needs_a_cycle(expect: Fields) -> bool:
    """
    Say whether something is expected that only a cycle brings about.
    """
    if "dispatch" in expect or expect.get("reason", "JOB_NEW") not in UNTIL_NEXT_CYCLE:
        return True
    pend = expect.get("pend")
    if not isinstance(pend, Mapping):
        return False
    wanted_of_jobs = [pend] if {"main", "hosts", "any"}.intersection(pend) else pend.values()
    for wanted in wanted_of_jobs:
        is_lasting = isinstance(wanted, Mapping) and wanted.get("main") not in UNTIL_NEXT_CYCLE
        if is_lasting:
            return True
    return False

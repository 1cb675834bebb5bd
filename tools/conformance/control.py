"""
Run vectors of the kind ``control``: commands about jobs, what happens to them, and their states
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tools.conformance import array_names, dependencies
from tools.conformance.core_trial import CoreTrial
from tools.conformance.features import refuse_left_out
from tools.conformance.observed import compare
from tools.conformance.schedule import MakeTrial, with_defaults
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

UNTIL_NEXT_CYCLE: Final = frozenset({"JOB_NEW", "JOB_REQUEUED", "JOB_SWITCH", "JOB_MODIFY"})
"""Reasons that hold until the next cycle: it isn't held before they are looked at."""

SEEN_ELSEWHERE: Final = frozenset({"killed_at", "hold_variant", "position"})
SWITCHED_AT: Final = 7
"""A later minute than that of the submission, so that it shows whether a switch counts as one."""

"""Expectations that aren't looked at once everything has happened."""

NOT_ACTIONS: Final = frozenset({"by", "at", "expect", "cycle"})


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    refuse_left_out(vector)
    cases = [case for _, case in cases_of(vector.fields)]
    if any("w" in case for case in cases):
        return dependencies.differences(vector)
    if all("J" in case for case in cases):
        return array_names.differences(vector)
    return differences_with(vector, CoreTrial)


def differences_with(vector: Vector, make_trial: MakeTrial) -> list[str]:
    """
    Return what differs when the vector is tried on schedulers that *make_trial* sets up.
    """
    found = []
    for label, case in cases_of(vector.fields):
        try:
            lines = _of_case(_with_one_job(case), make_trial)
        except NotYet as missing:
            lines = [f"not yet: {missing}"]
        found += [f"{label} {line}".strip() for line in lines]
    return found


def _with_one_job(case: Fields) -> Fields:
    """
    Return a case with the one job, running or not, that brief cases are about.
    """
    if "running" in case or "jobs" in case:
        return with_defaults({"jobs": [], **case})
    ended = next(
        (name for name in ("exit_code", "signal", "pre_exec_exit", "over") if name in case), None
    )
    is_running = ended is not None or case.get("state") == "RUN"
    job: Fields = {name: case[name] for name in ("n", "q", "W") if name in case}
    if "over" in case:
        job = {**job, "over": case["over"]}
    if "from" in case:
        job = {**job, "q": case["from"]}
    if not is_running:
        return with_defaults({**case, "jobs": [{"id": "J", **job}]})
    filled = {
        **case,
        "jobs": [],
        "running": [{"id": "J", "alloc": {case.get("host", "h1"): 1}, **job}],
    }
    return with_defaults(filled)


def _of_case(case: Fields, make_trial: MakeTrial) -> list[str]:
    trial = make_trial(case)
    for job in mappings_of(case.get("jobs")):
        if "submit" in job:
            trial.go_to(whole_of(job["submit"]))
        trial.submit(job)
    expect = mapping_of(case.get("expect"))
    if "position" in expect:
        trial.go_to(SWITCHED_AT)
    found = _carried_out(trial, case)
    if "position" in expect:
        found += _place_differences(trial, text_of(expect["position"]))
    for option, state in mapping_of(expect.get("hold_variant")).items():
        found += _requeue_differences(case, make_trial, option, state)
    if "killed_at" in expect:
        found += _kill_differences(trial, whole_of(expect["killed_at"]))
    return found + _compared(trial, case, expect)


def _carried_out(trial: Trial, case: Fields) -> list[str]:
    """
    Let the actions and steps of a case happen; return what differs from what is expected meanwhile.
    """
    found = []
    for action in [*mappings_of(case.get("actions")), *_brief_action(case)]:
        _act(trial, action)
        if "expect" in action:
            if _needs_a_cycle(mapping_of(action["expect"])):
                trial.cycle()
            found += compare(mapping_of(action["expect"]), trial.observe())
    for step in mappings_of(case.get("steps")):
        trial.happen(step)
        trial.cycle()
        found += compare(mapping_of(step.get("expect")), trial.observe())
    return found


def _compared(trial: Trial, case: Fields, wanted: Fields) -> list[str]:
    """
    Return what differs once everything has happened.
    """
    found = []
    expect = {name: value for name, value in wanted.items() if name not in SEEN_ELSEWHERE}
    if "over" in case and "code" in expect:
        # Of a job over its limit the number of the reason is meant, not an exit code.
        expect["term_number"] = expect.pop("code")
    signals = expect.pop("signals", None)
    if isinstance(signals, list):
        found += differing("signals", signals, trial.observe().kill_signals)
    elif signals is not None:
        expect["signals"] = signals
    if _needs_a_cycle(expect):
        trial.cycle()
    return found + compare(expect, trial.observe())


def _place_differences(trial: Trial, position: str) -> list[str]:
    """
    Return what differs from the place that a switched job is expected to have among its equals.
    """
    if position != "as_new_submission":
        raise Malformed(f"nothing is known of the position {position!r}")
    seen = trial.observe()
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


def _brief_action(case: Fields) -> list[Fields]:
    """
    Return what a brief case does to its one job J.
    """
    if "exit_code" in case:
        return [{"exit": {"J": case["exit_code"]}}]
    if "signal" in case:
        return [{"killed": {"J": case["signal"]}}]
    if "pre_exec_exit" in case:
        return [{"pre_exec": {"J": case["pre_exec_exit"]}}]
    if "over" in case:
        return [{"over": {"J": case["over"]}}]
    if "set" in case:
        return [{"bmod": {"J": case["set"]}}]
    return [{"bswitch": {"J": case["to"]}}] if "to" in case else []


def _act(trial: Trial, action: Fields) -> None:
    if "at" in action:
        trial.go_to(whole_of(action["at"]))
    if action.get("cycle"):
        trial.cycle()
    by = text_of(action.get("by") or "u1")
    for name, about in action.items():
        if name in NOT_ACTIONS:
            continue
        if isinstance(about, Mapping):
            for job, value in about.items():
                trial.act(name, text_of(job), value, by=by)
        else:
            for job in texts_of(about):
                trial.act(name, job, None, by=by)


def _needs_a_cycle(expect: Fields) -> bool:
    """
    Say whether something is expected that only a cycle brings about.
    """
    if "dispatch" in expect:
        return True
    pend = expect.get("pend")
    if not isinstance(pend, Mapping):
        return False
    for wanted in pend.values():
        is_lasting = isinstance(wanted, Mapping) and wanted.get("main") not in UNTIL_NEXT_CYCLE
        if is_lasting:
            return True
    return False

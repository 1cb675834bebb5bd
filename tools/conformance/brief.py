"""
What brief cases do to their one job, J: a verb as a field, or what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tools.conformance.actions import ACTIONS, ADMINISTRATORS, SAME
from tools.conformance.schedule import JOB_FIELDS
from tools.conformance.values import Fields, Malformed, mapping_of, mappings_of, text_of

VERBS: Final = ("action", "do", "cmd", "command", "event")
"""Fields that name a verb, with an option behind it: ``bkill -r``."""

OF_ONE_JOB: Final = {
    "exit_code": "exit",
    "signal": "killed",
    "pre_exec_exit": "pre_exec",
    "over": "over",
    "set": "bmod",
    "to": "bswitch",
}
"""Fields that say what becomes of the job, and the action that it is."""

FIELDS: Final = frozenset({*VERBS, *OF_ONE_JOB, *ACTIONS, *SAME, "by", "killed_by", "external"})

CYCLES: Final = frozenset({"dispatch", "cycle", "schedule"})
"""Verbs that let a cycle happen."""

OWNERS: Final = frozenset({"owner", "user", "self"})


def brief_actions(case: Fields) -> list[Fields]:
    """
    Return what a brief case does to its one job.
    """
    for field, name in OF_ONE_JOB.items():
        if field in case:
            return [{name: {"J": case[field]}, "by": _who(case)}]
    if "killed_by" in case:
        return [{"bkill": "J", "by": _who({"by": case["killed_by"]})}]
    for field in VERBS:
        if field in case:
            verb, _, option = text_of(case[field]).partition(" ")
            return [_action(verb, option, case)]
    for name in (*ACTIONS, *SAME):
        if name in case:
            value = case[name]
            option = "" if value is True or value == "J" else text_of(value)
            return [_action(name, option, case)]
    return []


def with_given(case: Fields) -> Fields:
    """
    Return a case in which the jobs that it gives by their states are there: they run, wait or have
    ended before anything else happens.
    """
    given = mapping_of(case.get("given"))
    if not given:
        return case
    ended: dict[str, object] = {}
    places: dict[str, list[Fields]] = {"running": [], "suspended": [], "jobs": []}
    for name, told in given.items():
        state, code = next(iter(told.items())) if isinstance(told, Mapping) else (told, None)
        if state in {"DONE", "EXIT"}:
            ended[name] = (1 if state == "EXIT" else 0) if code is None else code
        elif state in PLACES:
            place, more = PLACES[text_of(state)]
            places[place].append({"id": name, **more})
        else:
            raise Malformed(f"nothing is known of a job that is {state!r} from the beginning")
    own = mappings_of(case.get("jobs"))
    if "w" in case:
        own = [{"id": "J", **{name: case[name] for name in JOB_FIELDS if name in case}}]
    filled = {name: value for name, value in case.items() if name != "given"}
    return {
        **filled,
        "ended": ended,
        "running": [*places["running"], *mappings_of(case.get("running"))],
        "suspended": [*places["suspended"], *mappings_of(case.get("suspended"))],
        "jobs": [*places["jobs"], *own],
    }


PLACES: Final[Mapping[str, tuple[str, Fields]]] = {
    "RUN": ("running", {}),
    "USUSP": ("suspended", {"by": "user"}),
    "SSUSP": ("suspended", {"by": "preemption"}),
    "PEND": ("jobs", {"b": 100_000}),
    "PSUSP": ("jobs", {"hold": True}),
}
"""Where a job of each state stands in a case, and what more is said of it."""


def _action(verb: str, option: str, case: Fields) -> Fields:
    if verb in CYCLES:
        return {"cycle": True}
    if verb not in ACTIONS and verb not in SAME:
        raise Malformed(f"nothing is known of the action {verb!r}")
    value = int(option) if option.isdecimal() else option
    return {verb: {"J": value} if option else "J", "by": _who(case)}


def _who(case: Fields) -> str:
    """
    Return the user who does it.
    """
    word = text_of(case.get("by"))
    if word in ADMINISTRATORS:
        return "admin"
    return text_of(case.get("user") or "u1") if word in OWNERS or not word else word

"""
What application profiles make of what jobs ask for: a part of the obvious slow scheduler,
``model.py``.
"""

from __future__ import annotations

from dataclasses import replace

from tests.model import Ask, Exits, Model, Part, Profile


def wanted(model: Model, ask: Ask) -> Ask:
    """
    Return what holds for a job: its own word where the profile lets it have one.
    """
    profile = model.profiles.get(ask.profile)
    if profile is None:
        return ask
    found = replace(ask)
    if profile.tasks is not None and not (names_tasks(ask) and profile.tasks_mark == "default"):
        found.tasks_min, found.tasks_max = profile.tasks
    if ask.run_limit_us is None or profile.run_limit_mark == "fixed":
        found.run_limit_us = profile.run_limit_us or ask.run_limit_us
    found.exits = (ask.exits or Exits()).over(profile.exits or Exits())
    if profile.exits_mark == "fixed":
        found.exits = (profile.exits or Exits()).over(ask.exits or Exits())
    found.is_rerunnable = ask.is_rerunnable or profile.is_rerunnable
    found.branches = [
        replace(branch, parts=[_with_flags(part, profile) for part in branch.parts])
        for branch in ask.branches
    ]
    if profile.resreq is None or ask.branches:
        return found
    part = profile.resreq
    if profile.resreq_mark != "fixed":
        part = _merged(part, ask)
    found.needs, found.flags, found.order, found.same = (
        part.needs, part.flags, part.order, part.same
    )  # fmt: skip
    found.span, found.ptile = part.span, part.ptile
    return found


def _with_flags(part: Part, profile: Profile) -> Part:
    flags = () if profile.resreq is None else profile.resreq.flags
    return replace(part, flags=(*part.flags, *flags))


def _merged(part: Part, ask: Ask) -> Part:
    """
    Return a profile's requirement with a job's own: selects of both, each amount, the order and the
    span of the job where it has them.
    """
    own = ask.own()
    span = own if own.span else part
    return Part(
        needs={**part.needs, **own.needs},
        flags=(*own.flags, *part.flags),
        span=span.span,
        ptile=span.ptile,
        order=own.order or part.order,
        same=own.same or part.same,
    )


def names_tasks(ask: Ask) -> bool:
    """
    Say whether a job says how many tasks it has; a single one is what nothing said means.
    """
    return bool(ask.branches) or (ask.tasks_min, ask.tasks_max) != (1, 1)


def says_otherwise(part: Part, ask: Ask) -> bool:
    """
    Say whether a job has another requirement than a fixed one.
    """
    own = ask.own()
    both = [(each.needs, each.flags, each.span, each.order, each.same) for each in (own, part)]
    return bool(ask.branches) or (any(both[0]) and both[0] != both[1])


def is_allowed(model: Model, ask: Ask) -> bool:
    """
    Say whether a job says nothing otherwise that its profile fixes.
    """
    profile = model.profiles.get(ask.profile)
    if profile is None:
        return True
    tasks = (ask.tasks_min, ask.tasks_max)
    found = (
        (profile.tasks, profile.tasks_mark, names_tasks(ask) and tasks != profile.tasks),
        (
            profile.run_limit_us,
            profile.run_limit_mark,
            ask.run_limit_us not in (None, profile.run_limit_us),
        ),
        (profile.exits, profile.exits_mark, ask.exits not in (None, profile.exits)),
        (
            profile.resreq,
            profile.resreq_mark,
            profile.resreq is not None and says_otherwise(profile.resreq, ask),
        ),
    )
    return not any(
        value is not None and mark == "fixed" and differs for value, mark, differs in found
    )

"""
Check a job's resource requirement against what the cluster has, and parse it.

A requirement is stored as written and parsed: loading never parses again.
"""

from __future__ import annotations

from typing import Final

from domain.amounts import SLOTS
from domain.effective import names_tasks
from domain.errors import Refused
from domain.jobs import JobSpec
from domain.resources import ResourceLayer
from domain.resreq import parse
from domain.resreq.check import check, names_in
from domain.resreq.expressions import DEPTH_MAX
from domain.resreq.merge import terms_of
from domain.resreq.syntax import (
    Per,
    Primary,
    Requirement,
    RusageTerm,
    depth,
    simple_requirement,
)
from domain.resreq.tasks import TaskRange, check_tasks
from domain.units import show_milli
from projections.scheduling.state import State

FIELD: Final = "resreq"


def with_requirement(state: State, spec: JobSpec) -> JobSpec:
    """
    Return the job with its requirement parsed and checked.

    Raises:
        Refused: It isn't understood, names what nobody has, or asks for what can't be done.
    """
    if not spec.resreq:
        if spec.requirement is not None and not state.is_known(spec.requirement):
            checked(state, spec.requirement)
        if spec.requirement is not None:
            _check_tasks(spec, spec.requirement)
        return spec
    requirement = state.parsed.get(spec.resreq)
    if requirement is None:
        requirement = parsed(state, spec.resreq)
        state.remember_parsed(spec.resreq, requirement)
    _check_tasks(spec, requirement)
    return spec.model_copy(update={"requirement": requirement})


def parsed(state: State, texts: tuple[str, ...]) -> Requirement:
    """
    Return texts parsed and checked against what the cluster has.

    Raises:
        Refused: They aren't understood, name what nobody has, or ask for what can't be done.
    """
    catalogue = state.catalogue
    settings = catalogue.parse_settings(state.settings().memory_unit)
    requirement = check(parse(texts, settings=settings), catalogue, texts=texts)
    _check(state, requirement)
    return requirement


def checked(state: State, requirement: Requirement) -> None:
    """
    Check a requirement that was given parsed against what the cluster has.

    Raises:
        Refused: It names what nobody has, asks for what can't be done, or is nested deeper than
            one that is parsed here.
    """
    for compound in requirement.compounds:
        for primary in compound.primaries:
            if primary.select is not None and depth(primary.select) > DEPTH_MAX:
                rule = f"must not have expressions nested more than {DEPTH_MAX} deep"
                raise Refused("requirement", rule)
    _check(state, check(requirement, state.catalogue))


def _check_tasks(spec: JobSpec, requirement: Requirement) -> None:
    """
    Refuse counts of a compound that -n contradicts.
    """
    if requirement.is_simple:
        return
    asked = TaskRange(spec.tasks_min, spec.tasks_max) if names_tasks(spec) else None
    check_tasks(requirement, asked)


def _check(state: State, requirement: Requirement) -> None:
    """
    Refuse what the language can say and nobody could carry out.
    """
    for term in terms_of(requirement):
        _check_term(state, term)
    for compound in requirement.compounds:
        for primary in compound.primaries:
            affinity = primary.affinity
            if affinity is None:
                continue
            name = f"{affinity.unit}s"
            if not state.capacity.counts(name):
                rule = f"affinity counts {name}, and no host has {name} to count"
                raise Refused(FIELD, rule, f"affinity[{affinity.unit}({affinity.count})]")


def _check_term(state: State, term: RusageTerm) -> None:
    found = state.catalogue.get(term.resource)
    if found is None:
        return
    if found.is_load and found.lower_is_better:
        rule = f"{term.resource} can't be reserved: less of it is better, so nothing holds it"
        raise Refused(FIELD, rule, term.resource, "Ask for it in select[...] instead.")
    if found.layer is ResourceLayer.INSTANCE and term.per is Per.JOB:
        rule = f"{term.resource} comes in units with names, for each task or host"
        raise Refused(FIELD, rule, show_milli(term.milli))


def notes_of(requirement: Requirement | None) -> tuple[str, ...]:
    """
    Return what of a requirement is kept but not carried out yet, for whoever submits it.
    """
    if requirement is None:
        return ()
    timed = [
        term.resource
        for term in terms_of(requirement)
        if term.duration_us is not None or term.is_decaying or term.phases
    ]
    return tuple(
        f"{name} is held until the job ends: duration and decay aren't carried out yet"
        for name in dict.fromkeys(timed)
    )


def parsed_select(state: State, text: str, field: str) -> Requirement | None:
    """
    Return a select parsed and checked, None for no text.

    Raises:
        Refused: It isn't understood, or is more than a select.
    """
    if not text:
        return None
    try:
        requirement = parsed(state, (text,))
    except Refused as refused:
        raise Refused(field, refused.rule, refused.value, refused.hint) from refused
    select = requirement.only.select if requirement.is_simple else None
    if select is None or requirement != simple_requirement(Primary(select=select)):
        raise Refused(field, "must be a select alone", text)
    for name in sorted(names_in(select)):
        descriptor = state.catalogue.get(name)
        is_taken = descriptor is not None and descriptor.is_consumable and not descriptor.is_load
        if name == SLOTS or is_taken:
            rule = f"must look at what hosts report; {name} changes with the jobs themselves"
            raise Refused(field, rule, text)
    return requirement

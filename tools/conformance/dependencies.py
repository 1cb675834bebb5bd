"""
Run vectors about dependencies: conditions over jobs whose states are given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.arrays import parse_job_name
from domain.dependency import (
    JobRef,
    ParentElement,
    bind,
    evaluate,
    parse_dependency,
)
from domain.errors import Refused
from domain.job_states import JobState
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    known_only,
    mapping_of,
    text_of,
    whole_of,
)
from tools.conformance.written import is_yes

ORDINALS = ("_first", "_second", "_third", "_last")
"""``a_first`` and ``a_second`` are two jobs of the name ``a``."""


@dataclass(slots=True)
class GivenJobs:
    """
    Be a user's jobs as a vector gives them, numbered in their order.
    """

    names: list[str]
    jobs: list[list[ParentElement]]

    def numbers(self, ref: JobRef) -> Sequence[int]:
        """
        Return the numbers of the jobs that a reference names.
        """
        if ref.number:
            return [ref.number] if ref.number <= len(self.jobs) else []
        prefix = ref.name.removesuffix("*")
        return [
            number
            for number, name in enumerate(self.names, 1)
            if name == ref.name or (ref.name.endswith("*") and name.startswith(prefix))
        ]

    def indices(self, number: int) -> Sequence[int] | None:
        """
        Return the indices of an array, None for a job that is none.
        """
        indices = [element.index for element in self.jobs[number - 1]]
        return None if indices == [0] else indices

    def elements(self, number: int) -> Sequence[ParentElement]:
        """
        Return the elements of an array, or the one job.
        """
        return self.jobs[number - 1]


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    found = []
    for label, case in cases_of(vector.fields):
        found += [f"{label} {line}".strip() for line in differences_of(case)]
    return found


def differences_of(case: Fields) -> list[str]:
    """
    Return what differs in one case.
    """
    jobs = _given(mapping_of(case.get("given")))
    expected = case.get("expect_elements", case.get("expect"))
    wants_refusal = isinstance(expected, Mapping) and expected.get("reject") is True
    text = text_of(case.get("w"))
    _, array = parse_job_name(text_of(case["of"])) if "of" in case else ("", None)
    own = None if array is None else array.indices()
    params = mapping_of(case.get("params"))
    known_only(params, ["JOB_DEP_LAST_SUB"], "params")
    last_only = is_yes(params.get("JOB_DEP_LAST_SUB"))
    try:
        bound = bind(parse_dependency(text), jobs, own_indices=own, last_only=last_only)
    except Refused as refused:
        return [] if wants_refusal else [f"refused: {refused}"]
    if wants_refusal:
        return [f"{text}: expected a refusal"]
    if "expect_elements" in case:
        assert own is not None
        found = {
            index: evaluate(bound, jobs, own_rank=rank).value for rank, index in enumerate(own)
        }
        wanted = {index: text_of(value) for index, value in mapping_of(expected).items()}
        return differing(text, wanted, found)
    return differing(text, text_of(expected), evaluate(bound, jobs).value)


def _given(given: Fields) -> GivenJobs:
    jobs = GivenJobs([], [])
    for name, value in given.items():
        base = next((name.removesuffix(each) for each in ORDINALS if name.endswith(each)), name)
        jobs.names.append(base)
        jobs.jobs.append(_elements(value))
    return jobs


def _elements(value: object) -> list[ParentElement]:
    """
    Return a job from ``DONE`` or ``{EXIT: 5}``, or an array from states by index.
    """
    if isinstance(value, Mapping) and all(isinstance(index, int) for index in value):
        return [_element(state, index) for index, state in value.items()]
    return [_element(value, 0)]


def _element(value: object, index: int) -> ParentElement:
    exit_code = None
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise Malformed(f"a job is in one state, not {dict(value)!r}")
        ((value, code),) = value.items()
        exit_code = whole_of(code)
    try:
        state = JobState(text_of(value))
    except ValueError:
        raise Malformed(f"there is no state {value!r}") from None
    if state is JobState.DONE:
        exit_code = 0
    return ParentElement(state=state, index=index, exit_code=exit_code)

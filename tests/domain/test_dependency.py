"""
Dependencies: what they say, whom they bind, and the three answers.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.dependency import (
    Condition,
    JobRef,
    ParentElement,
    Predicate,
    Verdict,
    bind,
    evaluate,
    parents_of,
    parse_dependency,
    show_dependency,
)
from domain.dependency.syntax import AllOf, AnyOf, Not
from domain.errors import Refused
from domain.event import Value
from domain.job_states import JobState
from domain.texts import NotUnderstood

S = JobState


@dataclass
class Jobs:
    """
    Be a user's jobs by number: name, and elements in order of index (index 0: no array).
    """

    jobs: dict[int, tuple[str, list[ParentElement]]]

    def numbers(self, ref):
        if ref.number:
            return [ref.number] if ref.number in self.jobs else []
        prefix = ref.name.removesuffix("*")
        return [
            number
            for number, (name, _) in sorted(self.jobs.items())
            if name == ref.name or (ref.name.endswith("*") and name.startswith(prefix))
        ]

    def indices(self, number):
        indices = [element.index for element in self.jobs[number][1]]
        return None if indices == [0] else indices

    def elements(self, number):
        return self.jobs[number][1] if number in self.jobs else []


def one(state, exit_code=None, **more):
    return [ParentElement(state=state, exit_code=exit_code, **more)]


def array(*states):
    return [ParentElement(state=state, index=index) for index, state in enumerate(states, 1)]


JOBS = Jobs(
    {
        1: ("D", one(S.DONE, 0)),
        2: ("X5", one(S.EXIT, 5)),
        3: ("P", one(S.PEND)),
        4: ("Rn", one(S.RUN)),
        5: ("U", one(S.USUSP)),
        6: ("H", one(S.PSUSP)),
        7: ("K", one(S.UNKWN)),
        10: ("A", array(S.DONE, S.DONE, S.EXIT, S.RUN)),
        20: ("post-ok", one(S.DONE, 0, post="done")),
        21: ("post-bad", one(S.DONE, 0, post="err")),
        22: ("told", one(S.RUN, message="READY to go")),
    }
)


def verdict_of(text, jobs=JOBS, own_rank=0, **more):
    return evaluate(bind(parse_dependency(text), jobs, **more), jobs, own_rank=own_rank).value


# ------------------------------------------------------------------------------------ evaluation


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("done(D)", "true"),
        ("D", "true"),
        ("1", "true"),
        ("done(X5)", "never"),
        ("done(P)", "wait"),
        ("done(K)", "wait"),
        ("exit(X5)", "true"),
        ("exit(X5,5)", "true"),
        ("exit(X5, >5)", "never"),
        ("exit(X5,>=5)", "true"),
        ("exit(X5,!=5)", "never"),
        ("exit(X5,<6)", "true"),
        ("exit(D)", "never"),
        ("exit(P)", "wait"),
        ("ended(X5)", "true"),
        ("ended(D)", "true"),
        ("ended(Rn)", "wait"),
        ("started(P)", "wait"),
        ("started(H)", "wait"),
        ("started(Rn)", "true"),
        ("started(U)", "true"),
        ("started(K)", "true"),
        ("started(X5)", "true"),
        ('post_done("post-ok")', "true"),
        ('post_done("post-bad")', "never"),
        ("post_err(post-bad)", "true"),
        ("post_done(P)", "wait"),
        ('external(told, "READY")', "true"),
        ('external(told, "DONE")', "wait"),
    ],
)
def test_each_condition_in_each_state(text, verdict):
    """
    The truth table of the conditions.
    """
    assert verdict == verdict_of(text)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("done(D) && done(P)", "wait"),
        ("done(X5) && done(P)", "never"),
        ("done(X5) || done(P)", "wait"),
        ("done(D) || done(P)", "true"),
        ("!done(X5)", "true"),
        ("!done(P)", "true"),
        ("!done(D)", "never"),
        ("!started(Rn)", "wait"),
        ("!started(D)", "never"),
        ("!!done(P)", "wait"),
        ("!(done(D) && done(P))", "true"),
        ("!(done(D) || done(P))", "never"),
        ("done(X5) || done(P) && done(D)", "wait"),
        ("done(D) || done(X5) && done(P)", "true"),
        ("(done(D) || done(X5)) && done(X5)", "never"),
    ],
)
def test_operators_have_three_values(text, verdict):
    """
    NOT of wait is true at once: a condition is judged on the state now. && binds tighter.
    """
    assert verdict == verdict_of(text)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("done(A)", "never"),
        ("ended(A)", "wait"),
        ("done(A[1-2])", "true"),
        ("done(A[4])", "wait"),
        ("done(10[1,2])", "true"),
        ("numdone(A,>=2)", "true"),
        ("numdone(A,>=3)", "wait"),
        ("numdone(A,>=4)", "never"),
        ("numdone(A,1)", "never"),
        ("numexit(A,>1)", "wait"),
        ("numended(A,*)", "wait"),
        ("numdone(A,*)", "never"),
        ("numrun(A,==1)", "true"),
        ("numrun(A,==0)", "wait"),
        ("numrun(A,>1)", "never"),
        ("numstart(A,>=1)", "true"),
        ("numpend(A,0)", "true"),
        ("numpend(A,1)", "wait"),
        ("numhold(A,>0)", "wait"),
        ("!numrun(A,==1)", "wait"),
        ("!numdone(A,>=2)", "never"),
    ],
)
def test_arrays_are_judged_by_their_elements(text, verdict):
    """
    Without a count all elements must satisfy; a count can become what its open elements allow.
    """
    assert verdict == verdict_of(text)


def test_each_element_waits_for_its_counterpart():
    """
    By rank: the arrays have equal sizes, not always equal indices.
    """
    found = [verdict_of("done(A[*])", own_rank=rank, own_indices=(5, 6, 7, 8)) for rank in range(4)]

    assert ["true", "true", "never", "wait"] == found


def test_all_jobs_of_a_name_must_satisfy_unless_only_the_last_counts():
    """
    JOB_DEP_LAST_SUB makes a name mean the latest job; a wildcard still means all.
    """
    jobs = Jobs({1: ("a", one(S.RUN)), 2: ("a", one(S.DONE)), 3: ("ab", one(S.PEND))})

    assert "wait" == verdict_of('done("a")', jobs)
    assert "true" == verdict_of('done("a")', jobs, last_only=True)
    assert "wait" == verdict_of('done("a*")', jobs, last_only=True)
    assert (1, 2, 3) == parents_of(bind(parse_dependency("a*"), jobs))


def test_a_parent_that_is_no_longer_known_never_satisfies():
    """
    It can't happen while the job waits; if it did, waiting for ever in silence would be worse.
    """
    bound = bind(parse_dependency("done(1)"), JOBS)

    assert Verdict.NEVER == evaluate(bound, Jobs({}))


parent_states = st.sampled_from([S.PEND, S.PSUSP, S.RUN, S.USUSP, S.SSUSP, S.UNKWN, S.DONE, S.EXIT])
ends = st.sampled_from([S.DONE, S.EXIT])
leaf_texts = st.sampled_from(
    ["done(9)", "exit(9)", "ended(9)", "started(9)", "exit(9[1],>0)", "done(9[2])"]
    + [f"num{what}(9,{op}{n})" for what in ("done", "exit", "ended", "run", "pend", "hold", "start")
       for op in ("==", ">=", "<", "!=") for n in (0, 1, 2)]
    + ["numended(9,*)"]
)  # fmt: skip
texts = st.recursive(
    leaf_texts,
    lambda inner: (
        st.builds("!({})".format, inner)
        | st.builds("({}) && ({})".format, inner, inner)
        | st.builds("({}) || ({})".format, inner, inner)
    ),
    max_leaves=4,
)


@given(texts, st.tuples(parent_states, parent_states), st.tuples(ends, ends))
def test_never_is_final(text, now, later):
    """
    Safety: whatever the elements do next, a dependency that is never true doesn't become true.
    """
    before, after = (
        Jobs({9: ("N", array(*now))}),
        Jobs(
            {
                9: (
                    "N",
                    array(
                        *(
                            new if old not in (S.DONE, S.EXIT) else old
                            for old, new in zip(now, later, strict=True)
                        )
                    ),
                )
            }
        ),
    )
    dependency = bind(parse_dependency(text), before)

    if evaluate(dependency, before) is Verdict.NEVER:
        assert evaluate(dependency, after) is Verdict.NEVER


# --------------------------------------------------------------------------------------- parsing


def test_a_bare_job_means_done():
    """
    As LSF has it.
    """
    assert parse_dependency("done(J)") == parse_dependency(" J ")


def test_names_are_quoted_where_they_begin_with_a_digit():
    """
    Without quotes it is a job number.
    """
    assert JobRef(number=12) == parse_dependency("12").ref
    assert JobRef(name="12") == parse_dependency('"12"').ref
    assert JobRef(name="2 b") == parse_dependency("done('2 b')").ref
    assert JobRef(name="my-job.v2/x") == parse_dependency("my-job.v2/x").ref


def test_elements_may_stand_inside_or_behind_the_quotes():
    """
    Shells make users quote the whole.
    """
    assert parse_dependency('done("A"[1-3])') == parse_dependency('done("A[1-3]")')
    assert parse_dependency("done(A[*])").ref.is_each


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        ("done(", 6),
        ("done()", 6),
        ("done(J", 7),
        ("done(J) done(K)", 9),
        ("done(J) &&", 11),
        ("done(J) & done(K)", 9),
        ("finished(J)", 1),
        ("done(J,1)", 7),
        ("exit(J,x)", 8),
        ("exit(J,)", 8),
        ("exit(J,>)", 9),
        ("numdone(J)", 10),
        ("external(J)", 11),
        ("external(J,word)", 12),
        ('external(J,"two words")', 12),
        ("exit(J,*)", 8),
        ("done(0)", 6),
        ("done(12345678901)", 6),
        ("done(J[3-1])", 8),
        ("done(J[x])", 8),
        ("done(a*b)", 8),
        ('done("")', 7),
        ("(done(J)", 9),
        ("exit(J,99999999999)", 8),
        ("!" * 60 + "J", 52),
        ("(" * 60 + "J" + ")" * 60, 52),
    ],
)
def test_what_is_no_dependency_is_refused_with_a_caret(text, column):
    """
    A dependency that is read wrongly starts a job too early.
    """
    with pytest.raises(NotUnderstood) as refused:
        parse_dependency(text)

    assert ("dependency", column) == (refused.value.field, refused.value.column)


refs = st.builds(
    lambda number, name, parts: JobRef(number=number, name="" if number else name, **parts),
    st.integers(0, 10**9),
    st.sampled_from(["a", "a b", "9x", "x*"]),
    st.sampled_from([{}, {"is_each": True}, {"ranges": parse_dependency("J[1-3,5]").ref.ranges}]),
)
state_predicates = st.sampled_from(
    [Predicate.DONE, Predicate.ENDED, Predicate.STARTED, Predicate.POST_DONE, Predicate.POST_ERR]
)
counting = st.sampled_from([Predicate.NUM_DONE, Predicate.NUM_RUN])
ops = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
conditions = (
    st.builds(
        lambda predicate, ref: Condition(kind="job", predicate=predicate, ref=ref),
        state_predicates,
        refs,
    )
    | st.builds(
        lambda predicate, ref, op, n: Condition(
            kind="job", predicate=predicate, ref=ref, op=op, number=n
        ),
        counting | st.just(Predicate.EXIT),
        refs,
        ops,
        st.integers(0, 255),
    )
    | st.builds(
        lambda predicate, ref: Condition(
            kind="job", predicate=predicate, ref=ref, op="==", is_all=True
        ),
        counting,
        refs,
    )
    | st.builds(
        lambda ref: Condition(kind="job", predicate=Predicate.EXTERNAL, ref=ref, message="go"), refs
    )
)


def combined(inner):
    def joined(cls, kind, parts):
        flat = [
            each for part in parts for each in (part.parts if isinstance(part, cls) else (part,))
        ]
        return cls(kind=kind, parts=tuple(flat))

    several = st.lists(inner, min_size=2, max_size=3)
    return (
        st.builds(lambda of: Not(kind="not", of=of), inner)
        | several.map(lambda parts: joined(AllOf, "and", parts))
        | several.map(lambda parts: joined(AnyOf, "or", parts))
    )


dependencies = st.recursive(conditions, combined, max_leaves=6)


class Holder(Value):
    """
    Hold a dependency as an event would.
    """

    dependency: Condition | Not | AllOf | AnyOf


@given(dependencies)
def test_parse_is_the_inverse_of_show_and_storage_is_exact(dependency):
    """
    What bjobs -l shows is what is kept.
    """
    stored = Holder(dependency=dependency).model_dump_json(exclude_defaults=True)

    assert dependency == parse_dependency(show_dependency(dependency))
    assert dependency == Holder.model_validate_json(stored).dependency


# --------------------------------------------------------------------------------------- binding


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("done(99)", "jobs that exist"),
        ("done(nosuch)", "jobs that exist"),
        ("done(D) || !done(nosuch*)", "jobs that exist"),
        ("done(D[1])", "an array"),
        ("done(D[*])", "an array"),
        ("numdone(D,1)", "an array"),
        ("done(A[4-5])", "element 5"),
        ("done(A[*])", "as many elements"),
    ],
)
def test_what_cannot_be_bound_is_refused(text, rule):
    """
    A dependency on an unknown job refuses the submission; so do arrays of different sizes.
    """
    with pytest.raises(Refused) as refused:
        bind(parse_dependency(text), JOBS, own_indices=(1, 2, 3))

    assert rule in refused.value.rule

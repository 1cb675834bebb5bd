"""
The vector runner: it passes what is so, fails what isn't, and says which is which.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.conformance.__main__ import main
from tools.conformance.trees import alike, read_tree
from tools.conformance.values import Malformed, Vector
from tools.conformance.vectors import load, run_all, run_one

OWN = Path(__file__).with_name("own_vectors.yaml")
OUTCOMES = {outcome.vector.id: outcome for outcome in run_all(load(OWN))}


@pytest.mark.parametrize("vector_id", [each for each in OUTCOMES if each.startswith("own-")])
def test_what_is_so_passes(vector_id):
    """
    Each of these states rules of the language through the real parser, check, merge and evaluation.
    """
    assert [] == OUTCOMES[vector_id].differences


@pytest.mark.parametrize("vector_id", [each for each in OUTCOMES if each.startswith("broken-")])
def test_what_is_not_so_fails(vector_id):
    """
    A runner that can't fail proves nothing.
    """
    assert OUTCOMES[vector_id].differences
    assert not OUTCOMES[vector_id].has_passed


def test_the_report_has_a_line_per_vector_and_ends_with_the_counts(capsys):
    """
    Scripts read the last line; failures make the exit status 1, left-out vectors are named.
    """
    status = main(["vectors", str(OWN)])

    lines = capsys.readouterr().out.splitlines()
    verdicts = [line for line in lines if not line.startswith("     ")]
    assert 1 == status
    assert len(OUTCOMES) + 2 == len(verdicts)
    assert "1 left out: own-left-out" == lines[-2]
    assert re.fullmatch(r"13 passed, 10 failed", lines[-1])


def test_one_kind_or_one_vector_may_be_run(capsys):
    """
    For whoever works on one of them.
    """
    assert 0 == main(["vectors", str(OWN), "--id", "own-merge"])
    assert "1 passed, 0 failed" == capsys.readouterr().out.splitlines()[-1]
    assert 1 == main(["vectors", str(OWN), "--kind", "select"])
    assert "1 passed, 1 failed" == capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    "text", ["", "vectors: []", "vectors: 5", "- 1", "a: [", "vectors: [{id: a, R: x, R: y}]",
             "vectors: [{id: a, kind: parse}]\nvectors: [{id: b, kind: parse}]"],
)  # fmt: skip
def test_a_file_without_vectors_is_refused(tmp_path, capsys, text):
    """
    Nothing run is no success.
    """
    file = tmp_path / "none.yaml"
    file.write_text(text)

    assert 2 == main(["vectors", str(file)])
    shown = capsys.readouterr()
    assert "file" in shown.err
    assert "0 passed, 0 failed" == shown.out.splitlines()[-1]
    assert 2 == main(["vectors", str(tmp_path / "missing.yaml")])


def test_what_is_no_vector_fails_alone(tmp_path, capsys):
    """
    The vectors beside it still run, and the last line counts all.
    """
    file = tmp_path / "mixed.yaml"
    file.write_text("""
        vectors:
        - {id: good, kind: parse, input: {R: "mem>1"}, expect: {reject: false}}
        - {kind: parse}
        - 5
        - {id: good, kind: parse, input: {R: "mem>1"}, expect: {reject: false}}
        - {id: bad-cases, kind: schedule, cases: 7}
        - {id: bad-hosts, kind: schedule, cluster: {hosts: h1}, expect: {run: true}}
        - {id: bad-expect, kind: select, cluster: {hosts: [{name: h1}]}, R: "mem>1", expect: 4}
        - [1, 2]
    """)

    assert 1 == main(["vectors", str(file)])
    lines = capsys.readouterr().out.splitlines()
    assert "1 passed, 7 failed" == lines[-1]
    assert any("no id" in line for line in lines)
    assert any("twice" in line for line in lines)


def test_asking_for_no_vector_of_the_file_is_no_success(capsys):
    """
    A mistyped id would otherwise look like a pass.
    """
    assert 2 == main(["vectors", str(OWN), "--id", "no-such"])
    assert "0 passed, 0 failed" == capsys.readouterr().out.splitlines()[-1]


def test_one_vectors_failure_is_that_vectors():
    """
    Whatever a vector makes the code raise, the others still run.
    """
    outcome = run_one(
        Vector("x", "select", "", {"cluster": {"hosts": [{"slots": "many"}]}, "R": "a"})
    )

    assert outcome.differences


def test_trees_are_alike_when_they_mean_the_same():
    """
    Chains of and/or are flat; their order matters unless the vector says that it doesn't.
    """
    assert alike(read_tree("(&& a (and b c))")) == alike(read_tree("(and (and a b) c)"))
    assert alike(read_tree("(and a b)")) != alike(read_tree("(and b a)"))
    assert alike(read_tree("(or b a)"), is_order_free=True) == alike(
        read_tree("(or a b)"), is_order_free=True
    )
    for wrong in ("(and a", "a b", ""):
        with pytest.raises(Malformed):
            read_tree(wrong)


@pytest.mark.needs_traces
def test_the_shared_vectors_of_the_language_pass(trace_folder):
    """
    Those that came with the specification.
    """
    file = trace_folder.parent / "spec" / "lsf" / "vectors.yaml"
    outcomes = [
        outcome
        for outcome in run_all(load(file))
        if outcome.vector.kind in {"parse", "select", "merge"}
    ]

    assert {} == {each.vector.id: each.differences for each in outcomes if not each.has_passed}
    assert len(outcomes) > 20

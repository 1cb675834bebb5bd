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
SABOTAGED = load(Path(__file__).with_name("sabotaged_vectors.yaml"))
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


@pytest.mark.parametrize("vector", SABOTAGED, ids=lambda vector: vector.id)
def test_one_wrong_expectation_among_right_ones_fails(vector):
    """
    Each is wrong in one place only, in a way that a careless comparison would overlook; and it is
    compared, not merely not understood.
    """
    (line,) = run_one(vector).differences

    assert "malformed" not in line


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


@pytest.mark.parametrize(
    "vector",
    ["kind: parse, R: mem>1", "kind: parse, R: mem>1, expect: {}",
     "kind: parse, expect: {reject: no}", "kind: schedule",
     "kind: schedule, cases: [{n: 1, expect: {run: true}}, {n: 2}]",
     "kind: control, jobs: [{id: J}], actions: [{bstop: J}]"],
)  # fmt: skip
def test_a_vector_that_claims_nothing_fails(tmp_path, capsys, vector):
    """
    It would pass whatever the core does.
    """
    file = tmp_path / "silent.yaml"
    file.write_text(f"vectors: [{{id: a, {vector}}}]")

    assert 1 == main(["vectors", str(file)])
    assert "malformed" in (out := capsys.readouterr().out)
    assert "0 passed, 1 failed" == out.splitlines()[-1]


HOSTS = "cluster: {hosts: [{name: h1}]}"


@pytest.mark.parametrize(
    ("told", "why"),
    [(f"{HOSTS}, jobs: [{{id: J1}}, {{id: J1}}]", "J1 is there twice in jobs"),
     (f"{HOSTS}, running: [{{id: J1, alloc: {{h1: 1}}}}], jobs: [{{id: J1}}]", "J1 is there twice"),
     ("cluster: {hosts: [{name: h1}, {name: h1}]}", "h1 is there twice in hosts"),
     (f"{HOSTS}, queues: [{{name: a}}, {{name: a}}]", "a is there twice in queues"),
     (f"{HOSTS}, limits: [{{NAME: l, SLOTS: 1}}, {{NAME: l, SLOTS: 2}}]", "l is there twice"),
     (f"{HOSTS}, steps: [{{at: 9}}, {{at: 5}}]", "step 2 goes back to minute 5"),
     ("cluster: {hosts: [{name: h1, slots: -1}]}", "JoinWorker.slots")],
)  # fmt: skip
def test_what_contradicts_itself_is_told(tmp_path, capsys, told, why):
    """
    The first of two would be lost unseen, and a step of yesterday would be one of tomorrow.
    """
    file = tmp_path / "twice.yaml"
    file.write_text(f"vectors: [{{id: a, kind: schedule, {told}, expect: {{reject: []}}}}]")

    assert 1 == main(["vectors", str(file)])
    assert f"malformed: {why}" in capsys.readouterr().out


def test_what_yaml_takes_for_a_date_or_a_number_is_what_was_written(tmp_path, capsys):
    """
    A name may look like a date, and a time of day without quotes is a number of minutes to YAML.
    """
    file = tmp_path / "dates.yaml"
    file.write_text("""
        vectors:
        - {id: 2026-01-02, kind: schedule, cluster: {hosts: [{name: 2026-01-03}]}, clock: 17:30,
           queues: [{name: normal, RUN_WINDOW: "17:30-18:00"}], jobs: [{id: J1}],
           expect: {dispatch: {J1: {2026-01-03: 1}}}}
    """)

    assert 0 == main(["vectors", str(file)])
    assert "pass 2026-01-02" == capsys.readouterr().out.splitlines()[0].strip()


@pytest.mark.parametrize(
    "content",
    [b"vectors:\n- {id: a, title: '\xff'}", b"\x00\x01", b"vectors: " + b"[" * 3000 + b"]" * 3000,
     b"vectors: [{id: a}]\n---\nvectors: [{id: b}]", b"vectors: {a: {kind: parse}}",
     b"vectors: [{id: !!python/name:os.system x}]"],
    ids=["not UTF-8", "binary", "nested", "two documents", "by name", "code"],
)  # fmt: skip
def test_a_damaged_file_is_one_clear_error(tmp_path, capsys, content):
    """
    No traceback, and the last line still counts.
    """
    file = tmp_path / "damaged.yaml"
    file.write_bytes(content)

    assert 2 == main(["vectors", str(file)])
    shown = capsys.readouterr()
    assert shown.err.startswith("file: must hold vectors")
    assert "0 passed, 0 failed" == shown.out.splitlines()[-1]


def test_an_id_is_a_text_on_one_line(tmp_path, capsys):
    """
    A report has a line for each vector.
    """
    file = tmp_path / "ids.yaml"
    file.write_text("""
        vectors:
        - {id: {a: 1}, kind: parse, R: mem>1, expect: {reject: false}}
        - {id: "a\\nb", kind: parse, R: mem>1, expect: {reject: false}}
    """)

    assert 1 == main(["vectors", str(file)])
    assert ["FAIL number 1", "pass a b", "1 passed, 1 failed"] == [
        line.strip() for line in capsys.readouterr().out.splitlines() if "malformed" not in line
    ]


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

"""
The table of reasons for people says of each code what the program says, and names its test.
"""

from __future__ import annotations

import re
from pathlib import Path

from domain.reasons import TEXTS
from domain.terminations import TEXTS as ENDS
from domain.terminations import Termination

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "reasons.md"
TESTS = ROOT / "tests" / "projections" / "scheduling"


def rows(heading: str) -> list[list[str]]:
    """
    Return the rows of the table below a heading, without its head.
    """
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    lines = [line for line in text.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def is_there(test: str) -> bool:
    """
    Say whether a test of a file exists.
    """
    file, _, name = test.partition(": ")
    return f"def {name}(" in (TESTS / file).read_text(encoding="utf-8")


def test_every_pend_reason_is_explained_as_the_program_says_it() -> None:
    """
    In the order of the enumeration; each with a test that is there.
    """
    table = rows("Pend reasons")

    assert [(code.value, text) for code, text in TEXTS.items()] == sorted(
        [(row[0], row[1]) for row in table],
        key=lambda row: [code.value for code in TEXTS].index(row[0]),
    )
    assert [] == [row for row in table if not row[2] or not is_there(row[3])]


def test_the_code_of_too_few_slots_is_told_as_the_commands_show_it() -> None:
    """
    Whoever looks a code up has it from a command, which shows what was recorded.
    """
    (said,) = (row[2] for row in rows("Pend reasons") if row[0] == "HOST_SLOTS")

    assert "what `xce why` and the tables show" in said
    assert "shown as HOST_JOB_LIMIT" not in said


def test_codes_that_do_not_exist_are_told_apart() -> None:
    """
    People look for LSF's codes; that one can't come up is an answer too.
    """
    table = rows("Pend reasons of LSF that don't exist here")
    named = {code for row in table for code in re.split(r", ", row[0])}

    assert {"JGROUP_LIMIT", "NO_MAPPING", "SYS_NOT_READY"} <= named
    assert not named & {code.value for code in TEXTS}


def test_every_termination_reason_is_explained() -> None:
    """
    With its number, and a test where it is given at all.
    """
    table = {row[0]: row for row in rows("Why jobs ended")}

    assert {each.value: str(each.number) for each in Termination} == {
        code: row[1] for code, row in table.items() if row[1]
    }
    never = {code for code, row in table.items() if row[2].startswith("never:")}
    assert [] == [code for code, row in table.items() if code not in never and not is_there(row[3])]
    assert all(not table[code][3] for code in never)
    assert set(ENDS) == set(table) - never

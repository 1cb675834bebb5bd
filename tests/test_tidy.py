"""
Hold the repository to its own rules; with `-s` (as `make check` does) also show what is longest.

Each rule has a sabotage test: a bad snippet that must be caught, so that a green run means
something.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests import tidy_rules
from tests.tidy_rules import Breach, Length

ROOT = Path(__file__).resolve().parent.parent
# Over this many lines a function, over that many a file, wants a reason beside it (`# long: why`).
FUNCTION_LINES_MAX = 70
FUNCTION_LINES_STOP = 40
FILE_LINES_MAX = 500
# Built from parts, so that this file doesn't contain what it looks for.
MACHINE_PATHS = ("/" + "work/", "/" + "root/", "/" + "tmp/" + "xce")
REGISTRIES = tuple(
    ".".join(parts)
    for parts in [("pypi", "org"), ("files", "pythonhosted", "org"), ("registry", "npmjs", "org"),
                  ("deb", "debian", "org"), ("proxy", "golang", "org"), ("index", "crates", "io")]
)
INDEX_OPTIONS = tuple("--" + name for name in ("index" + "-url", "extra-index" + "-url",
                                               "find" + "-links", "trusted" + "-host"))


@cache
def code() -> dict[str, tuple[ast.Module, list[str]]]:
    """
    Return the parsed code of the five folders and of the tests.
    """
    return tidy_rules.parsed(ROOT, (*tidy_rules.CODE_FOLDERS, "tests"))


def shown(breaches: list[Breach]) -> str:
    """
    Return one line for each breach: file, line, rule.
    """
    return "\n".join(f"{path}:{line}: {rule}" for path, line, rule in breaches)


def scheduling() -> dict[str, ast.Module]:
    """
    Return the trees of the scheduling core by path.
    """
    return {p: t for p, (t, _) in code().items() if p.startswith("projections/scheduling/")}


# --------------------------------------------------------------------------------- the repository


def test_imports_point_one_way() -> None:
    """
    Data goes round, imports don't: the table of ARCHITECTURE.md is what keeps the core replayable.
    """
    breaches = [b for path, (tree, _) in code().items()
                for b in tidy_rules.import_breaches(tree, path)]

    assert breaches == [], shown(breaches)


def test_nothing_forks_runs_a_shell_or_reads_a_clock_where_it_must_not() -> None:
    """
    A fork copies LMDB's environment and threads' locks; a shell runs what a user typed.
    """
    breaches = [b for path, (tree, _) in code().items()
                for b in tidy_rules.call_breaches(tree, path)]

    assert breaches == [], shown(breaches)


def test_the_core_never_shows_the_order_of_a_set() -> None:
    """
    The order of a set of strings differs from process to process, and so would decisions.
    """
    attributes = tidy_rules.set_attributes(list(scheduling().values()))

    breaches = [b for path, tree in scheduling().items()
                for b in tidy_rules.set_breaches(tree, path, attributes)]

    assert breaches == [], shown(breaches)


def lengths() -> list[Length]:
    """
    Return the lengths of all functions of the code, longest first; tests don't count.
    """
    found = [length for path, (tree, source) in code().items() if not path.startswith("tests/")
             for length in tidy_rules.function_lengths(tree, path, source)]
    return sorted(found, reverse=True)


def test_no_function_is_too_long_without_a_reason() -> None:
    """
    What doesn't fit a screen isn't read; a reason beside it (`# hot:`, `# long:`) makes it a
    choice.
    """
    functions = lengths()
    print("\nlongest functions (lines of body):")
    for length in functions[:10]:
        print(f"  {length.lines:4} {length.path}:{length.line} {length.name}")

    over = [length for length in functions
            if length.lines > FUNCTION_LINES_MAX and not length.has_reason]

    assert over == []


def test_at_most_one_function_in_twenty_is_over_forty_lines() -> None:
    """
    Forty lines are a reason to stop and think; it may not become the habit.
    """
    functions = lengths()

    over = [length for length in functions if length.lines > FUNCTION_LINES_STOP]

    assert len(over) * 20 <= max(20, len(functions)), over


def test_no_file_is_too_long_without_a_reason() -> None:
    """
    A file that outgrows its budget is split by meaning, or says why it isn't.
    """
    files = sorted(((len(source), path) for path, (_, source) in code().items()), reverse=True)
    print("\nlongest files (lines):")
    for lines, path in files[:10]:
        print(f"  {lines:4} {path}")

    over = [(lines, path) for lines, path in files if lines > FILE_LINES_MAX
            and not any(line.startswith("# long:") for line in code()[path][1])]

    assert over == []


def test_no_dependency_ships_a_package_of_our_names() -> None:
    """
    The five folders are installed as they are: a namesake in the environment would hide one.
    """
    providers = packages_distributions()

    taken = {name: set(providers.get(name, ())) - {"xce"} for name in tidy_rules.CODE_FOLDERS}

    assert {name: set() for name in tidy_rules.CODE_FOLDERS} == taken


def committed_texts() -> Iterator[tuple[str, str]]:
    """
    Yield path and text of each file that git tracks, binary ones left out.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        path = ROOT / name
        if name and path.is_file():
            raw = path.read_bytes()
            if b"\0" not in raw:
                yield name, raw.decode("utf-8", "replace")


def place_breaches(name: str, text: str) -> Iterator[Breach]:
    """
    Yield each line that names a path of one machine, or a host or option of a package index.
    """
    for number, line in enumerate(text.splitlines(), 1):
        for bad in (*MACHINE_PATHS, *REGISTRIES, *INDEX_OPTIONS):
            if bad in line:
                yield Breach(name, number, f"names {bad}")


def test_committed_files_name_no_machine_and_no_registry() -> None:
    """
    A clone must work anywhere; where packages come from is the installing machine's matter.
    """
    breaches = [b for name, text in committed_texts() for b in place_breaches(name, text)]

    assert breaches == [], shown(breaches)


def test_every_constraint_is_a_name_and_one_version() -> None:
    """
    Two installs of one commit must give the same packages.
    """
    pinned = re.compile(r"[A-Za-z0-9._-]+==[0-9A-Za-z.]+")
    lines = (ROOT / "constraints.txt").read_text().split()

    assert [] == [line for line in lines if not pinned.fullmatch(line)]


def test_the_debian_packages_are_those_that_tests_ask_for() -> None:
    """
    A package that no test needs slows every set-up; one that isn't listed fails every CI run.
    """
    needed = set()
    for path, (tree, _) in code().items():
        for node in ast.walk(tree):
            is_marker = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_marker and node.func.attr == "needs_program" and path.startswith("tests/"):
                needed.add(ast.literal_eval(node.args[-1]))
    listed = (ROOT / "debian-packages.txt").read_text().splitlines()

    assert needed == {line for line in listed if line and not line.startswith("#")}


# --------------------------------------------------------------------------------------- sabotage


def rules_of(path: str, source: str) -> list[str]:
    """
    Return the rules that a snippet breaks when it stands at the path.
    """
    tree = ast.parse(source)
    attributes = tidy_rules.set_attributes([tree])
    breaches = [*tidy_rules.import_breaches(tree, path), *tidy_rules.call_breaches(tree, path)]
    if path.startswith("projections/scheduling/"):
        breaches += tidy_rules.set_breaches(tree, path, attributes)
    return [rule for _, _, rule in breaches]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("domain/jobs.py", "import store.log"),
        ("domain/jobs.py", "import os"),
        ("domain/jobs.py", "import numpy"),
        ("store/log.py", "from projections.scheduling import core"),
        ("store/log.py", "import pydantic"),
        ("projections/scheduling/core.py", "import time"),
        ("projections/scheduling/core.py", "from store import log"),
        ("projections/scheduling/core.py", "from ..audit import rows"),
        ("projections/scheduling/core.py", "def f():\n    import random"),
        ("projections/audit/rows.py", "from projections.scheduling.core import Core"),
        ("projections/figures.py", "import projections.scheduling"),
        ("projections/figures.py", "import numpy"),
        ("replay/engine.py", "from tools import cli"),
        ("replay/engine.py", "import rich"),
        ("tools/cli/main.py", "from tests import builders"),
    ],
)
def test_sabotage_a_wrong_import_is_caught(path: str, source: str) -> None:
    """
    Each row of the table of imports must be able to fail.
    """
    assert len(rules_of(path, source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("domain/jobs.py", "from pydantic import BaseModel\nfrom . import ids"),
        ("projections/scheduling/core.py", "from collections.abc import Iterator\nimport numpy"),
        ("projections/scheduling/core.py", "from .state import State\nfrom domain import ids"),
        ("replay/engine.py", "from store.log import EventLog\nimport projections.scheduling.core"),
        ("tools/cli/main.py", "import rich\nfrom replay import engine"),
    ],
)
def test_a_right_import_passes(path: str, source: str) -> None:
    """
    A rule that refuses everything would catch all sabotage too.
    """
    assert rules_of(path, source) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tools/x.py", "import os\nos.fork()"),
        ("tools/x.py", "from os import fork\nfork()"),
        ("tools/x.py", "import os as o\no.system('true')"),
        ("tests/x.py", "import os\nos.popen('true')"),
        ("tools/x.py", "import subprocess\nsubprocess.run('true', shell=True)"),
        ("tools/x.py", "import subprocess\nsubprocess.Popen(['true'], preexec_fn=print)"),
        ("tools/x.py", "import subprocess\nsubprocess.getoutput('true')"),
        ("tools/x.py", "import multiprocessing\nmultiprocessing.Process()"),
        ("tools/x.py", "import multiprocessing\nmultiprocessing.get_context('fork')"),
        ("replay/x.py", "import time\ntime.time()"),
        ("domain/x.py", "from datetime import datetime\ndatetime.now()"),
        ("domain/x.py", "open('x')"),
        ("projections/scheduling/x.py", "hash('x')"),
        ("projections/scheduling/x.py", "id(3)"),
    ],
)
def test_sabotage_a_forbidden_call_is_caught(path: str, source: str) -> None:
    """
    Aliases and names taken out of their module hide a call from a text search, not from this.
    """
    assert len(rules_of(path, source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "for x in {1, 2}: pass",
        "y = [x for x in set('ab')]",
        "def f():\n    names = set()\n    for name in names: pass",
        "def f(names: set[str]):\n    return list(names)",
        "def f(names: set[str]):\n    return names.pop()",
        "def f(names: frozenset[str]):\n    return ','.join(names)",
        "def f(names: set[str]):\n    return (*names,)",
        "def f(a: set[str], b):\n    return tuple(a & b)",
        "class C:\n    free: set[int]\n    def f(self):\n        return next(iter(self.free))",
        "class C:\n    def f(self):\n        self.free = set()\n        for x in self.free: pass",
    ],
)
def test_sabotage_a_visible_set_order_is_caught(source: str) -> None:
    """
    Literals, locals, parameters and attributes that are sets are all recognised.
    """
    assert len(rules_of("projections/scheduling/x.py", source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        "def f(names: set[str]):\n    return sorted(names)",
        "def f(names: set[str]):\n    return len(names), 'a' in names, max(names)",
        "def f(names: dict[str, int]):\n    return list(names)",
        "def f(names: set[str]):\n    return {name for name in names}",
        "def f():\n    x = set()\n    return len(x)\ndef g():\n    x = [1]\n    return tuple(x)",
    ],
)
def test_a_set_used_without_its_order_passes(source: str) -> None:
    """
    Membership, counting and sorting are what sets are for.
    """
    assert rules_of("projections/scheduling/x.py", source) == []


def test_sabotage_a_long_function_is_measured_and_a_reason_is_seen() -> None:
    """
    The docstring doesn't count, the body does.
    """
    body = "\n".join(f"    x{n} = {n}" for n in range(80))
    source = f'def f():\n    """\n    Do.\n    """\n{body}\n'

    plain, = tidy_rules.function_lengths(ast.parse(source), "tools/x.py", source.splitlines())
    marked = "# long: a table.\n" + source
    reasoned, = tidy_rules.function_lengths(ast.parse(marked), "tools/x.py", marked.splitlines())

    assert (80, False, 80, True) == (
        plain.lines, plain.has_reason, reasoned.lines, reasoned.has_reason)


def test_sabotage_a_machine_path_or_registry_in_a_file_is_caught() -> None:
    """
    The words looked for are put together here as well, or this file would be the first breach.
    """
    text = f"cd {MACHINE_PATHS[0]}main\npip install {INDEX_OPTIONS[0]} https://{REGISTRIES[0]}/\n"

    assert [1, 2, 2] == [b.line for b in place_breaches("README.md", text)]

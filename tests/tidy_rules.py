"""
Find breaches of the house rules by reading syntax trees: imports, calls, set iteration, lengths.

`test_tidy` runs these on the repository; its sabotage tests run them on bad snippets.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

CODE_FOLDERS = ("domain", "store", "projections", "replay", "tools")
OURS = frozenset({*CODE_FOLDERS, "tests"})

# What a deterministic fold may use; everything else of the standard library is refused there.
CORE_MODULES = frozenset(
    "__future__ bisect collections contextlib dataclasses enum fractions functools hashlib heapq "
    "itertools json math operator types typing".split()
)
# Clocks, files, sockets, environment and chance: never in the vocabulary.
IMPURE_MODULES = frozenset(
    "asyncio io multiprocessing os pathlib random secrets select selectors shutil signal socket "
    "ssl subprocess sys tempfile threading time urllib uuid".split()
)


class Breach(NamedTuple):
    """
    One place that breaks a rule.
    """

    path: str
    line: int
    rule: str


@dataclass(frozen=True, slots=True)
class Area:
    """
    A part of the code with import rules of its own (a row of the table in ARCHITECTURE.md).

    Args:
        name: Path of the part, with slashes; a file belongs to the longest one that fits.
        ours: Dotted names of ours that it may import, itself included.
        others: Third-party packages that it may import; None means any.
        standard: Modules of the standard library that it may import; None means any.
        banned: Modules of the standard library that it may not import.
    """

    name: str
    ours: tuple[str, ...]
    others: frozenset[str] | None
    standard: frozenset[str] | None = None
    banned: frozenset[str] = frozenset()


AREAS = (
    Area("domain", ("domain",), frozenset({"pydantic", "pydantic_core", "lark"}),
         banned=IMPURE_MODULES),
    Area("store", ("store", "domain"),
         frozenset({"eventsourcing", "lmdb", "zstandard", "cryptography"})),
    Area("projections", ("projections.projection", "domain"), frozenset(), CORE_MODULES),
    Area("projections/scheduling",
         ("projections.scheduling", "projections.projection", "domain"),
         frozenset({"numpy"}), CORE_MODULES | {"collections.abc"}),
    Area("projections/audit",
         ("projections.audit", "projections.figures", "projections.projection", "domain"),
         frozenset({"eventsourcing", "sqlite_utils"})),
    Area("projections/figures", ("projections.figures", "domain"), frozenset(),
         CORE_MODULES | {"fractions", "decimal"}),
    Area("replay", ("replay", "domain", "store", "projections"), frozenset({"pydantic"})),
    Area("tools", CODE_FOLDERS, None),
    Area("tests", (*CODE_FOLDERS, "tests"), None),
)

# Whole dotted names that no file may use, each with what to do instead.
FORBIDDEN_NAMES = {
    "os.fork": "start programs by posix_spawn through the launcher",
    "os.forkpty": "start programs by posix_spawn through the launcher",
    "pty.fork": "start programs by posix_spawn through the launcher",
    "os.system": "no shell: give an argument list",
    "os.popen": "no shell: give an argument list",
    "subprocess.getoutput": "no shell: give an argument list",
    "subprocess.getstatusoutput": "no shell: give an argument list",
    "asyncio.create_subprocess_shell": "no shell: give an argument list",
    "multiprocessing.Process": "it forks: take it from get_context('spawn')",
    "multiprocessing.Pool": "it forks: take it from get_context('spawn')",
}
CLOCKS = frozenset(
    "time.time time.time_ns datetime.datetime.now datetime.datetime.utcnow "
    "datetime.datetime.today datetime.date.today".split()
)
# The hash of a string differs from process to process, an id from object to object.
CORE_BUILTINS = frozenset({"hash", "id", "open", "input", "eval", "exec"})
VOCABULARY_BUILTINS = frozenset({"open", "input", "eval", "exec"})


def area_of(path: str) -> Area:
    """
    Return the area that a file belongs to, by its path from the root of the repository.
    """
    stem = path.removesuffix(".py")
    fitting = [area for area in AREAS if stem == area.name or stem.startswith(area.name + "/")]
    return max(fitting, key=lambda area: len(area.name))


# ---------------------------------------------------------------------------------- the imports


def imported(tree: ast.Module, path: str) -> Iterator[tuple[int, str]]:
    """
    Yield line and dotted name of everything that a file imports, relative names resolved.
    """
    package = path.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def import_breaches(tree: ast.Module, path: str) -> Iterator[Breach]:
    """
    Yield each import that the file's area may not have.
    """
    area = area_of(path)
    for line, name in imported(tree, path):
        rule = _import_rule(area, name)
        if rule:
            yield Breach(path, line, rule)


def _import_rule(area: Area, name: str) -> str | None:
    top = name.partition(".")[0]
    if top in OURS:
        allowed = any(name == ours or name.startswith(ours + ".") for ours in area.ours)
        return None if allowed else f"{area.name} may not import {name}"
    if top not in sys.stdlib_module_names:
        allowed = area.others is None or top in area.others
        return None if allowed else f"{area.name} may not import the package {top}"
    if top in area.banned or (area.standard is not None and top not in area.standard):
        return f"{area.name} may not import {top} of the standard library"
    return None


# --------------------------------------------------------------------------------------- calls


def _origins(tree: ast.Module) -> dict[str, str]:
    """
    Return what each imported local name stands for, as a dotted name.
    """
    origins: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                origins[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return origins


def dotted(node: ast.expr, origins: dict[str, str]) -> str:
    """
    Return the dotted name that an expression stands for, "" when it is anything else.
    """
    if isinstance(node, ast.Name):
        return origins.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        base = dotted(node.value, origins)
        return f"{base}.{node.attr}" if base else ""
    return ""


def call_breaches(tree: ast.Module, path: str) -> Iterator[Breach]:
    """
    Yield each use of a name or argument that is forbidden in the file's area.
    """
    area = area_of(path).name
    origins = _origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            rule = _name_rule(area, dotted(node, origins))
            if rule:
                yield Breach(path, node.lineno, rule)
        elif isinstance(node, ast.Call):
            yield from _argument_breaches(node, path, area, origins)


def _name_rule(area: str, name: str) -> str | None:
    if name in FORBIDDEN_NAMES:
        return f"{name} is forbidden: {FORBIDDEN_NAMES[name]}"
    if name in CLOCKS and area not in ("tools", "tests", "store"):
        return f"{area} may not read the clock ({name}): time is a parameter"
    return None


def _argument_breaches(
    node: ast.Call, path: str, area: str, origins: dict[str, str]
) -> Iterator[Breach]:
    for keyword in node.keywords:
        if keyword.arg == "preexec_fn":
            yield Breach(path, node.lineno, "preexec_fn is forbidden: it runs code after a fork")
        is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
        if keyword.arg == "shell" and is_true:
            yield Breach(path, node.lineno, "shell=True is forbidden: give an argument list")
    name = dotted(node.func, origins)
    starts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
    # The harnesses make thousands of processes, forked from a server that opened nothing.
    forking = {"fork"} if path == "tools/torture/children.py" else {"fork", "forkserver"}
    if name.startswith("multiprocessing.") and forking & set(starts):
        yield Breach(path, node.lineno, "multiprocessing may only spawn")
    is_core = area.startswith("projections")
    barred = CORE_BUILTINS if is_core else VOCABULARY_BUILTINS if area == "domain" else frozenset()
    if isinstance(node.func, ast.Name) and node.func.id in barred and node.func.id not in origins:
        yield Breach(path, node.lineno, f"{area} may not call {node.func.id}()")


# --------------------------------------------------------------------------------- set iteration

# These show the order of what they are given; sorted, len, min, max, sum, any, all don't.
ORDER_SHOWING = frozenset("list tuple enumerate iter zip map filter reversed".split())


def set_attributes(trees: list[ast.Module]) -> frozenset[str]:
    """
    Return the attribute names declared as sets, and as nothing else, anywhere in the core.
    """
    sets: set[str] = set()
    others: set[str] = set()
    for tree in trees:
        for name, is_set in _declared(tree):
            (sets if is_set else others).add(name)
    return frozenset(sets - others)


def _declared(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    yield line.target.id, _is_set_type(line.annotation)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            yield node.target.attr, _is_set_type(node.annotation)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield node.targets[0].attr, _is_set_value(node.value, frozenset(), frozenset())


def _is_set_type(node: ast.expr) -> bool:
    base = node.value if isinstance(node, ast.Subscript) else node
    return isinstance(base, ast.Name) and base.id in ("set", "frozenset")


def _is_set_value(node: ast.expr, names: frozenset[str], attributes: frozenset[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):
        return node.attr in attributes
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub):
        return _is_set_value(node.left, names, attributes)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in ("set", "frozenset")
        if isinstance(node.func, ast.Attribute) and node.func.attr in (
            "union", "intersection", "difference", "symmetric_difference", "copy",
        ):
            return _is_set_value(node.func.value, names, attributes)
    return False


def set_breaches(
    tree: ast.Module, path: str, attributes: frozenset[str] = frozenset()
) -> Iterator[Breach]:
    """
    Yield each place where the order of a set can be seen, as far as a syntax tree tells.
    """
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for scope in [*scopes, tree]:
        names = _set_names(scope)
        for node in _own_nodes(scope):
            for line, what in _order_seen(node, names, attributes):
                yield Breach(path, line, f"{what} shows the order of a set: sort it first")


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """
    Yield what belongs to a function or module itself, not to a function inside it.
    """
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _own_nodes(node)


def _set_names(scope: ast.AST) -> frozenset[str]:
    names = set()
    for node in _own_nodes(scope):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names |= {node.target.id} if _is_set_type(node.annotation) else set()
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            is_set = _is_set_value(node.value, frozenset(), frozenset())
            names |= {node.targets[0].id} if is_set else set()
        elif isinstance(node, ast.arg) and node.annotation is not None:
            names |= {node.arg} if _is_set_type(node.annotation) else set()
    return frozenset(names)


def _order_seen(
    node: ast.AST, names: frozenset[str], attributes: frozenset[str]
) -> Iterator[tuple[int, str]]:
    def is_set(value: ast.expr) -> bool:
        return _is_set_value(value, names, attributes)

    if isinstance(node, ast.For) and is_set(node.iter):
        yield node.lineno, "for"
    elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
        if any(is_set(part.iter) for part in node.generators):
            yield node.lineno, "a comprehension"
    elif isinstance(node, ast.Starred) and is_set(node.value):
        yield node.lineno, "unpacking"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in ORDER_SHOWING and any(map(is_set, node.args)):
            yield node.lineno, f"{node.func.id}()"
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "pop" and not node.args and is_set(node.func.value):
            yield node.lineno, ".pop()"
        elif node.func.attr in ("join", "extend") and any(map(is_set, node.args)):
            yield node.lineno, f".{node.func.attr}()"


# --------------------------------------------------------------------------------------- lengths


class Length(NamedTuple):
    """
    The length of a file or function, and whether a reason stands beside it.
    """

    lines: int
    path: str
    line: int
    name: str
    has_reason: bool


def function_lengths(tree: ast.Module, path: str, source: list[str]) -> Iterator[Length]:
    """
    Yield each function with the lines of its body, docstring left out.

    A comment that begins with `# hot:` or `# long:` in the line above it, or in its first lines,
    is its reason.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = node.body[0]
        is_documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        begin = (first.end_lineno or first.lineno) + 1 if is_documented else first.lineno
        above = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        near = source[max(0, above - 4) : begin + 3]
        has_reason = any(line.strip().startswith(("# hot:", "# long:")) for line in near)
        lines = (node.end_lineno or begin) - begin + 1
        yield Length(lines, path, node.lineno, node.name, has_reason)


def parsed(root: Path, folders: tuple[str, ...]) -> dict[str, tuple[ast.Module, list[str]]]:
    """
    Return tree and lines of each Python file below the folders, by path from the root.
    """
    files = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    result = {}
    for path in files:
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root).as_posix()
        result[name] = (ast.parse(text, name), text.splitlines())
    return result

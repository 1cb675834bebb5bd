"""
What a select means around its value: the default host type, its static part, and which condition
failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from domain.resources import Catalogue, ValueType
from domain.resreq.check import leaves_of, names_in
from domain.resreq.evaluate import (
    ANYWHERE,
    HostView,
    SubmissionHost,
    compile_select,
    load_names,
)
from domain.resreq.render import render_expr
from domain.resreq.syntax import Defined, Expr, Name, Text, all_of, conjuncts

LOCAL_TYPE: Final = Text(kind="text", name="type", op="==", value="local")


def lifts_default_type(expr: Expr | None, catalogue: Catalogue) -> bool:
    """
    Say whether a select names a text, a boolean or defined(): hosts of any type are then meant.
    """
    for leaf in leaves_of(expr):
        if isinstance(leaf, Text | Defined):
            return True
        if isinstance(leaf, Name):
            found = catalogue.get(leaf.name)
            if found is not None and found.value_type is not ValueType.NUMBER:
                return True
    return False


def with_default_type(
    expr: Expr | None, catalogue: Catalogue, *, has_requirement: bool, names_hosts: bool
) -> Expr | None:
    """
    Return a select with LSF's ``type==local`` in front, where LSF adds it.

    Args:
        expr: The merged select of job, profile and queue, None without one.
        catalogue: Tells numbers from booleans and texts.
        has_requirement: Whether the job came with a requirement at all, of whatever sections.
        names_hosts: Whether the job names the hosts it wants; without a requirement that lifts the
            default.
    """
    if lifts_default_type(expr, catalogue) or (names_hosts and not has_requirement):
        return expr
    return LOCAL_TYPE if expr is None else all_of((LOCAL_TYPE, expr))


# ---------------------------------------------------------------------------- parts and reasons


@dataclass(frozen=True, slots=True)
class SelectParts:
    """
    Hold a select as two conditions that must both hold.

    Args:
        static: What depends on attributes alone: can be remembered per expression and revision of
            the host.
        dynamic: What looks at free amounts and load, and changes with every dispatch.
    """

    static: Expr | None
    dynamic: Expr | None


def split_select(expr: Expr | None, catalogue: Catalogue) -> SelectParts:
    """
    Return the conditions of a select, those over static attributes apart from the others.
    """
    static: list[Expr] = []
    dynamic: list[Expr] = []
    for part in conjuncts(expr):
        (static if is_static(part, catalogue) else dynamic).append(part)
    return SelectParts(
        all_of(tuple(static)) if static else None, all_of(tuple(dynamic)) if dynamic else None
    )


def is_static(expr: Expr, catalogue: Catalogue) -> bool:
    """
    Say whether an expression's value on a host changes only when the host's description does.
    """
    found = [catalogue.get(name) for name in names_in(expr)]
    return all(descriptor is not None and descriptor.is_static for descriptor in found)


@dataclass(frozen=True, slots=True)
class Verdict:
    """
    Say whether a host is selected, and if not, why.

    Args:
        failed: The conditions that don't hold, as text.
        unreported: Load indices that the expression looks at and the host doesn't report.
    """

    is_selected: bool
    failed: tuple[str, ...] = ()
    unreported: tuple[str, ...] = ()


def explain(
    expr: Expr | None,
    catalogue: Catalogue,
    host: HostView,
    *,
    submitted_from: SubmissionHost = ANYWHERE,
) -> Verdict:
    """
    Return the verdict on one host with every condition that fails.
    """
    loads = load_names(expr, catalogue)
    unreported = tuple(name for name in loads if host.amount_milli(name) is None)
    failed = tuple(
        render_expr(part)
        for part in conjuncts(expr)
        if not compile_select(part, catalogue, submitted_from=submitted_from)(host)
    )
    return Verdict(not failed and not unreported, failed, unreported)

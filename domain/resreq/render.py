"""
Write a requirement as text: parsing it again under the same settings gives an equal requirement.

The text doesn't depend on how it was written first: memory carries its unit, every section its
name.
"""

from __future__ import annotations

import re
from typing import Final

from domain.resreq.settings import DEFAULT_SETTINGS, ParseSettings
from domain.resreq.syntax import (
    Affinity,
    AllOf,
    AnyOf,
    Binary,
    Compound,
    Defined,
    Expr,
    Minus,
    Name,
    Not,
    Number,
    OrderKey,
    Per,
    Primary,
    Requirement,
    RusageTerm,
    Span,
    SpanForm,
    Text,
)
from domain.units import MINUTE_US, show_lsf_duration, show_memory, show_milli

_PRECEDENCE: Final = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, "<=": 4, ">": 4, ">=": 4,
    "+": 5, "-": 5, "*": 6, "/": 6,
}  # fmt: skip
_UNARY: Final = 7
_BARE: Final = re.compile(r"[A-Za-z0-9_]+")


def render(requirement: Requirement, *, settings: ParseSettings = DEFAULT_SETTINGS) -> str:
    """
    Return the requirement as text.
    """
    if requirement.is_simple:
        return _primary(requirement.only, settings)
    if len(requirement.compounds) == 1 and not requirement.compounds[0].delay_us:
        return _compound(requirement.compounds[0], settings, is_alone=True)
    return " || ".join(_branch(compound, settings) for compound in requirement.compounds)


def _branch(compound: Compound, settings: ParseSettings) -> str:
    text = _compound(compound, settings, is_alone=False)
    return f"{text}@{compound.delay_us // MINUTE_US}" if compound.delay_us else text


def _compound(compound: Compound, settings: ParseSettings, *, is_alone: bool) -> str:
    if len(compound.primaries) == 1 and compound.primaries[0].tasks is None and not compound.same:
        return f"{{{_primary(compound.primaries[0], settings)}}}"
    terms = [_term(primary, settings) for primary in compound.primaries]
    text = " + ".join(terms)
    if compound.same:
        return f"{{{text}}} {_same(compound.same)}"
    return text if is_alone else f"{{{text}}}"


def _term(primary: Primary, settings: ParseSettings) -> str:
    count = "" if primary.tasks is None else f"{primary.tasks}*"
    return f"{count}{{{_primary(primary, settings)}}}"


def _primary(primary: Primary, settings: ParseSettings) -> str:
    sections = []
    if primary.select is not None:
        sections.append(f"select[{render_expr(primary.select)}]")
    if primary.order or primary.order_again:
        sections.append(_order(primary.order, again=primary.order_again))
    if primary.rusage:
        sections.append(f"rusage[{render_usages(primary.rusage, settings=settings)}]")
    if primary.span is not None:
        sections.append(f"span[{render_span(primary.span)}]")
    if primary.same:
        sections.append(_same(primary.same))
    if primary.affinity is not None:
        sections.append(_affinity(primary.affinity))
    return " ".join(sections)


def _same(names: tuple[str, ...]) -> str:
    return f"same[{':'.join(names)}]"


def _affinity(affinity: Affinity) -> str:
    distribute = f":distribute={affinity.distribute}" if affinity.distribute else ""
    return f"affinity[{affinity.unit}({affinity.count}){distribute}]"


def _order(keys: tuple[OrderKey, ...], *, again: bool) -> str:
    shown = ":".join(f"{'-' if key.is_reversed else ''}{key.name}" for key in keys)
    return f"order[{'!' if again else ''}{shown}]"


def render_span(span: Span) -> str:
    """
    Return what stands between the brackets of a span.
    """
    if span.form is SpanForm.ONE_HOST:
        return "hosts=1"
    if span.form is SpanForm.CANCELLED:
        return "hosts=-1"
    if span.form is SpanForm.PTILE_SLOTS:
        return ",".join(["ptile='!'", *(f"{kind.kind}:{kind.count}" for kind in span.kinds)])
    return f"{span.form.value}={span.count}" if span.count else span.form.value


def render_usages(
    usages: tuple[tuple[RusageTerm, ...], ...], *, settings: ParseSettings = DEFAULT_SETTINGS
) -> str:
    """
    Return what stands between the brackets of a rusage, every resource as a term of its own.
    """
    return "||".join(",".join(_rusage_term(term, settings) for term in usage) for usage in usages)


def _rusage_term(term: RusageTerm, settings: ParseSettings) -> str:
    amounts = [term.milli, *(phase.milli for phase in term.phases)]
    lasting = [term.duration_us, *(phase.duration_us for phase in term.phases)]
    falling = [bool(term.is_decaying), *(phase.is_decaying for phase in term.phases)]
    shown = _list([_amount(term.resource, milli, settings) for milli in amounts])
    method = "" if term.per is Per.DEFAULT else f"/{term.per.value}"
    text = f"{term.resource}={shown}{method}"
    durations = [show_lsf_duration(each_us) for each_us in lasting if each_us is not None]
    if durations:
        text += f":duration={_list(durations)}"
    if term.is_decaying is not None:
        text += f":decay={_list([str(int(decay)) for decay in falling])}"
    if term.threshold_milli is not None:
        text += f":threshold={_amount(term.resource, term.threshold_milli, settings)}"
    return text


def _list(values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"({' '.join(values)})"


def _amount(resource: str, milli: int, settings: ParseSettings) -> str:
    return show_memory(milli) if resource in settings.memory_names else show_milli(milli)


# --------------------------------------------------------------------------------- expressions


def render_expr(expr: Expr) -> str:
    """
    Return an expression with no more parentheses than it needs.
    """
    return _expr(expr)[0]


def _expr(expr: Expr) -> tuple[str, int]:
    """
    Return an expression's text and how tightly its outermost operator binds.
    """
    if isinstance(expr, AllOf | AnyOf):
        sign = "&&" if isinstance(expr, AllOf) else "||"
        return f" {sign} ".join(
            _within(part, _PRECEDENCE[sign] + 1) for part in expr.parts
        ), _PRECEDENCE[sign]
    if isinstance(expr, Binary):
        binding = _PRECEDENCE[expr.op]
        left, right = _within(expr.left, binding), _within(expr.right, binding + 1)
        return f"{left} {expr.op} {right}", binding
    if isinstance(expr, Not | Minus):
        sign = "!" if isinstance(expr, Not) else "-"
        return f"{sign}{_within(expr.of, _UNARY)}", _UNARY
    return _leaf(expr)


def _within(expr: Expr, least: int) -> str:
    text, binding = _expr(expr)
    return text if binding >= least else f"({text})"


def _leaf(expr: Number | Name | Text | Defined) -> tuple[str, int]:
    if isinstance(expr, Text):
        return f"{expr.name} {expr.op} {_literal(expr)}", _PRECEDENCE[expr.op]
    if isinstance(expr, Defined):
        return f"defined({expr.name})", _UNARY + 1
    if isinstance(expr, Name):
        return expr.name, _UNARY + 1
    return f"{show_milli(expr.milli)}{expr.unit}", _UNARY + 1


def _literal(text: Text) -> str:
    if text.name in DEFAULT_SETTINGS.text_names and _BARE.fullmatch(text.value):
        return text.value
    quote = '"' if "'" in text.value else "'"
    return f"{quote}{text.value}{quote}"


def text_of(requirement: Requirement | None) -> str:
    """
    Return a requirement in canonical words, "" for none; an empty one is told from none.
    """
    if requirement is None:
        return ""
    return render(requirement) or "select[]"

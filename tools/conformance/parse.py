"""
Run vectors of the kind ``parse``: a requirement's text gives a normal form, or is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from domain.errors import Refused
from domain.resources import Catalogue
from domain.resreq import Requirement
from domain.resreq.check import check
from domain.resreq.parser import Parsed, parse_and_warn
from domain.resreq.render import render_span
from domain.resreq.syntax import Per, Phase, RusageTerm, simple_requirement
from domain.resreq.tasks import TaskRange, check_tasks, task_counts
from domain.units import (
    MILLI,
    MINUTE_US,
    SECOND_US,
    MemoryUnit,
    memory_limit_kib,
    memory_unit_of,
)
from tools.conformance import array_names, dependencies
from tools.conformance.names import catalogue_of
from tools.conformance.trees import alike, read_tree, tree_of
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    items_of,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
    whole_of,
)

COUNTS = (
    "n",
    "tasks",
    "task_count",
    "task_counts",
    "total",
    "counts",
    "terms",
    "slots",
    "total_tasks",
    "term_counts",
    "term_tasks",
    "n_tasks",
)
"""Expectations about counts of tasks: a list is one count for each term, a number the sum."""

LIMITS = ("M", "C", "S", "F", "D", "v")
"""Options of limits that are given in units of memory."""


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    found = []
    for label, case in cases_of(vector.fields):
        found += [f"{label} {line}".strip() for line in _of_case(case)]
    return found


def unit_of(case: Fields) -> MemoryUnit:
    """
    Return the cluster's unit of memory, MB unless the case says another.
    """
    named = text_of(case.get("unit") or mapping_of(case.get("params")).get("unit") or "MB")
    unit = memory_unit_of(named)
    if unit is None:
        raise Malformed(f"{named} is no unit of memory")
    return unit


def understood(case: Fields, texts: Sequence[str], catalogue: Catalogue) -> Parsed:
    """
    Return the texts parsed and checked.

    Raises:
        Refused: They are refused.
    """
    settings = catalogue.parse_settings(unit_of(case))
    parsed = parse_and_warn(texts, settings=settings)
    requirement = check(parsed.requirement, catalogue, texts=texts)
    check_tasks(requirement, _asked(case))
    return Parsed(requirement, parsed.warnings)


def _asked(case: Fields) -> TaskRange | None:
    asked = case.get("n")
    if asked is None:
        return None
    if isinstance(asked, int):
        return TaskRange(asked, asked)
    least, most = items_of(asked)
    return TaskRange(whole_of(least), whole_of(most))


def refusal_of(case: Fields, texts: Sequence[str]) -> Refused | None:
    """
    Return why texts that should be refused are, None when they aren't.

    The names that they use count as known first, so that the rule itself refuses; only then those
    that the whole file knows.
    """
    for is_lenient in (True, False):
        try:
            understood(case, texts, catalogue_of(case, texts, is_lenient=is_lenient))
        except Refused as refused:
            return refused
    return None


def _of_case(case: Fields) -> list[str]:
    if "R" not in case and "J" in case:
        return array_names.differences_of(case)
    if "R" not in case and "w" in case:
        return dependencies.differences_of(case)
    if not {"R", *LIMITS}.intersection(case):
        raise Malformed("there is nothing to parse: no R")
    expect = mapping_of(case.get("expect"))
    texts = texts_of(case.get("R"))
    if expect.get("reject") is True or False in (expect.get("accept"), expect.get("all_accept")):
        return [] if refusal_of(case, texts) is not None else ["expected a refusal"]
    parsed = understood(case, texts, catalogue_of(case, texts, is_lenient="given" not in case))
    found = []
    for name, expected in expect.items():
        found += _difference(name, expected, parsed, case)
    return found


def _difference(name: str, expected: object, parsed: Parsed, case: Fields) -> list[str]:
    requirement = parsed.requirement
    if name in {"reject", "all_accept", "accept", "operand_order_free"}:
        return []
    if name == "warning":
        warnings = "; ".join(parsed.warnings)
        return [] if text_of(expected) in warnings else differing(name, expected, warnings)
    if name == "normal":
        return normal_differences(mapping_of(expected), requirement, case)
    if name == "equal_to":
        same = understood(
            case, texts_of(expected), catalogue_of(case, texts_of(expected), is_lenient=True)
        )
        return differing(name, same.requirement, requirement)
    if name in LIMITS:
        limit_kib = memory_limit_kib(text_of(case.get(name)), unit=unit_of(case))
        return differing(name, expected, limit_kib // unit_of(case).kib)
    if name in {"tree", "select", "order", "same", "span", *_RUSAGE}:
        return section_difference(name, expected, requirement, case)
    return _count_difference(name, expected, requirement, case)


def normal_differences(normal: Fields, requirement: Requirement, case: Fields) -> list[str]:
    """
    Return what differs from a normal form, section by section; sections it doesn't name aren't
    there.
    """
    found = []
    for name, expected in normal.items():
        found += section_difference(name, expected, requirement, case)
    primary = requirement.compounds[0].primaries[0]
    present = {
        "select": primary.select, "rusage": primary.rusage, "order": primary.order,
        "same": primary.same, "span": primary.span, "affinity": primary.affinity,
    }  # fmt: skip
    extra = [name for name, value in present.items() if value and name not in normal]
    if "rusage" in extra and set(_RUSAGE) & set(normal):
        extra.remove("rusage")
    return found + [f"{name} isn't expected" for name in extra]


_RUSAGE = ("rusage", "rusage_alternatives", "rusage_phases")


def section_difference(
    name: str, expected: object, requirement: Requirement, case: Fields
) -> list[str]:
    """
    Return what differs in one section of the first primary.
    """
    primary = requirement.compounds[0].primaries[0]
    if name == "tree":
        is_free = bool(mapping_of(case.get("expect")).get("operand_order_free"))
        wanted, found = (
            alike(tree, is_order_free=is_free, unit=unit_of(case))
            for tree in (read_tree(text_of(expected)), tree_of(primary.select))
        )
        return differing(name, wanted, found)
    if name == "select":
        texts = texts_of(expected)
        wanted_select = understood(
            case, texts, catalogue_of(case, texts, is_lenient=True)
        ).requirement
        wanted, found = (
            alike(tree_of(select), unit=unit_of(case))
            for select in (wanted_select.only.select, primary.select)
        )
        return differing(name, wanted, found)
    if name == "order":
        keys = [f"{'-' if key.is_reversed else ''}{key.name}" for key in primary.order]
        return differing(name, list(texts_of(expected)), keys)
    if name == "same":
        compound = requirement.compounds[0]
        same = primary.same if requirement.is_simple else compound.same or primary.same
        return differing(name, list(texts_of(expected)), list(same))
    if name == "span":
        shown = None if primary.span is None else render_span(primary.span)
        return differing(name, _span_text(expected), shown)
    return _rusage_difference(name, expected, requirement, case)


def _span_text(expected: object) -> object:
    """
    Return a span as it is written: ``{block: 4}`` is ``block=4``.
    """
    if not isinstance(expected, Mapping):
        return expected
    return ":".join(f"{word}={text_of(value)}" for word, value in expected.items())


# -------------------------------------------------------------------------------------- rusage


def _rusage_difference(
    name: str, expected: object, requirement: Requirement, case: Fields
) -> list[str]:
    unit = unit_of(case)
    usages = requirement.compounds[0].primaries[0].rusage
    if name == "rusage_phases":
        if not usages:
            return differing(name, "phases", "no rusage")
        terms = {term.resource: term for term in usages[0]}
        found = []
        for resource, phases in mapping_of(expected).items():
            shown, told = _phases(terms[resource], unit), mappings_of(phases)
            if len(told) == len(shown):
                # What of a phase isn't told may be anything.
                shown = [
                    {name: value for name, value in each.items() if name in of_phase}
                    for each, of_phase in zip(shown, told, strict=True)
                ]
            found += differing(f"phases of {resource}", [dict(each) for each in told], shown)
        return found
    wanted = [expected] if name == "rusage" else list(items_of(expected))
    if len(wanted) != len(usages):
        return differing(f"count of alternatives of {name}", len(wanted), len(usages))
    found = []
    for alternative, usage in zip(wanted, usages, strict=True):
        fields = [alternative] if isinstance(alternative, dict) else list(items_of(alternative))
        found += _usage_difference(fields, usage, unit)
    return found


def _usage_difference(
    expected: Sequence[object], usage: Sequence[RusageTerm], unit: MemoryUnit
) -> list[str]:
    """
    Compare one alternative: each mapping names resources with amounts, and what they have in
    common.
    """
    wanted: list[tuple[str, object, Fields]] = []
    for fields in map(mapping_of, expected):
        common: Fields = {name: value for name, value in fields.items() if name in _COMMON}
        wanted += [(name, value, common) for name, value in fields.items() if name not in _COMMON]
    names = sorted(name for name, _, _ in wanted)
    found = differing("reserved", names, sorted(term.resource for term in usage))
    if found:
        return found
    terms = {term.resource: term for term in usage}
    for name, value, common in wanted:
        term = terms[name]
        found += differing(name, _exact(value), _amount(term.milli, name, unit))
        found += _common_difference(name, common, term)
    return found


_COMMON = ("duration_s", "duration_min", "decay", "per", "threshold")


def _common_difference(name: str, common: Fields, term: RusageTerm) -> list[str]:
    duration_s = None if term.duration_us is None else term.duration_us // SECOND_US
    wanted_s = common.get("duration_s")
    if "duration_min" in common:
        wanted_s = whole_of(common["duration_min"]) * 60
    found = differing(f"duration of {name}", wanted_s, duration_s)
    per = Per(text_of(common.get("per")))
    found += differing(f"method of {name}", per, term.per)
    if common.get("decay") is not None:
        found += differing(f"decay of {name}", common["decay"], int(bool(term.is_decaying)))
    if "threshold" in common:
        milli = term.threshold_milli
        shown = None if milli is None else _amount(milli, name, MemoryUnit.MB)
        found += differing(f"threshold of {name}", _exact(common["threshold"]), shown)
    return found


def _exact(value: object) -> Fraction:
    return Fraction(Decimal(text_of(value)))


def _amount(milli: int, resource: str, unit: MemoryUnit) -> Fraction:
    is_memory = resource in {"mem", "swp", "tmp"}
    return Fraction(milli, MILLI * (unit.kib if is_memory else 1))


def _phases(term: RusageTerm, unit: MemoryUnit) -> list[dict[str, object]]:
    first = Phase(
        milli=term.milli, duration_us=term.duration_us, is_decaying=bool(term.is_decaying)
    )
    return [
        {
            "value": _plain(_amount(phase.milli, term.resource, unit)),
            "duration_s": None if phase.duration_us is None else phase.duration_us // SECOND_US,
            "decay": int(phase.is_decaying),
        }
        for phase in (first, *term.phases)
    ]


def _plain(value: Fraction) -> object:
    return value.numerator if value.denominator == 1 else value


# -------------------------------------------------------------------------------------- counts


def _are_terms(expected: object) -> bool:
    return isinstance(expected, list) and any(isinstance(each, Mapping) for each in expected)


def _term_differences(terms: list[Fields], requirement: Requirement, case: Fields) -> list[str]:
    """
    Return what differs in the terms of a compound: each a count under ``n`` or ``count``, and
    sections.
    """
    compound = requirement.compounds[0]
    if len(terms) != len(compound.primaries):
        return differing("count of terms", len(terms), len(compound.primaries))
    counts = task_counts(compound, _asked(case))
    found = []
    for term, primary, count in zip(terms, compound.primaries, counts, strict=True):
        for name, wanted in term.items():
            if name in COUNTS or name == "count":
                found += differing(name, wanted, count.least)
            else:
                found += section_difference(name, wanted, simple_requirement(primary), case)
    return found


def _count_difference(
    name: str, expected: object, requirement: Requirement, case: Fields
) -> list[str]:
    if name == "delays_min":
        delays = [compound.delay_us // MINUTE_US for compound in requirement.compounds]
        return differing(name, list(items_of(expected)), delays)
    if name in COUNTS and _are_terms(expected):
        return _term_differences(mappings_of(expected), requirement, case)
    if name in COUNTS and isinstance(expected, list):
        counts = task_counts(requirement.compounds[0], _asked(case))
        shown = [
            each.least if each.least == each.most else [each.least, each.most] for each in counts
        ]
        return differing(name, list(items_of(expected)), shown)
    if name in COUNTS:
        total = check_tasks(requirement, _asked(case))[0]
        shown_total = total.least if total.least == total.most else [total.least, total.most]
        return differing(name, expected, shown_total)
    raise Malformed(f"nothing is known of expecting {name!r}")

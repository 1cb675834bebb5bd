"""
What a resource requirement reserves, as far as it is carried out: amounts by ``rusage[...]``.

Everything else that the language can say is refused by name: a requirement that would silently be
ignored is worse than none.
"""

from __future__ import annotations

from domain.errors import Refused
from domain.jobs import Need
from domain.resreq import Primary, parse
from domain.resreq.syntax import Per, RusageTerm

FIELD = "resreq"
NOT_YET = "only rusage[...] is carried out yet, not {}"


def needs_of(texts: tuple[str, ...]) -> tuple[Need, ...]:
    """
    Return the amounts that the texts of a requirement reserve.

    Raises:
        Refused: They aren't understood, or ask for more than amounts.
    """
    if not texts:
        return ()
    requirement = parse(texts)
    if not requirement.is_simple:
        raise Refused(FIELD, NOT_YET.format("compound or alternative requirements"), texts[0])
    primary = requirement.only
    for section, given in _others(primary):
        if given:
            raise Refused(FIELD, NOT_YET.format(f"{section}[...]"), texts[0])
    if len(primary.rusage) > 1:
        raise Refused(FIELD, NOT_YET.format("alternatives of rusage"), texts[0])
    return tuple(_need(term, texts[0]) for terms in primary.rusage for term in terms)


def _others(primary: Primary) -> tuple[tuple[str, object], ...]:
    return (
        ("select", primary.select),
        ("span", primary.span),
        ("order", primary.order),
        ("same", primary.same),
        ("affinity", primary.affinity),
    )


def _need(term: RusageTerm, text: str) -> Need:
    if term.duration_us is not None or term.is_decaying or term.phases:
        raise Refused(FIELD, NOT_YET.format("duration or decay"), text)
    if term.threshold_milli is not None:
        raise Refused(FIELD, NOT_YET.format("threshold"), text)
    if term.per is Per.JOB:
        raise Refused(FIELD, NOT_YET.format("amounts per job"), text)
    return Need(resource=term.resource, milli=term.milli, per_task=term.per is Per.TASK)

"""
Run vectors of the kind ``select``: which hosts an expression selects, under LSF's default host
type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from domain.resources import Catalogue, ResourceDescriptor, ValueType
from domain.resreq.evaluate import SubmissionHost, compile_select
from domain.resreq.processors import with_slots
from domain.resreq.verdicts import with_default_type
from domain.units import MILLI, parse_memory_milli, parse_milli
from tools.conformance.core_resources import KNOWN_SHARED, SAME_IN_SHARED, places_in
from tools.conformance.core_setup import (
    KNOWN_HOST,
    LOADS,
    SAME_IN_JOB,
    asked_host,
    asked_texts,
)
from tools.conformance.names import attribute, catalogue_of, number, used_in
from tools.conformance.parse import refusal_of, understood, unit_of
from tools.conformance.schedule import cluster_in
from tools.conformance.values import (
    Fields,
    Vector,
    cases_of,
    differing,
    known_only,
    mapping_of,
    mappings_of,
    text_of,
    texts_of,
)
from tools.conformance.written import SAME_PARAMS, is_yes, named_alike

MEMORY_DEFAULT: Final = 16000
MEMORY: Final = ("mem", "swp", "tmp", "maxmem", "maxswp", "maxtmp")


NUMBERS: Final = (
    *LOADS,
    *MEMORY,
    "cpuf",
    "slots",
    "maxslots",
    "ncpus",
    "ndisks",
    "nprocs",
    "ncores",
)
KNOWN_FIELDS: Final = {*NUMBERS, *KNOWN_HOST}


@dataclass(slots=True)
class VectorHost:
    """
    Be a host as a vector describes it, with the defaults that all vectors share.
    """

    name: str
    amounts: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    flags: frozenset[str] = frozenset()

    def amount_milli(self, name: str) -> int | None:
        """
        Return a number in thousandths, None where the host has none.
        """
        return self.amounts.get(name)

    def text(self, name: str) -> str | None:
        """
        Return a text, None where the host has none.
        """
        return self.texts.get(name)

    def flag(self, name: str) -> bool:
        """
        Say whether the host has a boolean.
        """
        return name in self.flags


def host_of(fields: Fields, case: Fields) -> VectorHost:
    """
    Return the host that a vector's fields describe.
    """
    known_only(fields, KNOWN_FIELDS, "a host")
    known_only(mapping_of(fields.get("load")), NUMBERS, "the load of a host")
    slots = fields.get("slots", 4)
    numbers: dict[str, object] = dict.fromkeys(LOADS, 0)
    numbers |= {"cpuf": 1, "slots": slots, "maxslots": slots, "ncpus": fields.get("ncpus", slots)}
    total = fields.get("maxmem", fields.get("mem"))
    numbers |= dict.fromkeys(MEMORY, MEMORY_DEFAULT if total is None else total)
    numbers |= mapping_of(fields.get("num"))
    told = {**fields, **mapping_of(fields.get("load"))}
    numbers |= {name: value for name, value in told.items() if name in NUMBERS}
    amounts = {
        name: _milli(name, value, case) for name, value in numbers.items() if value is not None
    }
    if fields.get("load_available") is False:
        amounts = {
            name: value for name, value in amounts.items() if name not in LOADS[:] + MEMORY[:3]
        }
    name = text_of(fields.get("name"))
    texts = {"type": "LINUX", "model": "M1", "hname": name, "status": "ok"}
    texts |= {each: text_of(fields[each]) for each in ("type", "model", "status") if each in fields}
    texts |= {each: text_of(value) for each, value in mapping_of(fields.get("str")).items()}
    return VectorHost(name, amounts, texts, frozenset(texts_of(fields.get("bool"))))


def _milli(name: str, value: object, case: Fields) -> int:
    if isinstance(value, int):
        return value * (unit_of(case).kib * MILLI if name in MEMORY else MILLI)
    if name in MEMORY:
        return parse_memory_milli(text_of(value), unit=unit_of(case))
    return parse_milli(text_of(value))


def _catalogue(hosts: Sequence[Fields], case: Fields, texts: Sequence[str]) -> Catalogue:
    """
    Return the catalogue of what the hosts have; what they all lack is known by its use.
    """
    found: dict[str, ResourceDescriptor] = used_in(texts)
    for host in hosts:
        found |= {name: number(name) for name in mapping_of(host.get("num"))}
        found |= {name: attribute(name, ValueType.STRING) for name in mapping_of(host.get("str"))}
        found |= {name: attribute(name, ValueType.BOOLEAN) for name in texts_of(host.get("bool"))}
    for shared in shared_of(case):
        name = text_of(shared.get("name"))
        found[name] = number(name)
    declared = catalogue_of({"given": case.get("given")}, (), is_lenient=False)
    given = {name: declared.get(name) for name in declared.names()}
    return Catalogue({**found, **{n: d for n, d in given.items() if d is not None}}.values())


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    found = []
    for label, case in cases_of(vector.fields):
        found += [f"{label} {line}".strip() for line in _of_case(case)]
    return found


def _of_case(case: Fields) -> list[str]:
    case = {**case, "cluster": cluster_in(mapping_of(case.get("cluster")))}
    expect = mapping_of(case.get("expect"))
    texts = texts_of(case.get("R"))
    if expect.get("reject") is True:
        return [] if refusal_of(case, texts) is not None else ["expected a refusal"]
    hosts = mappings_of(mapping_of(case.get("cluster")).get("hosts"))
    asked = [asked_host(text).host for text in asked_texts(case.get("m"))]
    chosen = _selected(case, hosts, texts, names_hosts=bool(asked))
    if asked:
        chosen = [name for name in chosen if name in asked]
    return differing(f"selected by {list(texts)}", list(texts_of(expect.get("selected"))), chosen)


def _selected(
    case: Fields, hosts: Sequence[Fields], texts: Sequence[str], *, names_hosts: bool
) -> list[str]:
    catalogue = _catalogue(hosts, case, texts)
    select = understood(case, texts, catalogue).requirement.compounds[0].primaries[0].select
    select = with_default_type(
        select, catalogue, has_requirement=bool(texts), names_hosts=names_hosts
    )
    told = named_alike({**case, **mapping_of(case.get("job"))}, SAME_IN_JOB)
    submitted_from = SubmissionHost(
        text_of(told.get("submit_type") or "LINUX"), text_of(told.get("submit_model") or "M1")
    )
    params = named_alike(mapping_of(case.get("params")), SAME_PARAMS)
    known_only(params, ["parallel_sched_by_slot", "unit"], "params")
    if select is not None and is_yes(params.get("parallel_sched_by_slot", True)):
        select = with_slots(select)
    test = compile_select(select, catalogue, submitted_from=submitted_from)
    found = [host_of({**fields, "num": _numbers(fields, case)}, case) for fields in hosts]
    return [host.name for host in found if test(host)]


def shared_of(case: Fields) -> list[Fields]:
    """
    Return the resources that hosts share.
    """
    cluster = mapping_of(case.get("cluster"))
    known_only(cluster, ("hosts", "shared"), "a cluster")
    shared = [named_alike(each, SAME_IN_SHARED) for each in mappings_of(cluster.get("shared"))]
    for each in shared:
        known_only(each, KNOWN_SHARED, "a shared resource")
    return shared


def _numbers(host: Fields, case: Fields) -> Fields:
    """
    Return a host's numbers: its own, and what it shares with others.
    """
    found: dict[str, object] = {}
    for shared in shared_of(case):
        totals = [
            total
            for total, hosts in places_in(shared, case)
            if not hosts or text_of(host.get("name")) in hosts
        ]
        found |= dict.fromkeys([text_of(shared.get("name"))] if totals else [], *totals[:1])
    return {**found, **mapping_of(host.get("num"))}

"""
Turn what a vector says of resources into our own descriptors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from domain.resources import BUILT_IN, ResourceDescriptor, ResourceScope, SharedTotal, ValueType
from domain.units import parse_milli
from tools.conformance.core_setup import only
from tools.conformance.names import attribute, number, used_in
from tools.conformance.values import Fields, mapping_of, mappings_of, text_of, texts_of
from tools.conformance.written import is_yes, named_alike, places_of

KNOWN_SHARED: Final = ("name", "total", "location", "release", "increasing")

SAME_IN_SHARED: Final = {
    "RELEASE": "release", "LOCATION": "location", "locations": "location", "amount": "total",
    "INCREASING": "increasing", "TOTAL": "total",
}  # fmt: skip


def resources_of(case: Fields) -> list[ResourceDescriptor]:
    """
    Return the site's resources: those that hosts share, and those that are only named in
    requirements.
    """
    cluster = mapping_of(case.get("cluster"))
    shared = {text_of(each.get("name")): each for each in mappings_of(cluster.get("shared"))}
    found = [_shared(name, each, case) for name, each in shared.items()]
    told = dict.fromkeys(
        name for host in mappings_of(cluster.get("hosts")) for name in mapping_of(host.get("num"))
    )
    # LSF has a stopped job give back what a site counts, where it doesn't say otherwise.
    found += [
        number(name).model_copy(update={"release_on_suspend": True})
        for name in told
        if name not in shared
    ]
    told |= dict.fromkeys(shared)
    named = used_in(_texts_in(case, _refused_in(case)))
    named |= _attributes(mappings_of(cluster.get("hosts")))
    return found + [each for name, each in named.items() if name not in told]


def _attributes(hosts: Sequence[Fields]) -> dict[str, ResourceDescriptor]:
    """
    Return the attributes that hosts are told to have.
    """
    found: dict[str, ResourceDescriptor] = {}
    for host in hosts:
        found |= {name: attribute(name, ValueType.BOOLEAN) for name in texts_of(host.get("bool"))}
        found |= {name: attribute(name, ValueType.STRING) for name in mapping_of(host.get("str"))}
    return {name: each for name, each in found.items() if name not in BUILT_IN}


def _refused_in(case: Fields) -> Collection[str]:
    """
    Return the jobs that are expected to be refused: what they name needn't be there.
    """
    holders = [case, *mappings_of(case.get("steps")), *mappings_of(case.get("actions"))]
    wanted = [each["expect"] for each in holders if isinstance(each.get("expect"), Mapping)]
    refused = [mapping_of(expect).get("reject") for expect in wanted]
    return {name for each in refused if not isinstance(each, bool) for name in texts_of(each)}


def _texts_in(value: object, refused: Collection[str], field: object = None) -> list[str]:
    """
    Return the requirements that stand anywhere in a case, except in what is expected, and of jobs
    and changes that are refused.
    """
    if field in {"R", "RES_REQ"}:
        return list(texts_of(value))
    if isinstance(value, Mapping):
        expect = value.get("expect")
        is_denied = isinstance(expect, Mapping) and expect.get("ok") is False
        if is_denied or value.get("id") in refused:
            return []
        inner = [(each, name) for name, each in value.items() if name != "expect"]
    else:
        inner = [(each, None) for each in value] if isinstance(value, list) else []
    return [text for each, name in inner for text in _texts_in(each, refused, name)]


def _shared(name: str, written: Fields, case: Fields) -> ResourceDescriptor:
    fields = named_alike(written, SAME_IN_SHARED)
    only(fields, KNOWN_SHARED, "shared resource")
    return ResourceDescriptor(
        name=name,
        scope=ResourceScope.SHARED,
        totals=tuple(
            SharedTotal(total_milli=parse_milli(text_of(total)), hosts=hosts)
            for total, hosts in places_in(fields, case)
        ),
        is_consumable=True,
        lower_is_better=is_yes(fields.get("increasing")),
        release_on_suspend=is_yes(fields.get("release", True)),
    )


def places_in(shared: Fields, case: Fields) -> list[tuple[object, tuple[str, ...]]]:
    """
    Return where a shared resource is: the total of each place, and its hosts (none for all).
    """
    cluster = mapping_of(case.get("cluster"))
    hosts = [text_of(host.get("name")) for host in mappings_of(cluster.get("hosts"))]
    return places_of(shared.get("location"), shared.get("total"), hosts)

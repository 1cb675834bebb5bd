"""
Turn what a vector says of resources into our own descriptors.
"""

from __future__ import annotations

from typing import Final

from domain.resources import ResourceDescriptor, ResourceScope, SharedTotal
from domain.units import parse_milli
from tools.conformance.core_setup import only
from tools.conformance.names import number, used_in
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
    texts = [text for jobs in ("jobs", "running") for job in mappings_of(case.get(jobs))
             for text in texts_of(job.get("R"))]  # fmt: skip
    return found + [each for name, each in used_in(texts).items() if name not in told]


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

"""
Run vectors about the names of arrays: ``name[list]%k``.
"""

from __future__ import annotations

from typing import Final

from domain.arrays import INDEX_MAX_DEFAULT, parse_job_name
from domain.errors import Refused
from tools.conformance.values import (
    Fields,
    Malformed,
    Vector,
    cases_of,
    differing,
    items_of,
    known_only,
    mapping_of,
    text_of,
    whole_of,
)

LIMIT: Final = ("limit", "slot_limit", "max_running", "job_limit", "k")
COUNT: Final = ("count", "size", "n", "n_elements", "njobs", "NJOBS")


def differences(vector: Vector) -> list[str]:
    """
    Return what differs from what a vector expects.
    """
    found = []
    for label, case in cases_of(vector.fields):
        found += [f"{label} {line}".strip() for line in differences_of(case)]
    return found


def differences_of(case: Fields) -> list[str]:
    """
    Return what differs in one case.
    """
    expect = mapping_of(case.get("expect"))
    params = mapping_of(case.get("params"))
    known_only(params, ["MAX_JOB_ARRAY_SIZE"], "params")
    most = params.get("MAX_JOB_ARRAY_SIZE", INDEX_MAX_DEFAULT)
    try:
        name, array = parse_job_name(text_of(case["J"]), index_max=whole_of(most))
    except Refused as refused:
        return [] if expect.get("reject") is True else [f"refused: {refused}"]
    indices = [] if array is None else list(array.indices())
    found: dict[str, object] = {
        "reject": False,
        "name": name,
        "elements": indices,
        "indices": indices,
        **dict.fromkeys(LIMIT, None if array is None else array.started_max),
        **dict.fromkeys(COUNT, len(indices)),
    }
    differ = []
    for key, expected in expect.items():
        if key not in found:
            raise Malformed(f"nothing is known of expecting {key!r}")
        wanted = list(items_of(expected)) if isinstance(expected, list) else expected
        if isinstance(found[key], list) and isinstance(expected, str):
            wanted = [int(each) for each in expected.replace(",", " ").split()]
        differ += differing(key, wanted, found[key])
    return differ

"""
Load a vector file, run each vector through the code of its kind, and report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from domain.errors import Refused
from tools.conformance import account, control, merge, parse, schedule, select, shown
from tools.conformance.names import names_used
from tools.conformance.shape import check_shape
from tools.conformance.values import (
    LeftOut,
    Malformed,
    Vector,
    mapping_of,
    mappings_of,
    text_of,
)

Run = Callable[[Vector], list[str]]

KINDS: Final[dict[str, Run]] = {
    "parse": parse.differences,
    "select": select.differences,
    "merge": merge.differences,
    "schedule": schedule.differences,
    "control": control.differences,
    "account": account.differences,
    "format": shown.differences,
}
"""What each kind of vector is run by: it returns what differs, in words."""


@dataclass(slots=True)
class Outcome:
    """
    Hold how one vector went.

    Args:
        differences: What differed; nothing when it passed.
        left_out: Why it doesn't apply to this program, "" when it does.
    """

    vector: Vector
    differences: list[str] = field(default_factory=list)
    left_out: str = ""

    @property
    def has_passed(self) -> bool:
        """
        Say whether everything was as expected.
        """
        return not self.differences and not self.left_out


def load(path: Path) -> list[Vector]:
    """
    Return the vectors of a file, in its order.

    Raises:
        Refused: The file is no vector file, or an id is missing or there twice.
    """
    try:
        loaded = yaml.safe_load(path.read_text("utf-8"))
        found = [_vector(dict(fields)) for fields in mappings_of(mapping_of(loaded).get("vectors"))]
    except (yaml.YAMLError, Malformed, OSError, UnicodeError) as error:
        raise Refused("file", f"must hold vectors: {error}", str(path)) from None
    ids = [vector.id for vector in found]
    twice = next((each for each in ids if ids.count(each) > 1), None)
    if not found or twice is not None:
        raise Refused("file", "must hold vectors with an id each, no id twice", twice or str(path))
    return found


def _vector(fields: dict[str, object]) -> Vector:
    if not fields.get("id"):
        raise Malformed("a vector has no id")
    return Vector(
        text_of(fields["id"]), text_of(fields.get("kind")), text_of(fields.get("title")), fields
    )


def run_all(vectors: Sequence[Vector]) -> Iterator[Outcome]:
    """
    Yield the outcome of each vector, in order.
    """
    known = names_used(vectors)
    for vector in vectors:
        yield run_one(Vector(vector.id, vector.kind, vector.title, {**vector.fields, **known}))


def run_one(vector: Vector) -> Outcome:
    """
    Return the outcome of one vector; whatever is raised on the way is a difference.
    """
    run = KINDS.get(vector.kind)
    if run is None:
        return Outcome(vector, [f"there is no kind {vector.kind!r}"])
    try:
        check_shape(vector)
        return Outcome(vector, run(vector))
    except LeftOut as reason:
        return Outcome(vector, left_out=str(reason))
    except Malformed as malformed:
        return Outcome(vector, [f"malformed: {malformed}"])
    except Exception as error:  # noqa: BLE001 - one vector's failure is that vector's
        first_lines = " ".join(str(error).split("\n")[:3])
        return Outcome(vector, [f"{type(error).__name__}: {first_lines}"])

"""
Load a vector file, run each vector through the code of its kind, and report.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from domain.errors import Refused
from tools.conformance import account, control, merge, parse, schedule, select, shown
from tools.conformance.names import names_used
from tools.conformance.shape import check_claims, check_shape
from tools.conformance.values import (
    LeftOut,
    Malformed,
    Vector,
    items_of,
    mapping_of,
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


class _UniqueKeys(yaml.SafeLoader):
    """
    Be the safe loader, but refuse a key that stands twice in a mapping: the first would be lost
    unseen. Keys without a value say nothing: a title with commas in it leaves some. What looks like
    a date is a text: no vector is about dates, but a name may look like one.
    """

    def construct_mapping(  # the base class has the truth value by position
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002
    ) -> dict[Hashable, Any]:
        """
        Return a mapping.
        """
        seen: set[object] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or value.tag == "tag:yaml.org,2002:null":
                continue
            if (key.tag, key.value) in seen:
                raise Malformed(f"the key {key.value!r} is there twice,{key.start_mark}")
            seen.add((key.tag, key.value))
        return super().construct_mapping(node, deep)


# The base class declares it as an instance's, though it is read from the class.
_UniqueKeys.yaml_implicit_resolvers = {
    first: [each for each in found if each[0] != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(path: Path) -> list[Vector]:
    """
    Return the vectors of a file, in its order. One that is no vector is told as a failure of its
    own, so that the others still run.

    Raises:
        Refused: The file holds no vectors.
    """
    try:
        loaded = yaml.load(path.read_text("utf-8"), _UniqueKeys)  # noqa: S506 - a safe loader
        found = items_of(mapping_of(loaded).get("vectors"))
    except RecursionError:
        raise Refused("file", "must hold vectors: it is nested too deeply", str(path)) from None
    except (yaml.YAMLError, Malformed, OSError, UnicodeError) as error:
        raise Refused("file", f"must hold vectors: {error}", str(path)) from None
    if not found:
        raise Refused("file", "must hold vectors with an id each", str(path))
    vectors: list[Vector] = []
    seen: set[str] = set()
    for number, each in enumerate(found, 1):
        vectors.append(_vector(each, number, seen))
    return vectors


def _vector(value: object, number: int, seen: set[str]) -> Vector:
    """
    Return a vector, and note its id as seen.
    """
    label = f"number {number}"
    if not isinstance(value, Mapping):
        return Vector(label, "", "", {}, problem=f"a vector is a mapping, not {value!r}")
    fields = {text_of(name): each for name, each in value.items()}
    vector_id = text_of(fields.get("id"))
    problem = ""
    if isinstance(fields.get("id"), Mapping | list):
        problem, vector_id = f"an id is a text, not {vector_id}", ""
    elif not vector_id:
        problem = "a vector has no id"
    elif vector_id in seen:
        problem = f"the id {vector_id} is there twice"
    seen.add(vector_id)
    kind, title = text_of(fields.get("kind")), text_of(fields.get("title"))
    return Vector(vector_id or label, kind, title, fields, problem=problem)


def run_all(vectors: Sequence[Vector]) -> Iterator[Outcome]:
    """
    Yield the outcome of each vector, in order.
    """
    known = names_used(vectors)
    for vector in vectors:
        yield run_one(replace(vector, fields={**vector.fields, **known}))


def run_one(vector: Vector) -> Outcome:
    """
    Return the outcome of one vector; whatever is raised on the way is a difference.
    """
    run = KINDS.get(vector.kind)
    if vector.problem:
        return Outcome(vector, [f"malformed: {vector.problem}"])
    if run is None:
        return Outcome(vector, [f"there is no kind {vector.kind!r}"])
    try:
        check_shape(vector)
        differences = run(vector)
        check_claims(vector)
        return Outcome(vector, differences)
    except LeftOut as reason:
        return Outcome(vector, left_out=str(reason))
    except Malformed as malformed:
        return Outcome(vector, [f"malformed: {malformed}"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, (error.title, *first["loc"])))
        told = f"malformed: {where}: {first['msg']}, not {first.get('input')!r}"
        return Outcome(vector, [" ".join(told.split())])
    except KeyError as missing:
        return Outcome(vector, [f"malformed: {missing} is missing, or names nothing"])
    except Exception as error:  # noqa: BLE001 - one vector's failure is that vector's
        first_lines = " ".join(str(error).split("\n")[:3])
        return Outcome(vector, [f"{type(error).__name__}: {first_lines}"])

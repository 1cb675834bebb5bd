"""
Evaluate conditions on the state of a core. What isn't there is nothing: it equals only `none`, and
no comparison of order holds for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, final

from domain.ids import job_stream, queue_stream, worker_stream
from domain.job_states import JobState
from projections.scheduling.core import Core
from projections.scheduling.records import JobRecord, QueueRecord, WorkerRecord
from replay.condition_check import WHOLE, check_condition
from replay.condition_syntax import (
    Binary,
    Entity,
    Fold,
    Literal,
    Moment,
    Name,
    Node,
    Unary,
    parse_condition,
)
from replay.entities import accounts_of, reasons_of
from replay.moments import parse_moment

Value = Any
Scope = JobRecord | WorkerRecord | QueueRecord | None

NONE: Final = "none"


@final
class Condition:
    """
    Hold a parsed condition.

    Args:
        text: As it was written.
        field: Whose text it is, for errors.
        is_truth: Whether it must be true or false; else any value will do.

    Raises:
        Refused: It is none.
    """

    def __init__(
        self, text: str, *, field: str = "condition", is_truth: bool = False
    ) -> None:
        self.text = text
        self.tree = parse_condition(text, field=field)
        self.streams = _streams(self.tree)
        check_condition(self.tree, field, is_truth=is_truth)

    def holds(self, core: Core, position: int) -> bool:
        """
        Say whether the condition holds on a state.
        """
        return _truth(_Evaluation(core, position).value(self.tree, None))

    def value(self, core: Core, position: int) -> Value:
        """
        Return what the text comes to, for whoever wants to see a value.
        """
        return _Evaluation(core, position).value(self.tree, None)


def _streams(node: Node) -> frozenset[str] | None:
    """
    Return the streams that alone can change the outcome, None when anything can.
    """
    match node:
        case Literal() | Moment():
            return frozenset()
        case Entity(kind="job", parts=parts) if parts[:1] not in (("wait",), ("reasons",)):
            return frozenset((job_stream(node.name),))
        case Unary():
            return _streams(node.inner)
        case Binary():
            left, right = _side(node.left), _side(node.right)
            return None if left is None or right is None else left | right
        case _:
            return None


def _side(node: Node) -> frozenset[str] | None:
    """
    As above; a single bare name beside a comparison is a text.
    """
    if isinstance(node, Name) and len(node.parts) == 1 and node.parts[0] not in WHOLE:
        return frozenset()
    return _streams(node)


@final
class _Evaluation:
    def __init__(self, core: Core, position: int) -> None:
        self._core = core
        self._position = position

    def value(self, node: Node, scope: Scope) -> Value:
        match node:
            case Literal():
                return node.value
            case Moment():
                return parse_moment("time", node.text).time_us
            case Name():
                return self._named(node.parts, scope)
            case Entity():
                return self._entity(node)
            case Unary():
                return not _truth(self.value(node.inner, scope))
            case Fold():
                return self._fold(node)
            case Binary():
                return self._binary(node, scope)

    def _binary(self, node: Binary, scope: Scope) -> Value:
        left = self.value(node.left, scope)
        if node.sign == "and":
            return _truth(left) and _truth(self.value(node.right, scope))
        if node.sign == "or":
            return _truth(left) or _truth(self.value(node.right, scope))
        return _OPERATIONS[node.sign](left, self.value(node.right, scope))

    # -- names

    def _named(self, parts: tuple[str, ...], scope: Scope) -> Value:
        """
        Return a value of the scope, else of the whole state, else the name itself as a text.
        """
        if scope is not None:
            found, value = self._attribute(scope, parts)
            if found:
                return value
        if parts == (NONE,):
            return None
        if parts in (("true",), ("false",)):
            return parts == ("true",)
        stored = self._core.state.stored
        match parts[0]:
            case "position":
                return self._position
            case "time":
                return stored.time_us
            case "session":
                return stored.session_number
            case "jobs":
                return self._job_count(parts[1:])
            case "hosts":
                return len(stored.workers)
            case "slots":
                return self._slots(parts[1])
            case "cluster":
                return _path(stored.cluster, parts[1:])[1]
            case _:
                return parts[0]

    def _job_count(self, parts: tuple[str, ...]) -> int:
        jobs = self._core.state.stored.jobs
        if parts in ((), ("known",)):
            return len(jobs)
        wanted = parts[0].upper()
        return sum(job.state.value == wanted for job in jobs.values())

    def _slots(self, which: str) -> int:
        capacity = self._core.state.capacity
        columns = {"total": capacity.slots, "used": capacity.used, "free": capacity.usable}
        return int(columns[which].sum())

    # -- entities

    def _entity(self, node: Entity) -> Value:
        stored = self._core.state.stored
        record: Scope = None
        if node.kind == "job":
            record = stored.jobs.get(job_stream(node.name))
        elif node.kind == "host":
            record = stored.workers.get(node.name)
        else:
            record = stored.queues.get(node.name)
        if record is None:
            return None
        return record if not node.parts else self._attribute(record, node.parts)[1]

    def _attribute(self, record: Scope, parts: tuple[str, ...]) -> tuple[bool, Value]:
        """
        Return whether a record has such a value, and the value.
        """
        if isinstance(record, JobRecord):
            special = JOB_VALUES.get(parts[0])
            if special is not None and len(parts) == 1:
                return True, special(self._core, record)
        elif isinstance(record, WorkerRecord):
            accounts = accounts_of(self._core, record)
            if parts[0] in accounts:
                return _path(accounts, parts)
        elif isinstance(record, QueueRecord):
            state = parts[0].upper()
            if state in JobState.__members__:
                jobs = self._core.state.stored.jobs.values()
                count = sum(one.state.value == state and one.spec.queue == record.name
                            for one in jobs)  # fmt: skip
                return True, count
            found = _path(record.spec, parts)
            if found[0]:
                return found
        return _path(record, parts)

    def _fold(self, node: Fold) -> Value:
        held = (_truth(self.value(node.inner, one)) for one in self._collection(node.collection))
        if node.how == "any":
            return any(held)
        return all(held) if node.how == "all" else sum(held)

    def _collection(self, name: str) -> Iterator[Scope]:
        stored = self._core.state.stored
        if name == "jobs":
            yield from stored.jobs.values()
        elif name == "hosts":
            yield from stored.workers.values()
        else:
            yield from stored.queues.values()


def _wait(core: Core, job: JobRecord) -> int:
    """
    Return how long the job waited for its last dispatch, or has waited so far.
    """
    until_us = core.state.stored.time_us if job.dispatch_us is None else job.dispatch_us
    return until_us - job.submit_us


def _host_names(core: Core, job: JobRecord) -> list[str]:
    if job.allocation is None:
        return []
    return [name for name, _ in core.state.host_names(job.allocation)]


JOB_VALUES: Final[dict[str, Callable[[Core, JobRecord], Value]]] = {
    "wait": _wait,
    "hosts": _host_names,
    "reasons": reasons_of,
    "id": lambda _, job: job.job_id,
    "user": lambda _, job: job.spec.user,
    "queue": lambda _, job: job.spec.queue,
    "name": lambda _, job: job.spec.name,
    "tasks": lambda _, job: job.spec.tasks_min,
}
"""What can be asked of a job besides the fields of its record."""


def _path(value: Any, parts: tuple[str, ...]) -> tuple[bool, Value]:
    """
    Follow a dotted name through records, values and dictionaries; only fields, never methods.
    """
    for part in parts:
        if isinstance(value, dict):
            if part not in value:
                return False, None
            value = value[part]
            continue
        if part not in _fields(value):
            return False, None
        value = getattr(value, part)
    return True, value


def _fields(value: Any) -> Any:
    """
    Return the names of a record's fields; nothing else of an object can be reached.
    """
    named: Any = getattr(type(value), "__dataclass_fields__", None)
    return named if named is not None else getattr(type(value), "model_fields", ())


# -------------------------------------------------------------------------------------- operations


def _truth(value: Value) -> bool:
    return bool(value)


def _plain(value: Value) -> Value:
    return value.value if isinstance(value, JobState) else value


def _equal(left: Value, right: Value) -> bool:
    left, right = _plain(left), _plain(right)
    if isinstance(left, str) != isinstance(right, str) and None not in (left, right):
        left, right = str(left), str(right)
    return bool(left == right)


def _ordered(test: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def compare(left: Value, right: Value) -> bool:
        left, right = _plain(left), _plain(right)
        both_numbers = isinstance(left, int) and isinstance(right, int)
        return (both_numbers or (isinstance(left, str) and isinstance(right, str))) and test(
            left, right
        )

    return compare


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def _among(left: Value, right: Value) -> bool:
    if isinstance(right, str):
        return str(_plain(left)) in right
    return isinstance(right, list | tuple) and any(_equal(left, one) for one in right)


_OPERATIONS: Final[dict[str, Callable[[Value, Value], Value]]] = {
    "=": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "in": _among,
    "+": lambda left, right: _number(left) + _number(right),
    "-": lambda left, right: _number(left) - _number(right),
    "*": lambda left, right: _number(left) * _number(right),
}


_STREAMS: Final[dict[str, Callable[[str], str]]] = {
    "job": job_stream,
    "host": worker_stream,
    "queue": queue_stream,
}


def entities_in(node: Node) -> list[str]:
    """
    Return the streams of all entities that a condition names, in order, each once.
    """
    match node:
        case Entity():
            return [_STREAMS[node.kind](node.name)]
        case Unary() | Fold():
            return entities_in(node.inner)
        case Binary():
            return list(dict.fromkeys([*entities_in(node.left), *entities_in(node.right)]))
        case _:
            return []

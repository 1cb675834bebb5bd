"""
The mapper: stamped events to stored bytes and back.

The state of a stored event is JSON:
``{"t":TIME_US,"a":"ACTOR","c":"CAUSE","v":CLASS_VERSION,"l":1,"e":{PAYLOAD}}``, in this order; "a"
and "c" are left out when empty, "v" when 1, and "l" (then 0) only stands where an event doesn't end
its step. Types are resolved by the closed registry of `domain.event`: a stored name never imports
anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from json.encoder import encode_basestring
from typing import Any, NamedTuple, cast

from eventsourcing.persistence import (
    Mapper,
    MapperDeserialisationError,
    StoredEvent,
)

import domain.events
from domain.envelope import Envelope, Stamped, stamp
from domain.errors import (
    NEWER_PROGRAM,
    OTHER_PROGRAM,
    Corrupt,
    InvariantBroken,
    UnknownEventType,
    XceError,
)
from domain.event import Event, event_class, later_fields

assert domain.events, "importing the events fills the registry"

Row = tuple[str, int, str, bytes]
"""Stream, version, type code, state."""
PlacedRow = tuple[int, str, int, str, bytes]
"""Position, and the same."""
Head = tuple[str, str, str, str, str]
"""Time, actor, cause, what stands within a step, and payload of a state."""
OpenRow = tuple[PlacedRow, Head | None]
"""A row and its head, None where that has to be found in the state itself."""

_TEXT = rb'"((?:[^"\\]|\\.)*)"'
_match = re.compile(
    rb'\{"t":(-?\d+)(?:,"a":'
    + _TEXT
    + rb')?(?:,"c":'
    + _TEXT
    + rb')?(?:,"v":(\d+))?(,"l":0)?,"e":(?=\{)',
    re.DOTALL,
).match

# Most states: texts without escapes, of the first schema version. One search for many states takes
# less than one for each; digits are those of ASCII only.
_find_plain = re.compile(
    r'^\{"t":(-?[0-9]+)(?:,"a":"([^"\\\n]*)")?(?:,"c":"([^"\\\n]*)")?(,"l":0)?,"e":(\{.*\})\}$',
    re.MULTILINE,
).findall
CHUNK = 128
"""How many rows are taken apart at a time: few enough to stay near the processor."""

# Half the time of calling the class, whose parameters have names.
_new_envelope = cast("Callable[[type[Envelope], tuple[object, ...]], Envelope]", tuple.__new__)

_Writer = tuple[str, bytes, bytes, Callable[..., bytes]]
"""Type code; what stands before the payload of the last event of a step, and of others; and what
makes the payload."""
_writers: dict[type[Event], _Writer] = {}
_readers: dict[str, Callable[[str], Event]] = {}


def encode(stamped: Stamped) -> Row:
    """
    Return the row of a stamped event: stream, version, type code, state.
    """
    return encode_all((stamped,))[0]


# hot: the bench of durable appends of typed events needs it, and the simulator.
def encode_all(events: Iterable[Stamped]) -> list[Row]:
    """
    Return the rows of stamped events.

    Events of one step often have time, actor and cause in common; their head is made once.
    """
    rows: list[Row] = []
    add, known = rows.append, _writers.get
    head, head_time_us, head_actor, head_cause = b"", None, "", ""
    for stream, version, time_us, actor, cause, event, ends_step in events:
        if time_us != head_time_us or cause != head_cause or actor != head_actor:
            head_time_us, head_actor, head_cause = time_us, actor, cause
            if actor and cause:
                # As `_head` does, without its call.
                quoted = encode_basestring(actor)
                head = f'{{"t":{time_us},"a":{quoted},"c":{encode_basestring(cause)}'.encode()
            else:
                head = _head(time_us, actor, cause)
        code, last, within, to_json = known(type(event)) or _learn_writer(type(event))
        payload = to_json(event, exclude_defaults=True)
        state = b"".join((head, last if ends_step else within, payload, b"}"))
        add((stream, version, code, state))
    return rows


def _head(time_us: int, actor: str, cause: str) -> bytes:
    """
    Return the beginning of a state.
    """
    head = f'{{"t":{time_us}'
    if actor:
        head += f',"a":{encode_basestring(actor)}'
    if cause:
        head += f',"c":{encode_basestring(cause)}'
    return head.encode()


def encode_checked(events: Sequence[Stamped]) -> list[Row]:
    """
    Return the rows of stamped events after decoding them from their bytes and comparing.

    Raises:
        InvariantBroken: What would be stored isn't what was given; nothing may be recorded then.
    """
    rows = encode_all(events)
    decoded = decode_all([0] * len(rows), *zip(*rows, strict=True)) if rows else iter(())
    for stamped in events:
        try:
            # A tuple compares with a tuple of another class.
            again: object = next(decoded)[1:]
        except Corrupt as error:
            again = error.text()
        if again != stamped:
            raise InvariantBroken(
                "an event decodes to what was encoded", f"{stamped!r} became {again!r}"
            )
    return rows


def _learn_writer(cls: type[Event]) -> _Writer:
    """
    Remember what encoding a class needs.
    """
    if event_class(cls.TYPE_CODE) is not cls:
        raise InvariantBroken("every event class is registered", cls.__qualname__)
    last = _middle(cls.CLASS_VERSION, ends_step=True)
    within = _middle(cls.CLASS_VERSION, ends_step=False)
    _writers[cls] = (cls.TYPE_CODE, last, within, cls.__pydantic_serializer__.to_json)
    return _writers[cls]


def _middle(schema: int, *, ends_step: bool) -> bytes:
    """
    Return what stands between the head of a state and its payload.
    """
    version = b"" if schema == 1 else b',"v":%d' % schema
    return version + (b',"e":' if ends_step else b',"l":0,"e":')


# hot: the benches of reading typed events back and of verifying with decoding need it.
def decode_all(
    positions: Sequence[int], streams: Sequence[str], versions: Sequence[int],
    topics: Sequence[str], states: Sequence[bytes],
) -> Iterator[Envelope]:  # fmt: skip
    """
    Yield the envelopes of stored rows, given column by column; their payloads are validated.

    Equivalent to: `decode` of each row, at three quarters of its time.

    Args:
        positions: The rows' places in the log.
        streams: Whose events they are.
        versions: Their counts in the streams.
        topics: Their type codes.
        states: Their bytes, whose checksums were compared before.

    Raises:
        UnknownEventType: This program doesn't know a type code, or a payload is newer.
        Corrupt: Of the kind newer or schema.
    """
    known, new = _readers.get, _new_envelope
    for at in range(0, len(states), CHUNK):
        cut = slice(at, at + CHUNK)
        part = (positions[cut], streams[cut], versions[cut], topics[cut], states[cut])
        heads = _heads(part[4])
        if heads is None:
            yield from map(decode, *part)
            continue
        for position, stream, version, topic, state, (
            time_us,
            actor,
            cause,
            within,
            payload,
        ) in zip(*part, heads, strict=True):
            try:
                event = (known(topic) or _learn_reader(topic))(payload)
            except (ValueError, XceError):
                # Of an older schema version, or wrong: it is known there.
                yield decode(position, stream, version, topic, state)
                continue
            fields = (position, stream, version, int(time_us), actor, cause, event, not within)
            yield new(Envelope, fields)


def _heads(states: Sequence[bytes]) -> list[Head] | None:
    """
    Return time, actor, cause, what stands within a step, and payload of states, found in one go;
    None when one of them has another shape, escapes, or a schema version.
    """
    try:
        text = b"\n".join(states).decode()
    except UnicodeDecodeError:
        return None
    found = _find_plain(text)
    # A line is one state, and each has been found.
    is_whole = len(found) == len(states) == text.count("\n") + 1
    return found if is_whole else None


# hot: the rate of re-deciding needs it.
def open_rows(rows: Iterable[PlacedRow]) -> Iterator[OpenRow]:
    """
    Yield rows with their heads, found for many at a time: for a reader that decodes some of them.

    What they are asked then (`is_last`, `moment_us_of`, `stamped_of`) is what the states themselves
    say, at half the time.
    """
    given = iter(rows)
    while part := list(islice(given, CHUNK)):
        heads = _heads([row[4] for row in part])
        yield from zip(part, heads or repeat(None), strict=False)


def is_last(opened: OpenRow) -> bool:
    """
    Say whether a row is the last of its step, without decoding the rest.
    """
    row, head = opened
    return _ends_step(row[4]) if head is None else not head[3]


def moment_us_of(opened: OpenRow) -> int:
    """
    Return the time of a row, without decoding the rest.
    """
    row, head = opened
    return time_us_of(row[4]) if head is None else int(head[0])


def stamped_of(opened: OpenRow) -> Stamped:
    """
    Return the stamped event of a row, decoded.

    Raises:
        UnknownEventType, Corrupt: As `decode`.
    """
    row, head = opened
    if head is not None:
        _, stream, version, topic, _ = row
        time_us, actor, cause, within, payload = head
        try:
            event = (_readers.get(topic) or _learn_reader(topic))(payload)
        except (ValueError, XceError):
            # As in `decode_all`.
            return decode(*row).stamped()
        return stamp(Stamped, (stream, version, int(time_us), actor, cause, event, not within))
    return decode(*row).stamped()


def decode(position: int, stream: str, version: int, topic: str, state: bytes) -> Envelope:
    """
    Return the envelope of a stored row, as `decode_all` does.
    """
    number = 0
    try:
        cls = event_class(topic)
        found = _match(state)
        if found is None or state[-1:] != b"}":
            raise Corrupt("schema", position, "a state with time and payload", repr(state[:80]))
        time_us, actor, cause, schema, within = found.groups()
        payload = state[found.end() : -1]
        number = 1 if schema is None else int(schema)
        if number != cls.CLASS_VERSION:
            payload = json.dumps(upcast(cls, json.loads(payload), number)).encode()
        event = cls.__pydantic_validator__.validate_json(payload)
        return Envelope(
            position, stream, version, int(time_us), _text(actor), _text(cause), event,
            within is None,
        )  # fmt: skip
    except UnknownEventType as error:
        raise UnknownEventType(error.type_code, error.version, position) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _undecodable(position, topic, number, error) from None


def _undecodable(position: int, topic: str, schema: int, error: Exception) -> Corrupt:
    """
    Return what to say of a payload that isn't one of ours. What has only more than this program
    knows, beside the shape that it knows, is a newer one's: fields and choices are added.
    """
    later = later_fields(error) if schema == event_class(topic).CLASS_VERSION else ""
    if later:
        known = f"a {topic} with what this program knows"
        return Corrupt("newer", position, known, f"also {later}", hint=NEWER_PROGRAM)
    return Corrupt("schema", position, f"a {topic}", _short(error), hint=OTHER_PROGRAM)


class Parts(NamedTuple):
    """
    A state taken apart; the payload stays as it is stored.
    """

    time_us: int
    actor: str
    cause: str
    schema: int
    ends_step: bool
    payload: bytes


def split_state(state: bytes) -> Parts | None:
    """
    Take a state apart, None when it has another shape.
    """
    found = _match(state)
    if found is None or state[-1:] != b"}":
        return None
    time_us, actor, cause, schema, within = found.groups()
    try:
        payload = state[found.end() : -1]
        number = int(schema or b"1")
        return Parts(int(time_us), _text(actor), _text(cause), number, within is None, payload)
    except ValueError:
        return None


def join_state(parts: Parts) -> bytes:
    """
    Put a state together again, as `encode` would.
    """
    head = _head(parts.time_us, parts.actor, parts.cause)
    middle = _middle(parts.schema, ends_step=parts.ends_step)
    return b"%b%b%b}" % (head, middle, parts.payload)


def _learn_reader(topic: str) -> Callable[[str], Event]:
    """
    Remember how to read payloads without a schema version, and so of the first one.
    """
    cls = event_class(topic)
    if cls.CLASS_VERSION != 1:
        raise UnknownEventType(topic, 1)
    _readers[topic] = cls.__pydantic_validator__.validate_json
    return _readers[topic]


def _text(quoted: bytes | None) -> str:
    """
    Return the text between the quotes of a JSON string, "" for none.
    """
    if quoted is None:
        return ""
    if b"\\" in quoted:
        return str(json.loads(b'"' + quoted + b'"'))
    return quoted.decode()


def upcast(cls: type[Event], payload: dict[str, Any], schema: int) -> dict[str, Any]:
    """
    Lift an old payload to the current schema version of its class.

    Raises:
        UnknownEventType: It is of a newer one.
        Corrupt: An upcaster is missing.
    """
    if schema > cls.CLASS_VERSION:
        raise UnknownEventType(cls.TYPE_CODE, schema)
    for version in range(schema, cls.CLASS_VERSION):
        step = getattr(cls, f"upcast_v{version}_v{version + 1}", None)
        if step is None:
            found = f"no upcast_v{version}_v{version + 1} of {cls.TYPE_CODE}"
            raise Corrupt("schema", None, "an upcaster for every old version", found)
        payload = step(dict(payload))
    return payload


def time_us_of(state: bytes) -> int:
    """
    Return the time in a stored state without decoding the rest.
    """
    found = _match(state)
    if found is None:
        raise Corrupt("schema", None, "a state with time and payload", repr(state[:80]))
    return int(found.group(1))


def _ends_step(state: bytes) -> bool:
    """
    Say whether a stored event is the last of its step, without decoding the rest.

    Quotes within a text are escaped, so the first name "e" is the one of the state itself.
    """
    return state.find(b',"l":0', 0, state.find(b',"e":{')) < 0


def _short(error: Exception) -> str:
    """
    Return the first line of an error's text, with its kind.
    """
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:200] if text else ''}"


class EventMapper(Mapper[str]):
    """
    Let the library's own EventStore and Application store and read stamped events
    (``MAPPER_TOPIC``).

    A domain event of theirs is an `Envelope`; its position isn't known to the library, and is 0 in
    what comes back.
    """

    def to_stored_event(self, domain_event: Any) -> StoredEvent:
        """
        Return the stored event of a stamped event or envelope.
        """
        stamped = domain_event.stamped() if isinstance(domain_event, Envelope) else domain_event
        stream, version, topic, state = encode(stamped)
        if self.compressor:
            state = self.compressor.compress(state)
        if self.cipher:
            state = self.cipher.encrypt(state)
        return StoredEvent(stream, version, topic, state)

    def to_domain_event(self, stored_event: StoredEvent) -> Any:
        """
        Return the envelope of a stored event.

        Raises:
            MapperDeserialisationError: It can't be decoded.
        """
        try:
            state = stored_event.state
            if self.cipher:
                state = self.cipher.decrypt(state)
            if self.compressor:
                state = self.compressor.decompress(state)
            stream, version = str(stored_event.originator_id), stored_event.originator_version
            return decode(0, stream, version, stored_event.topic, state)
        except Exception as error:
            named = f"{stored_event.originator_id} version {stored_event.originator_version}"
            raise MapperDeserialisationError(f"{named}, {stored_event.topic}: {error}") from error

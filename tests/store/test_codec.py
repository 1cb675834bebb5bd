"""
The mapper: an event comes back as it was, field by field, and nothing stored can run code.
"""

from __future__ import annotations

import json
from typing import ClassVar

import pytest
from eventsourcing.persistence import MapperDeserialisationError, StoredEvent
from eventsourcing.utils import resolve_topic
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter, create_model

import domain.event
from domain.envelope import Envelope, Stamped
from domain.errors import NEWER_PROGRAM, OTHER_PROGRAM, Corrupt, UnknownEventType
from domain.event import Event, Value, event_classes
from domain.events.jobs import JobFinished
from store.codec import (
    CHUNK,
    EventMapper,
    decode,
    decode_all,
    encode,
    encode_all,
    encode_checked,
    is_last,
    moment_us_of,
    open_rows,
    stamped_of,
    time_us_of,
)
from tools.torture.workload import job_events

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def row(event: Event, **changes: object) -> tuple[str, int, str, bytes]:
    return encode(Stamped("s", 1, 5, "", "", event, True)._replace(**changes))


@given(
    stream=TEXT, version=st.integers(1, 2**63), time_us=st.integers(-(2**62), 2**62), actor=TEXT,
    cause=TEXT, why=TEXT, exit_code=st.none() | st.integers(), ends_step=st.booleans(),
)  # fmt: skip
def test_any_stamp_and_text_comes_back(
    stream, version, time_us, actor, cause, why, exit_code, ends_step
) -> None:
    """
    Quotes, controls, line separators and braces in texts must not shift the borders of the state.
    """
    event = JobFinished(attempt=1, exit_code=exit_code, why=why)
    stamped = Stamped(stream, version, time_us, actor, cause, event, ends_step)

    assert stamped == decode(9, *encode(stamped)).stamped()
    assert time_us == time_us_of(encode(stamped)[3])


@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["", "a", '"']),
                       st.sampled_from(["", "a", "s1"]), st.booleans()), max_size=12)
)  # fmt: skip
def test_events_are_encoded_together_as_each_would_be_alone(stamps) -> None:
    """
    What neighbours have in common is made once, and must not pass to one that differs.
    """
    events = [
        Stamped("s", version, time_us, actor, cause, JobFinished(attempt=1), ends_step)
        for version, (time_us, actor, cause, ends_step) in enumerate(stamps)
    ]

    assert [encode(stamped) for stamped in events] == encode_all(events)


@given(actor=TEXT, cause=TEXT, why=TEXT, ends_step=st.booleans())
def test_the_state_is_json_in_the_agreed_order(
    actor: str, cause: str, why: str, ends_step: bool
) -> None:
    """
    The bytes are read by other programs, and by ourselves in many years.
    """
    event = JobFinished(attempt=1, why=why)
    expected: dict[str, object] = {"t": 7}
    if actor:
        expected["a"] = actor
    if cause:
        expected["c"] = cause
    if not ends_step:
        expected["l"] = 0
    expected["e"] = {"attempt": 1, **({"why": why} if why else {})}

    state = row(event, time_us=7, actor=actor, cause=cause, ends_step=ends_step)[3]

    assert expected == json.loads(state)
    assert list(expected) == list(json.loads(state))


def test_the_payload_is_pydantics_without_defaults() -> None:
    """
    The specification of the payload's bytes.
    """
    for stamped in job_events(1):
        payload = stamped.event.__pydantic_serializer__.to_json(
            stamped.event, exclude_defaults=True
        )
        assert encode(stamped)[3].endswith(b',"e":' + payload + b"}")


def test_every_event_class_has_a_schema_that_json_can_carry() -> None:
    """
    A class whose payload JSON can't bring back must not get into a log.
    """
    assert len(event_classes()) > 10
    for cls in event_classes().values():
        assert "properties" in TypeAdapter(cls).json_schema() or not cls.model_fields


def values_below(cls: type[Value]) -> list[type[Value]]:
    return [each for sub in cls.__subclasses__() for each in (sub, *values_below(sub))]


def test_every_default_is_valid_and_stays_as_it_is() -> None:
    """
    A field that isn't stored comes back as its default, which nobody validates then.
    """
    seen = 0
    for cls in values_below(Value):
        optional = {
            name: (field.annotation, field)
            for name, field in cls.model_fields.items()
            if not field.is_required()
        }
        rules = ConfigDict(strict=True, extra="forbid", validate_default=True)
        twin = create_model("Twin", __config__=rules, **optional)()
        for name, (_, field) in optional.items():
            assert getattr(twin, name) == field.get_default(call_default_factory=True)
        seen += len(optional)
    assert seen > 200


@pytest.mark.parametrize(
    "state",
    [b"", b"{}", b"null", b'{"t":1}', b'{"t":1,"e":[]}', b'{"t":"1","e":{}}',
     b'{"t":1,"e":{"attempt":1}',
     b'{"t":1,"e":{"attempt":"1","attempts":1}}', b'{"t":1,"e":{"attempt":"1"}}',
     b'{"t":1,"e":{}}',
     b'{"e":{"attempt":1},"t":1}', b'{"t":1,"e":{"attempt":1}}}',
     b'{"t":1,"x":2,"e":{"attempt":1}}', b'{"t":1.5,"e":{"attempt":1}}',
     b'{"t":1,"e":{"attempt":1,"why":"\xff"}}', b'{"t":1,"e":' + b'{"a":' * 5000 + b"}"],
)  # fmt: skip
def test_a_state_of_another_shape_is_refused_by_position(state: bytes) -> None:
    """
    Nothing is guessed and nothing is dropped.
    """
    with pytest.raises(Corrupt) as caught:
        decode(42, "job:1", 1, "job.finished", state)

    assert ("schema", 42) == (caught.value.kind, caught.value.position)


@pytest.mark.parametrize(
    ("topic", "payload", "named"),
    [
        ("job.finished", b'{"attempt":1,"attempts":1}', "also attempts."),
        ("job.signal_requested", b'{"signal":"WINCH","via":"x"}', "also signal, via."),
        (
            "job.submitted",
            b'{"spec":{"user":"u","queue":"q","array":{"ranges":[{"start":1,"end":2,"by":3}]}}}',
            "also spec.array.ranges.0.by.",
        ),
    ],
)
def test_what_only_has_more_than_this_program_knows_is_a_newer_ones(
    topic: str, payload: bytes, named: str
) -> None:
    """
    Fields and choices are added without a new schema version: whoever reads such a log must use
    another program, not look for damage. It isn't taken all the same.
    """
    with pytest.raises(Corrupt) as caught:
        decode(42, "job:1", 1, topic, b'{"t":1,"e":' + payload + b"}")

    assert ("newer", 42) == (caught.value.kind, caught.value.position)
    assert f"{named} {NEWER_PROGRAM}" in caught.value.text()
    assert caught.value.text().startswith("can't be read (newer), at position 42")


def test_what_nobody_can_tell_gets_advice_for_both() -> None:
    """
    A type that XCE would never write, or a field of another kind, may be anything.
    """
    for topic, payload in (("os:system", b"{}"), ("job.finished", b'{"attempt":"1"}')):
        with pytest.raises(Corrupt) as caught:
            decode(42, "job:1", 1, topic, b'{"t":1,"e":' + payload + b"}")
        assert ("schema", OTHER_PROGRAM) == (caught.value.kind, caught.value.hint)


PLAIN = b'{"t":1,"a":"ann","c":"x","l":0,"e":{"attempt":1,"why":"w"}}'
ODD_STATES = [
    PLAIN.replace(b'"ann"', rb'"a\"nn"'),
    PLAIN.replace(b'"ann"', b'"a\nnn"'),
    PLAIN.replace(b'"w"', b'"\n"') + b"\n" + PLAIN,
    PLAIN.replace(b'"t":1', '"t":\u0661'.encode()),
    PLAIN.replace(b'"ann"', '"\u00e9\u2028"'.encode()),
    PLAIN.replace(b'"ann"', b'"\xff"'),
    PLAIN + b"\n",
    PLAIN.replace(b'"c":"x","l":0', b'"l":0,"c":"x"'),
    PLAIN.replace(b',"e"', b',"v":1,"e"'),
    PLAIN.replace(b',"e"', b',"v":9,"e"'),
    PLAIN.replace(b'"attempt":1,', b""),
    PLAIN[:-1],
    b"",
]


def outcome(*row, decoding=decode) -> object:
    try:
        return decoding(*row)
    except (Corrupt, UnknownEventType) as error:
        return type(error), error.text()


@pytest.mark.parametrize("place", [0, 1, CHUNK - 1, CHUNK, 2 * CHUNK])
@pytest.mark.parametrize("odd", ODD_STATES)
def test_many_rows_are_decoded_as_each_by_itself(odd: bytes, place: int) -> None:
    """
    States are searched many at a time, and none may be taken for another or hide what is wrong.
    """
    states = [PLAIN] * (2 * CHUNK + 1)
    states[place] = odd
    rows = [(n, f"job:{n}", n + 1, "job.finished", state) for n, state in enumerate(states)]
    expected = [outcome(*row) for row in rows]
    found: list[object] = []
    try:
        found.extend(decode_all(*zip(*rows, strict=True)))
    except (Corrupt, UnknownEventType) as error:
        found.append((type(error), error.text()))

    assert expected[: len(found)] == found
    assert len(found) == len(rows) or (isinstance(found[-1], tuple) and len(found[-1]) == 2)


@pytest.mark.parametrize("place", [0, CHUNK - 1, CHUNK, 2 * CHUNK])
@pytest.mark.parametrize("odd", [PLAIN.replace(b'"l":0,', b""), *ODD_STATES])
def test_rows_with_their_heads_tell_what_each_tells_by_itself(odd: bytes, place: int) -> None:
    """
    Whoever decodes only some of the rows must learn the same of them, and of what is wrong.
    """
    states = [PLAIN] * (2 * CHUNK + 1)
    states[place] = odd
    rows = [(n, f"job:{n}", n + 1, "job.finished", state) for n, state in enumerate(states)]
    expected = [outcome(*row) for row in rows]

    opened = list(open_rows(rows))

    assert rows == [row for row, _ in opened]
    for one, alone in zip(opened, expected, strict=True):
        told = outcome(one, decoding=stamped_of)
        assert told == (alone.stamped() if isinstance(alone, Envelope) else alone)
        if isinstance(told, Stamped):
            assert (told.time_us, told.ends_step) == (moment_us_of(one), is_last(one))


def test_an_unknown_code_or_newer_version_is_refused_by_name_and_position() -> None:
    """
    A rolled-back program must say which event it is too old for.
    """
    state = row(JobFinished(attempt=1))[3]
    with pytest.raises(UnknownEventType) as unknown:
        decode(42, "job:1", 1, "job.teleported", state)
    with pytest.raises(UnknownEventType) as newer:
        decode(43, "job:1", 1, "job.finished", state.replace(b'"e"', b'"v":9,"e"'))

    assert {"newer"} == {unknown.value.kind, newer.value.kind}
    assert ("job.teleported", 42) == (unknown.value.type_code, unknown.value.position)
    assert ("job.finished", 9, 43) == (
        newer.value.type_code,
        newer.value.version,
        newer.value.position,
    )


@pytest.mark.parametrize(
    "topic", ["os:system", "subprocess:Popen", "this:d", "domain.events.jobs:JobFinished"]
)
def test_a_stored_name_never_imports(topic: str) -> None:
    """
    The library's own resolver would import whatever a tampered log names.
    """
    if topic == "os:system":
        assert resolve_topic(topic), "the library's way is the danger that this test is about"
    with pytest.raises(UnknownEventType):
        decode(1, "s", 1, topic, b'{"t":1,"e":{}}')


@pytest.fixture
def versioned():
    """
    Give an event class that has been through two versions.
    """

    class Tested(Event):
        TYPE_CODE: ClassVar[str] = "test.versioned"
        CLASS_VERSION: ClassVar[int] = 3
        names: tuple[str, ...]
        total: int = 0

        @staticmethod
        def upcast_v1_v2(data: dict[str, object]) -> dict[str, object]:
            return {"names": [data["name"]]}

        @staticmethod
        def upcast_v2_v3(data: dict[str, object]) -> dict[str, object]:
            return {**data, "total": len(data["names"])}  # type: ignore[arg-type]

    yield Tested
    del domain.event._classes["test.versioned"]


def test_old_payloads_are_lifted_step_by_step(versioned) -> None:
    """
    What was written years ago reads as if it had been written today.
    """
    first = decode(1, "s", 1, "test.versioned", b'{"t":1,"e":{"name":"a"}}')
    second = decode(1, "s", 1, "test.versioned", b'{"t":1,"v":2,"e":{"names":["a","b"]}}')
    third = encode(second.stamped())

    assert versioned(names=("a",), total=1) == first.event
    assert versioned(names=("a", "b"), total=2) == second.event
    assert b'{"t":1,"v":3,"e":{"names":["a","b"],"total":2}}' == third[3]
    assert second == decode(1, *third)


def test_a_step_that_is_missing_is_told(versioned) -> None:
    """
    An old payload that nobody lifts must not pass for one of today, even when it happens to fit.
    """
    del versioned.upcast_v1_v2

    with pytest.raises(Corrupt) as caught:
        decode(7, "s", 1, "test.versioned", b'{"t":1,"e":{"names":["a"]}}')
    assert "no upcast_v1_v2 of test.versioned" in caught.value.text()


def test_a_checked_encoding_refuses_what_would_not_come_back() -> None:
    """
    One accepted event that can't be decoded would brick every later recovery.
    """
    good = job_events(1)
    assert [encode(stamped) for stamped in good] == encode_checked(good)
    bad = good[0]._replace(event=JobFinished.model_construct(attempt=-1))

    from domain.errors import InvariantBroken

    with pytest.raises(InvariantBroken):
        encode_checked([bad])


def test_the_librarys_mapper_interface_gives_the_same() -> None:
    """
    MAPPER_TOPIC lets their EventStore and Application use our events.
    """
    mapper: EventMapper = EventMapper(transcoder=None)  # type: ignore[arg-type]
    stamped = job_events(1)[0]
    stored = mapper.to_stored_event(stamped)

    assert encode(stamped) == (
        stored.originator_id,
        stored.originator_version,
        stored.topic,
        stored.state,
    )
    assert stamped == mapper.to_domain_event(stored).stamped()
    with pytest.raises(MapperDeserialisationError):
        mapper.to_domain_event(StoredEvent("s", 1, "os:system", b"{}"))

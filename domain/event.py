"""
What every event is, and the closed registry of their permanent type codes.

An event's payload is a strict, frozen pydantic model. The registry is filled by defining the
classes, never from stored bytes: no byte of a log can make the program import anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from domain.errors import UnknownEventType

AnyValue = TypeVar("AnyValue", bound="Value")

_classes: dict[str, type[Event]] = {}

# The fields of a pydantic model are set past its guard against changes. Through the descriptor it
# takes half the time of ``object.__setattr__``, which looks it up by name.
_new: Final = object.__new__
_set_fields: Final = BaseModel.__dict__["__dict__"].__set__
_NOTHING_BESIDE: Final = frozenset({"__pydantic_extra__", "__pydantic_private__"})


class Value(BaseModel):  # noqa: PLW1641 - pydantic hashes by the fields
    """
    Be the base of every frozen value that appears inside commands, events and state.

    Fields are strings, whole numbers, booleans, None, tuples and other values: nothing that could
    change, and no floats. A field equal to its default is not stored, so a default belongs to the
    schema version: changing one needs a new version and an upcaster. A test validates the defaults,
    once; doing it with every value takes a tenth of reading a log.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    # hot: the simulator needs it once a job.
    def but(self, **changes: Any) -> Self:
        """
        Return the same value with some fields changed; the caller vouches for what they hold.

        Equivalent to: ``model_copy(update=changes)``, at a sixth of its time.
        """
        new = _new(type(self))
        _set_fields(new, self.__dict__ | changes)
        return new

    def __eq__(self, other: object) -> bool:
        """
        Compare class and fields: a value has nothing beside.
        """
        if type(self) is not type(other):
            return NotImplemented
        return self.__dict__ == other.__dict__

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """
            Answer for what pydantic keeps beside the fields, which is the same for all values that
            were made without checks and so isn't kept with them: every field is taken to be set.
            """
            if name in _NOTHING_BESIDE:
                return None
            if name == "__pydantic_fields_set__":
                return set(self.__dict__)
            return super().__getattr__(name)


class _Blanks(dict[type[Value], dict[str, Any]]):
    """
    Remember the fields of each class in their order, each with its default.
    """

    def __missing__(self, cls: type[Value]) -> dict[str, Any]:
        found = self[cls] = {
            name: None if field.is_required() else field.get_default(call_default_factory=True)
            for name, field in cls.model_fields.items()
        }
        return found


_blanks: Final = _Blanks()


# hot: the simulator needs it seven times a job. A method would take half as long again, since a
# class of pydantic's is slow to look anything up.
def sure_of_all(cls: type[AnyValue], fields: dict[str, Any]) -> AnyValue:
    """
    Return a value without checking it: the caller vouches for every field. All are given, in their
    order, for the bytes depend on it; a test holds every caller to that.

    Equivalent to: calling the class, at a seventh of its time. What a scheduler records is decoded
    from its bytes, and so checked, before the commit (``store.codec.encode_checked``).
    """
    new = _new(cls)
    _set_fields(new, fields)
    return new


def sure(cls: type[AnyValue], /, **fields: Any) -> AnyValue:
    """
    Return the same of some of the fields, in any order: all that have no default.

    Equivalent to: ``sure_of_all``, at one and a half times of its time.
    """
    new = _new(cls)
    _set_fields(new, _blanks[cls] | fields)
    return new


class Event(Value):
    """
    Be the base of every event: a fact in the log, never refused and never changed.

    A concrete class names its permanent TYPE_CODE and the CLASS_VERSION of its payload; beside a
    raised version stands the static method ``upcast_v1_v2(data)`` that lifts an old payload (a
    plain dictionary) to the next shape.
    IS_DECISION says that the core made the event, as against what came in from outside.
    """

    TYPE_CODE: ClassVar[str] = ""
    CLASS_VERSION: ClassVar[int] = 1
    IS_DECISION: ClassVar[bool] = False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        code = cls.__dict__.get("TYPE_CODE", "")
        if not code:
            message = f"{cls.__name__} needs a TYPE_CODE of its own"
            raise TypeError(message)
        if code in _classes and _classes[code].__qualname__ != cls.__qualname__:
            message = f"type code {code} belongs to {_classes[code].__qualname__} already"
            raise TypeError(message)
        _classes[code] = cls


def event_class(type_code: str) -> type[Event]:
    """
    Return the class of a type code.

    Raises:
        UnknownEventType: No class of this program has that code.
    """
    try:
        return _classes[type_code]
    except KeyError:
        raise UnknownEventType(type_code) from None


def event_classes() -> dict[str, type[Event]]:
    """
    Return every event class by its type code, in order of the codes.
    """
    return dict(sorted(_classes.items()))


_MORE_THAN_WE_KNOW: Final = frozenset({"extra_forbidden", "enum", "literal_error"})
"""What is wrong with a payload that has a field, or a choice, which came later than we did."""
FIELDS_NAMED: Final = 3


def later_fields(error: Exception) -> str:
    """
    Return the fields for which a payload was refused, when it only has more than this program
    knows; "" when anything else is wrong with it.
    """
    if not isinstance(error, ValidationError):
        return ""
    wrong = error.errors(include_url=False, include_context=False, include_input=False)
    later = [one["loc"] for one in wrong if one["type"] in _MORE_THAN_WE_KNOW]
    for one in wrong:
        # A list is also called too short because of an entry that has more than we know.
        is_around = any(place[: len(one["loc"])] == one["loc"] for place in later)
        if one["loc"] not in later and not (one["type"] == "too_short" and is_around):
            return ""
    names = dict.fromkeys(".".join(map(str, place)) for place in later)
    return ", ".join(list(names)[:FIELDS_NAMED])

"""
What every event is, and the closed registry of their permanent type codes.

An event's payload is a strict, frozen pydantic model. The registry is filled by defining the
classes, never from stored bytes: no byte of a log can make the program import anything.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict

from domain.errors import UnknownEventType

_classes: dict[str, type[Event]] = {}
_blanks: dict[type[Value], tuple[dict[str, Any], set[str]]] = {}

# What a pydantic model consists of, set past its guard against changes. Through the descriptors it
# takes half the time of ``object.__setattr__``, which looks each of them up by name.
_new: Final = object.__new__
_set_fields: Final = BaseModel.__dict__["__dict__"].__set__
_set_names: Final = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra: Final = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private: Final = BaseModel.__dict__["__pydantic_private__"].__set__


class Value(BaseModel):
    """
    Be the base of every frozen value that appears inside commands, events and state.

    Fields are strings, whole numbers, booleans, None, tuples and other values: nothing that could
    change, and no floats. A field equal to its default is not stored, so a default belongs to the
    schema version: changing one needs a new version and an upcaster. A test validates the defaults,
    once; doing it with every value takes a tenth of reading a log.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    # hot: the simulator needs it ten times a job.
    @classmethod
    def sure(cls, **fields: Any) -> Self:
        """
        Return a value without checking it: the caller vouches for every field, and names all that
        have no default.

        Equivalent to: calling the class, at a third of its time. What a scheduler records is
        decoded from its bytes, and so checked, before the commit (``store.codec.encode_checked``).
        """
        new = _new(cls)
        blank, names = _blanks.get(cls) or _learn_blank(cls)
        _set_fields(new, {**blank, **fields})
        _set_names(new, names)
        _set_extra(new, None)
        _set_private(new, None)
        return new

    # hot: the simulator needs it once a job.
    def but(self, **changes: Any) -> Self:
        """
        Return the same value with some fields changed; the caller vouches for what they hold.

        Equivalent to: ``model_copy(update=changes)``, at a third of its time.
        """
        new = _new(type(self))
        names = self.__pydantic_fields_set__
        _set_fields(new, {**self.__dict__, **changes})
        _set_names(new, names if changes.keys() <= names else {*names, *changes})
        _set_extra(new, None)
        _set_private(new, None)
        return new


def _learn_blank(cls: type[Value]) -> tuple[dict[str, Any], set[str]]:
    """
    Remember the fields of a class in their order, each with its default, and their names.

    All are taken to be set: nothing here asks which were.
    """
    blank = {
        name: None if field.is_required() else field.get_default(call_default_factory=True)
        for name, field in cls.model_fields.items()
    }
    _blanks[cls] = (blank, set(blank))
    return _blanks[cls]


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

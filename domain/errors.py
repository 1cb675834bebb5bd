"""
The errors of XCE, told apart by who must act on them.

Each error carries fields; its text is made from them, so no one ever has to take a text apart.
"""

from __future__ import annotations

import re
from typing import Final

SHOWN_MAX: Final = 500
"""So many characters of a value are told at most."""


class XceError(Exception):
    """
    Be the root of every error that XCE raises on purpose.
    """

    exit_status = 1
    http_status = 500

    def fields(self) -> dict[str, object]:
        """
        Return what the error is made of, in the order of its constructor, without what is None.
        """
        return {name: value for name, value in vars(self).items() if value is not None}

    def text(self) -> str:
        """
        Return one line for people, made from the fields.
        """
        return ", ".join(f"{name}={value!r}" for name, value in self.fields().items())

    def __str__(self) -> str:
        return self.text()


class Refused(XceError):  # noqa: N818 - the family's name is a word of the glossary
    """
    Say that a command can't be honoured; nothing was changed.

    Args:
        field: Name of the offending field of the command.
        rule: The rule that it breaks, as a sentence fragment ("must be at least 1").
        value: What was given, when showing it helps.
        hint: One sentence that says what to do.
    """

    exit_status = 2
    http_status = 422

    def __init__(
        self, field: str, rule: str, value: object = None, hint: str | None = None
    ) -> None:
        super().__init__(field, rule, value, hint)
        self.field = field
        self.rule = rule
        self.value = value
        self.hint = hint

    def text(self) -> str:
        """
        Say it in one line.
        """
        given = "" if self.value is None else f" (given: {_shown(self.value)})"
        hint = "" if self.hint is None else f" {self.hint}"
        return f"{self.field}: {self.rule}{given}.{hint}"


def _shown(value: object) -> str:
    """
    Return what was given as it is told: its beginning, where the whole would bury the rule.
    """
    shown = repr(value)
    if len(shown) <= SHOWN_MAX:
        return shown
    return f"{shown[: SHOWN_MAX // 2]}... of {len(shown):,} characters"


class NotFound(Refused):
    """
    Say that a command names something that isn't there.
    """

    exit_status = 1
    http_status = 404


class Denied(Refused):
    """
    Say that the caller may not do what the command asks.
    """

    http_status = 403


class Conflict(XceError):  # noqa: N818 - as above
    """
    Say that somebody else was first: a version, a key, a fenced attempt, a second writer.

    Args:
        what: What is in conflict.
        expected: What the caller took for granted.
        found: What is so instead.
        hint: One sentence that says what to do.
    """

    exit_status = 3
    http_status = 409

    def __init__(
        self,
        what: str,
        expected: object = None,
        found: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(what, expected, found, hint)
        self.what = what
        self.expected = expected
        self.found = found
        self.hint = hint

    def text(self) -> str:
        """
        Say it in one line.
        """
        parts = [f"conflict: {self.what}"]
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        return "; ".join(parts) + "." + (f" {self.hint}" if self.hint else "")


class StoreUnavailable(XceError):  # noqa: N818 - as above
    """
    Say that the log can't take anything now; nothing acknowledged is lost.

    Args:
        resource: What is missing (disk, map, permission, descriptors).
        path: The file or directory concerned.
        detail: Amounts, or the operating system's words.
        hint: One sentence that says what to do.
    """

    exit_status = 3
    http_status = 503

    def __init__(
        self,
        resource: str,
        path: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(resource, path, detail, hint)
        self.resource = resource
        self.path = path
        self.detail = detail
        self.hint = hint

    def text(self) -> str:
        """
        Say it in one line.
        """
        where = f" at {self.path}" if self.path else ""
        detail = f" ({self.detail})" if self.detail else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.resource}{where}{detail}.{hint}"


class OutcomeUnknown(StoreUnavailable):
    """
    Say that a commit failed in a way that leaves open whether it happened; only a restart can tell.
    """


class Corrupt(XceError):  # noqa: N818 - as above
    """
    Say that stored bytes don't check.

    Args:
        kind: checksum, chain, gap, order, schema, truncated, foreign, newer, empty or structure.
        position: First bad position in the log, or None when it isn't a matter of one position.
        expected: What should be there.
        found: What is there.
        path: The file concerned.
        hint: One sentence that says what to do.
    """

    exit_status = 4

    def __init__(
        self,
        kind: str,
        position: int | None = None,
        expected: object = None,
        found: object = None,
        path: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(kind, position, expected, found, path, hint)
        self.kind = kind
        self.position = position
        self.expected = expected
        self.found = found
        self.path = path
        self.hint = hint

    def text(self) -> str:
        """
        Say it in one line.
        """
        # What a newer program wrote isn't damaged.
        parts = ["can't be read (newer)" if self.kind == "newer" else f"corrupt ({self.kind})"]
        if self.path is not None:
            parts.append(f"in {self.path}")
        if self.position is not None:
            parts.append(f"at position {self.position}")
        if self.expected is not None:
            parts.append(f"expected {self.expected}")
        if self.found is not None:
            parts.append(f"found {self.found}")
        return ", ".join(parts) + "." + (f" {self.hint}" if self.hint else "")


NEWER_PROGRAM = "Use the program that wrote it, or a newer one."
"""What to do about what checks, and is more than this program knows."""
OTHER_PROGRAM = (
    "If another version of the program wrote it, use that one; xce log verify tells whether its "
    "bytes were changed."
)
"""What to do about what checks, and is no event: nobody can say from its bytes why."""

# What type codes look like, so also those that come later; anything else nobody's XCE wrote.
_TYPE_CODE = re.compile(r"[a-z]+\.[a-z_]+")


class UnknownEventType(Corrupt):
    """
    Say that a stored event has a type code or schema version that this program doesn't know: a
    newer one has more of them, and none is ever taken away.
    """

    def __init__(
        self, type_code: str, version: int | None = None, position: int | None = None
    ) -> None:
        known = "a type code and schema version that this program knows"
        named = type_code if version is None else f"{type_code} schema version {version}"
        is_code = _TYPE_CODE.fullmatch(type_code) is not None
        kind, hint = ("newer", NEWER_PROGRAM) if is_code else ("schema", OTHER_PROGRAM)
        super().__init__(kind, position, known, named, hint=hint)
        self.type_code = type_code
        self.version = version


class PluginFailed(XceError):  # noqa: N818 - as above
    """
    Say that a picker or an allocator raised while it handled one job.

    Args:
        plugin: Name of the plug-in.
        job_id: The job it was handling, "" when none.
        cause: What it raised, as text.
    """

    def __init__(self, plugin: str, job_id: str, cause: str) -> None:
        super().__init__(plugin, job_id, cause)
        self.plugin = plugin
        self.job_id = job_id
        self.cause = cause

    def text(self) -> str:
        """
        Say it in one line.
        """
        return f"plug-in {self.plugin} failed on job {self.job_id or '(none)'}: {self.cause}"


class InvariantBroken(XceError):  # noqa: N818 - as above
    """
    Say that our own code broke a rule that must always hold: stop, and tell the story.
    """

    def __init__(self, rule: str, story: str | None = None) -> None:
        super().__init__(rule, story)
        self.rule = rule
        self.story = story

    def text(self) -> str:
        """
        Say it in one line.
        """
        return f"broken invariant: {self.rule}" + (f"; {self.story}" if self.story else "")

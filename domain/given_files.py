"""
Errors about files that somebody named to be read: the same words and exit status in every command.
"""

from __future__ import annotations

from domain.errors import NotFound, Refused


def unreadable(
    field: str, path: object, error: Exception, hint: str | None = None
) -> Refused:
    """
    Return our error for a named file that can't be read: one that isn't there is not found, which
    is told from one that is no file, or nobody's to read.

    Args:
        field: What was to be named by it.
        path: What was given.
        error: The operating system's, or another whose text says what is wrong.
        hint: One sentence that says what to do.
    """
    if isinstance(error, FileNotFoundError):
        return NotFound(field, "must be a file that is there", str(path), hint)
    reason = getattr(error, "strerror", None) or str(error)
    return Refused(field, f"can't be read: {reason}", str(path), hint)

"""
The files that a debugger writes: never the log, never one that is open already.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TextIO, final

from domain.errors import Refused


@final
class OpenFiles:
    """
    Open files for writing, each for one purpose.

    Args:
        log_path: The directory of the log, which nothing may go into, or a recording; None when
            there is neither.
    """

    def __init__(self, log_path: Path | None) -> None:
        self._log_path = log_path
        self._open: dict[str, tuple[Path, TextIO]] = {}

    def open(self, purpose: str, text: str) -> TextIO:
        """
        Open a file for a purpose instead of the one that is open for it.

        Args:
            purpose: What for; also what an error is about.
            text: Its path.

        Raises:
            Refused: It is open already, a part of the log, no plain file, or can't be written;
                what was open stays open.
        """
        path = self._checked(purpose, text)
        try:
            opened = path.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise Refused(purpose, f"can't be written: {error.strerror}", text) from None
        self.close(purpose)
        self._open[purpose] = (path, opened)
        return opened

    def close(self, purpose: str) -> None:
        """
        Close the file that is open for a purpose, if there is one.
        """
        found = self._open.pop(purpose, None)
        if found is not None:
            with suppress(OSError):
                # What a full disk didn't take was said when it was written.
                found[1].close()

    def close_all(self) -> None:
        """
        Close all files.
        """
        for purpose in list(self._open):
            self.close(purpose)

    def get(self, purpose: str) -> TextIO | None:
        """
        Return the file that is open for a purpose.
        """
        found = self._open.get(purpose)
        return None if found is None else found[1]

    def _checked(self, purpose: str, text: str) -> Path:
        """
        Return a path that may be written to.
        """
        path = Path(text).resolve()
        if any(_is_same(path, other) for other, _ in self._open.values()):
            raise Refused(purpose, "is open already", text)
        if self._log_path is not None and _is_of_log(path, self._log_path.resolve()):
            raise Refused(purpose, "must not be a part of the log", text)
        if path.exists() and not path.is_file():
            raise Refused(purpose, "must be a plain file", text)
        return path


def _is_same(path: Path, other: Path) -> bool:
    """
    Say whether two paths are one file, also under another name.
    """
    if path == other:
        return True
    return path.exists() and other.exists() and path.samefile(other)


def _is_of_log(path: Path, log_path: Path) -> bool:
    """
    Say whether a path is the log, in it, or another name of one of its files.
    """
    if path.is_relative_to(log_path):
        return True
    parts = log_path.iterdir() if log_path.is_dir() else (log_path,)
    return path.is_file() and any(part.is_file() and path.samefile(part) for part in parts)

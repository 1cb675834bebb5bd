"""
Texts for people within commands, each with its greatest length.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

Line = Annotated[str, StringConstraints(max_length=512)]
"""A line for people."""

Why = Annotated[str, StringConstraints(max_length=1024)]
"""A reason in words, which may hold what an operating system said."""

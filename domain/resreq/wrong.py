"""
What the builders of the nodes raise, and where in the text a part of the parse tree stands.
"""

from __future__ import annotations

from lark import Token, Tree


class Wrong(Exception):  # noqa: N818 - it never leaves the parser
    """
    Say that a part of a text can't be honoured; the parser adds the text and raises NotUnderstood.

    Args:
        position: Offset of the part in the text, from 0.
        rule: The rule that it breaks, as a sentence fragment.
        hint: One sentence that says what to do.
    """

    def __init__(self, position: int, rule: str, hint: str | None = None) -> None:
        super().__init__(position, rule, hint)
        self.position = position
        self.rule = rule
        self.hint = hint


def position_of(part: Token | Tree[Token] | None) -> int:
    """
    Return the offset of a part: that of its first token, 0 for a part without one.
    """
    while isinstance(part, Tree):
        part = next((child for child in part.children if child is not None), None)
    return 0 if part is None or part.start_pos is None else part.start_pos

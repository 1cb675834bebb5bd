"""
What of a job's requirement its queue says, so that reasons can tell whose word a host doesn't meet.
"""

from __future__ import annotations

from typing import NamedTuple

from domain.resreq.merge import terms_of
from domain.resreq.render import render_expr
from domain.resreq.syntax import Expr, Requirement, conjuncts


class QueueShare(NamedTuple):
    """
    Hold the queue's part of a merged requirement.

    Args:
        selects: Its conditions.
        resources: What it reserves and nobody above it speaks of.
    """

    selects: tuple[Expr, ...] = ()
    resources: frozenset[str] = frozenset()

    def text(self) -> str:
        """
        Return it in canonical words, "" where it is nothing: jobs that differ in it have other
        reasons.
        """
        if not self.selects and not self.resources:
            return ""
        words = [*(render_expr(each) for each in self.selects), *sorted(self.resources)]
        return f" of queue[{'; '.join(words)}]"


NO_SHARE: QueueShare = QueueShare()


def share_of(queue: Requirement | None, *above: Requirement | None) -> QueueShare:
    """
    Return what a queue adds to the requirements above it.
    """
    if queue is None or not queue.is_simple:
        return NO_SHARE
    known = [each for each in above if each is not None]
    named = {term.resource for each in known for term in terms_of(each)}
    own = {
        select
        for each in known
        if each.is_simple
        for select in conjuncts(each.only.select)
    }
    return QueueShare(
        tuple(each for each in conjuncts(queue.only.select) if each not in own),
        frozenset(term.resource for term in terms_of(queue)) - named,
    )

"""
The outcome of a placement that raised.
"""

from __future__ import annotations

from domain.errors import PluginFailed
from domain.reasons import PendReason, ReasonCode
from projections.scheduling.placement.runner import Pending


def failed_outcome(failure: Exception) -> Pending:
    """
    Return the outcome for the job whose placement raised: a placement changes nothing, so there is
    nothing to take back.
    """
    if isinstance(failure, PluginFailed):
        text = f"{failure.plugin}: {failure.cause}"[:200]
    else:
        text = f"placement: {type(failure).__name__}: {failure}"[:200]
    reasons = (PendReason(code=ReasonCode.PLUGIN_FAILED, detail=text),)
    return Pending(("failed", text), lambda: reasons, has_failed=True)

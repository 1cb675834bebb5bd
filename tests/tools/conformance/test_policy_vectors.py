"""
Fairshare, slot reservation and backfill as LSF has them: our own vectors, beside the shared ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.conformance.vectors import load, run_all

VECTORS = load(Path(__file__).with_name("policy_vectors.yaml"))


@pytest.mark.parametrize("outcome", list(run_all(VECTORS)), ids=lambda outcome: outcome.vector.id)
def test_our_policies_do_what_lsf_users_expect(outcome):
    """
    The rules of fairshare, of gathering slots and of lending them, one vector each.
    """
    assert [] == outcome.differences
    assert not outcome.left_out

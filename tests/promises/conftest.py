"""
Give promises about the core their scenario.
"""

from __future__ import annotations

import pytest

from tests.scenario import Scenario


@pytest.fixture(params=["fast", "plain"])
def scenario(request: pytest.FixtureRequest) -> Scenario:
    """
    Return a scenario, once on the fast core and once on the literal one.
    """
    return Scenario(plain=request.param == "plain")

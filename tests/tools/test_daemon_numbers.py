"""
Numbers that nobody can read, in every place of the API where a number may stand.
"""

from __future__ import annotations

import pytest

from tests.tools import live_cluster
from tools.daemon.access import RIGHTS

pytestmark = pytest.mark.slow

DIGITS = "9" * 5000
QUERIES = {"/v1/jobs": ("all", "limit", "job"), "/v1/jobs/{job_id}/trace": ("lines",)}


def test_a_number_of_thousands_of_digits_is_refused_by_every_route(tmp_path) -> None:
    """
    Python reads no such numbers, and says so by an error that nobody expected.
    """
    with live_cluster.running(tmp_path, workers=0) as cluster:
        for method, path in RIGHTS:
            if path != "/v1/shutdown":
                ask_with_numbers(cluster, method, path)


def ask_with_numbers(cluster: live_cluster.Cluster, method: str, path: str) -> None:
    """
    Put such a number wherever a route takes one: its path, its query, its body.
    """
    other = path.replace("{job_id}", "1").replace("{name}", "q")
    targets = [path.replace("{job_id}", DIGITS).replace("{name}", DIGITS)]
    if method == "GET":
        targets += [f"{other}?{name}={value}" for name in QUERIES.get(path, ())
                    for value in (DIGITS, "0" * 5000)]  # fmt: skip
    for target in targets:
        assert cluster.ask(method, target)[0] < 500, target[:60]
    if method != "POST":
        return
    status, answer = cluster.ask(method, other, f'{{"priority": {DIGITS}}}'.encode())
    assert status < 500, other
    if status == 422 and "digits" in answer["error"]["rule"]:
        assert "priority" == answer["error"]["field"]

"""
Why jobs wait, summed up over a cluster.
"""

from __future__ import annotations

from domain.allocations import HostSpan
from domain.reason_summary import HOST_BASED, summary_of
from domain.reasons import PendReason, ReasonCode


def on_hosts(code, count):
    return PendReason(code=code, hosts=(HostSpan(first=0, hosts=count),))


def test_jobs_count_by_main_reason_and_host_reasons_by_occurrence():
    """
    As bjobs -psum: a job whose reasons are all of hosts counts as host based.
    """
    summary = summary_of(
        [
            [on_hosts(ReasonCode.HOST_DISABLED, 2), on_hosts(ReasonCode.HOST_RES_REQ, 1)],
            [on_hosts(ReasonCode.HOST_DISABLED, 2)],
            [PendReason(code=ReasonCode.JOB_NEW)],
            [PendReason(code=ReasonCode.QUE_INACT), on_hosts(ReasonCode.HOST_DISABLED, 9)],
        ]
    )

    assert {HOST_BASED: 2, "JOB_NEW": 1, "QUE_INACT": 1} == dict(summary.by_jobs)
    assert {ReasonCode.HOST_DISABLED: 4, ReasonCode.HOST_RES_REQ: 1} == dict(summary.occurrences)
    assert HOST_BASED == summary.by_jobs[0][0]

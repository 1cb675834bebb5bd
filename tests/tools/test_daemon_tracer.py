"""
Traces made for whoever asks the scheduler: nobody's requests keep those of others away.

Real processes: the work is put off by a turn that the test holds.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from domain.errors import Conflict
from store.log import EventLog
from tests.scenario import Scenario
from tools.daemon import tracer
from tools.daemon.config import ClusterFiles
from tools.daemon.tracer import WAITING_OF_ONE_MAX, Tracer


@pytest.fixture
def files(tmp_path: Path) -> ClusterFiles:
    """
    Return the files of a cluster whose log has two jobs, one of them waiting.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    scenario.jobs("A", "B")
    scenario.session()
    with EventLog.create(tmp_path / "c" / "log", log_id="traced", durability="none") as log:
        log.append(scenario.log)
    return ClusterFiles(tmp_path / "c")


def counting(made: Tracer) -> list[tuple[str, ...]]:
    """
    Return the list into which every piece of work goes that is really done.
    """
    done: list[tuple[str, ...]] = []
    work = made._made

    async def counted(*question: str):
        done.append(question)
        return await work(*question)

    made._made = counted
    return done


async def _ask(made: Tracer, user: str, job_id: str = "2", lines: int = 100) -> object:
    try:
        reply = await made.trace(job_id, "summary", lines, user)
    except Conflict as error:
        return error
    return json.loads(reply.body)["job_id"]


@pytest.mark.slow
def test_one_users_requests_leave_room_for_others(files: ClusterFiles) -> None:
    """
    Nine requests of one user once kept everybody else from asking.
    """

    async def play() -> tuple[list[object], object]:
        made = Tracer(files)
        async with made._turn:
            greedy = [asyncio.create_task(_ask(made, "ann", lines=100 + n)) for n in range(9)]
            await asyncio.sleep(0)
            other = asyncio.create_task(_ask(made, "ben"))
            await asyncio.sleep(0)
            refused = [one.result() for one in greedy if one.done()]
            for one in greedy:
                one.cancel()
        return refused, await other

    refused, other = asyncio.run(play())

    assert (9 - WAITING_OF_ONE_MAX, "2") == (len(refused), other)
    assert all("your traces that wait" in one.text() for one in refused)


@pytest.mark.slow
def test_the_same_question_is_worked_out_once_for_all_who_wait(files: ClusterFiles) -> None:
    """
    Each trace is a process that reads the log; who asks after it has begun gets one of their own,
    since they may want to see what came after.
    """

    async def play() -> tuple[list[object], list[tuple[str, ...]]]:
        made = Tracer(files)
        done = counting(made)
        async with made._turn:
            asked = [asyncio.create_task(_ask(made, f"user{n}")) for n in range(6)]
            asked.append(asyncio.create_task(_ask(made, "eve", job_id="1")))
            await asyncio.sleep(0)
        return list(await asyncio.gather(*asked)), done

    answers, done = asyncio.run(play())

    assert [*["2"] * 6, "1"] == answers
    assert [("2", "summary", "100"), ("1", "summary", "100")] == done


@pytest.mark.slow
def test_who_gives_up_takes_no_answer_from_those_who_still_wait(files: ClusterFiles) -> None:
    """
    The work ends with the last who wants it, and not before.
    """

    async def play() -> tuple[object, int]:
        made = Tracer(files)
        async with made._turn:
            first, second = (asyncio.create_task(_ask(made, user)) for user in ("ann", "ben"))
            lonely = asyncio.create_task(_ask(made, "eve", job_id="1"))
            await asyncio.sleep(0)
            first.cancel()
            lonely.cancel()
            await asyncio.wait([first, lonely])
            left = len(made._not_begun)
        return await second, left

    assert ("2", 1) == asyncio.run(play())


@pytest.mark.slow
def test_what_takes_too_long_is_given_up_and_its_place_is_free_again(
    files: ClusterFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Else a few such requests would use up what a user may ask, for ever.
    """
    monkeypatch.setattr(tracer, "SECONDS_MAX", 0.05)

    async def play() -> tuple[int, int]:
        made = Tracer(files)
        async with made._turn:
            late = [
                asyncio.create_task(made.trace("2", "summary", 100 + n, "ann")) for n in range(4)
            ]
            await asyncio.wait(late)
        assert all("time for a trace" in str(one.exception()) for one in late)
        return made._of.total(), len(made._not_begun)

    assert (0, 0) == asyncio.run(play())

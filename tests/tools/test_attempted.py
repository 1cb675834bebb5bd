"""
What is recorded of requests that were refused before they became commands.
"""

from __future__ import annotations

import pytest

from tests.tools import cli_harness as harness
from tools.daemon.access import RIGHTS
from tools.daemon.attempted import attempted, command_name, subject_in


@pytest.mark.parametrize(
    ("route", "name"),
    [
        ("POST /v1/define/queue", "DefineQueue"),
        ("POST /v1/define/host", "ConfigureWorker"),
        ("POST /v1/remove/project", "RemoveProject"),
        ("POST /v1/queues/{name}/inactivate", "InactivateQueue"),
        ("POST /v1/hosts/{name}/close", "CloseWorker"),
        ("POST /v1/jobs/{job_id}/kill", "KillJob"),
        ("POST /v1/jobs/{job_id}/top", "MoveJob"),
        ("GET /v1/recording", "ReadRecording"),
    ],
)
def test_a_route_has_the_name_of_its_command(route, name):
    """
    Whoever looks for a command finds the refused ones too.
    """
    assert name == command_name(*route.split(" "))


def test_every_route_has_a_name_in_one_piece():
    """
    The audit makes words of it at its capitals: a path would be spelled letter by letter.
    """
    assert all(command_name(*route).isalpha() for route in RIGHTS)


def test_the_thing_that_it_was_about_is_known_as_far_as_it_can_be():
    """
    From the path, or from a body in which something else is wrong.
    """
    assert "q1" == attempted("POST", "/v1/queues/{name}/close", {"name": "q1"}).subject
    assert "q2" == subject_in(b'{"queue":"q2","spec":{"bad":1}}', "queue")
    assert "lic" == subject_in(b'{"descriptor":{"name":"lic"}}', "resource")
    assert [""] * 3 == [subject_in(body, "queue") for body in (b"{", b"[1]", b'{"queue":3}')]


@pytest.mark.slow
def test_the_audit_tells_refused_commands_as_those_that_were_carried_out(tmp_path):
    """
    The same words and the same object, whether it was refused before or by the scheduler itself.
    """
    with harness.cluster(tmp_path, "--workers", "1", "--slots", "1") as live:
        unsaid = live.run("define", "queue", "q2", "picker=nosuch")
        live.run("define", "queue", "q3", "priority=5", "picker=nosuch")
        live.run("queues", "close", "nosuch")
        live.run("queues", "close", "normal")
        told = live.ask("audit", "who")["commands"]

    hint = "xce define queue --help says what it is, and gives examples."
    assert f"xce: priority: must be given. {hint}\n" == unsaid.stderr
    keys = ("command", "object_kind", "object", "outcome")
    assert [
        ("define queue", "queue", "q2", "refused"),
        ("define queue", "queue", "q3", "refused"),
        ("close queue", "queue", "nosuch", "refused"),
        ("close queue", "queue", "normal", "done"),
    ] == [tuple(one[key] for key in keys) for one in told][-4:]

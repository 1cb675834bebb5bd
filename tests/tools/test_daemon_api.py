"""
The API over its real socket: what is answered, what is refused and how, who may do what.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from domain.events.refusals import AccessDenied, CommandRefused
from store.log import EventLog
from tests.tools import live_cluster
from tests.tools.live_cluster import Cluster, until
from tools.daemon.access import RIGHTS
from tools.tracing import plain, traced, words

pytestmark = pytest.mark.slow

PROGRAM = {"argv": ["true"], "env": [{"name": "SECRET", "value": "hush"}]}
NOBODY = 65534


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """
    Give a cluster without workers: nothing runs.
    """
    directory = tmp_path_factory.mktemp("cluster")
    with live_cluster.running(directory, workers=0) as found:
        yield found


def refused(cluster: Cluster, body: object) -> tuple[int, str]:
    status, answer = cluster.ask("POST", "/v1/jobs", body)
    return status, answer["error"]["field"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "program"),
        ({"program": {}}, "program.argv"),
        ({"program": {"argv": [""]}}, "program.argv"),
        ({"program": {"argv": ["a\0b"]}}, "program.argv"),
        ({"program": {"argv": [7]}}, "program.argv.0"),
        ({"program": {"argv": ["a"], "cwd": "here"}}, "program.cwd"),
        ({"program": {"argv": ["a"], "env": [{"name": "A=B", "value": ""}]}}, "program.env"),
        ({"program": {"argv": ["a"], "env": [{"name": "A", "value": ""}] * 2}}, "program.env"),
        ({"program": PROGRAM, "tasks_min": 0}, "tasks_min"),
        ({"program": PROGRAM, "tasks_min": 2.0}, "tasks_min"),
        ({"program": PROGRAM, "tasks_min": 3, "tasks_max": 2}, "tasks_max"),
        ({"program": PROGRAM, "queue": "no such"}, "queue"),
        ({"program": PROGRAM, "queue": "nosuch"}, "queue"),
        ({"program": PROGRAM, "resreq": ["rusage[mem=]"]}, "resreq"),
        ({"program": PROGRAM, "resreq": ["select[nosuch>5]"]}, "resreq"),
        ({"program": PROGRAM, "resreq": ["affinity[core(1)]"]}, "resreq"),
        ({"program": PROGRAM, "key": "two words"}, "key"),
        ({"program": PROGRAM, "pirority": 3}, "pirority"),
        ([], "body"),
    ],
)
def test_what_is_wrong_with_a_submission_is_named(
    cluster: Cluster, body: object, field: str
) -> None:
    """
    Bad input gets one clear error naming field and rule; nothing is half-taken or ignored.
    """
    before = cluster.get("/v1/status")["highest_job"]

    status, named = refused(cluster, body)

    assert (field, before) == (named, cluster.get("/v1/status")["highest_job"])
    assert status in (404, 422)


@pytest.mark.parametrize(
    "raw", ["", "nonsense", '{"program": {"argv": ["\\ud800"]}}', "[" * 100_000]
)
def test_a_body_that_is_no_json_is_refused(cluster: Cluster, raw: str) -> None:
    """
    Whatever comes in, the scheduler answers and lives.
    """
    connection = live_cluster.Connection(cluster.directory)
    connection.request("POST", "/v1/jobs", raw.encode())
    response = connection.getresponse()
    error = json.loads(response.read())["error"]
    connection.close()

    assert (422, True) == (response.status, bool(error["field"] and error["rule"]))
    assert "b'" not in error["text"] + str(error.get("value"))


@pytest.mark.parametrize(
    ("method", "target", "status", "field"),
    [("GET", "/v1/nothing", 404, "path"), ("DELETE", "/v1/jobs", 405, "method")],
)
def test_what_the_api_does_not_have_is_told_as_every_error_is(
    cluster: Cluster, method: str, target: str, status: int, field: str
) -> None:
    """
    A client reads one shape of errors, also when its path is mistyped.
    """
    given, answer = cluster.ask(method, target)

    assert (status, field) == (given, answer["error"]["field"])
    assert "/v1/openapi.json" in answer["error"]["text"]


def test_a_body_larger_than_allowed_is_refused(cluster: Cluster) -> None:
    """
    One client must not fill the scheduler's memory.
    """
    big = {"program": {"argv": ["x" * 100_000] * 30}}

    assert (422, "body") == refused(cluster, big)


def test_the_same_key_gives_the_same_job_and_other_content_a_conflict(cluster: Cluster) -> None:
    """
    A client whose answer got lost asks again, and must not make a second job.
    """
    body = {"key": "k1", "program": PROGRAM}
    first_status, first = cluster.ask("POST", "/v1/jobs", body)
    status, again = cluster.ask("POST", "/v1/jobs", body)
    other, conflict = cluster.ask("POST", "/v1/jobs", {**body, "tasks_min": 2})

    assert (201, 200, 409) == (first_status, status, other)
    assert (first["job_id"], True) == (again["job_id"], again["replayed"])
    assert "key" in conflict["error"]["text"]


def test_what_is_kept_but_not_carried_out_is_told(cluster: Cluster) -> None:
    """
    A reservation that should shrink and won't is taken, and its owner knows.
    """
    timed = cluster.post("/v1/jobs", {"program": PROGRAM, "resreq": ["rusage[mem=5:duration=1h]"]})
    plain = cluster.post("/v1/jobs", {"program": PROGRAM, "resreq": ["rusage[mem=5]"]})
    again = {"program": PROGRAM, "resreq": ["rusage[mem=5:duration=1h]"], "key": "noted"}
    two = {"ranges": [{"start": 1, "end": 2}]}
    array = cluster.post("/v1/jobs", {**again, "key": "", "array": two})
    replayed = [cluster.post("/v1/jobs", again) for _ in range(2)][1]
    changed = cluster.post(f"/v1/jobs/{plain['job_id']}/modify", {"resreq": again["resreq"]})
    for job in (timed, plain, array, replayed):
        assert "notes" not in cluster.post(f"/v1/jobs/{job['job_id']}/kill")

    assert "notes" not in plain
    for answer in (timed, array, replayed, changed):
        assert "mem is held until the job ends: duration and decay" in answer["notes"][0]
    assert replayed["replayed"]


def test_a_pending_job_says_why_it_waits_and_can_be_held_lifted_and_killed(
    cluster: Cluster,
) -> None:
    """
    The whole life of a job that never runs, as its answers tell it.
    """
    job_id = cluster.submit("true", name="n", tasks_min=2)
    why = cluster.get(f"/v1/jobs/{job_id}/why")
    held = cluster.post(f"/v1/jobs/{job_id}/hold")
    twice, again = cluster.ask("POST", f"/v1/jobs/{job_id}/hold", {})
    lifted = cluster.post(f"/v1/jobs/{job_id}/lift")
    cluster.post(f"/v1/jobs/{job_id}/kill")
    ended = cluster.job(job_id)

    assert ["NO_HOSTS"] == [reason["code"] for reason in why["reasons"]]
    assert ("PSUSP", "PEND", 422, "job_id") == (
        held["state"],
        lifted["state"],
        twice,
        again["error"]["field"],
    )
    assert ("EXIT", "TERM_OWNER", None, 2) == (
        ended["state"],
        ended["why"],
        ended["exit_code"],
        ended["tasks"],
    )
    texts = [event["text"] for event in cluster.get(f"/v1/jobs/{job_id}/history")["events"]]
    assert any("submitted" in text for text in texts)


def test_lists_filter_and_positions_rise(cluster: Cluster) -> None:
    """
    Each read says which position of the log it reflects.
    """
    position = cluster.get("/v1/jobs")["position"]
    job_id = cluster.submit("true", name="listed")
    answer = cluster.get("/v1/jobs?limit=1")
    cluster.post(f"/v1/jobs/{job_id}/kill")

    assert [job_id] == [job["job_id"] for job in answer["jobs"]]
    assert answer["position"] > position
    assert job_id not in [job["job_id"] for job in cluster.get("/v1/jobs")["jobs"]]
    assert job_id in [job["job_id"] for job in cluster.get("/v1/jobs?all=1&state=EXIT")["jobs"]]
    assert [] == cluster.get("/v1/jobs?all=1&user=daemon")["jobs"]
    assert 422 == cluster.ask("GET", "/v1/jobs?state=NONE")[0]
    assert 422 == cluster.ask("GET", "/v1/jobs?limit=-1")[0]


@pytest.mark.parametrize("name", ["queue", "user", "host"])
@pytest.mark.parametrize("every", [0, 1])
def test_an_unknown_name_is_told_where_a_list_would_be_empty(
    cluster: Cluster, name: str, every: int
) -> None:
    """
    Who mistypes a name would else take it that nothing waits there.
    """
    status, answer = cluster.ask("GET", f"/v1/jobs?all={every}&{name}=no-such-one")

    assert (404, name, "no-such-one") == (
        status, answer["error"]["field"], answer["error"]["value"]
    )  # fmt: skip


def test_what_is_not_there_is_not_found(cluster: Cluster) -> None:
    """
    A wrong id and an impossible one are told apart from a fault.
    """
    asked = ["/v1/jobs/999999", "/v1/jobs/999999/why", "/v1/jobs/999999/history"]

    assert [404, 404, 404] == [cluster.ask("GET", target)[0] for target in asked]
    assert 422 == cluster.ask("GET", "/v1/jobs/0")[0]
    assert 404 == cluster.ask("POST", "/v1/hosts/nosuch/close", {})[0]
    assert 404 == cluster.ask("POST", "/v1/queues/nosuch/open", {})[0]


def test_an_arrays_own_id_names_no_single_job(cluster: Cluster) -> None:
    """
    Whoever asks for it is told what to ask for.
    """
    body = {"program": PROGRAM, "array": {"ranges": [{"start": 5, "end": 6}]}}
    array = cluster.post("/v1/jobs", body)["job_id"]
    status, answer = cluster.ask("GET", f"/v1/jobs/{array}")
    element = cluster.job(f"{array}[6]")
    ended = cluster.post(f"/v1/jobs/{array}/kill")

    assert (422, f"The first is {array}[5].") == (status, answer["error"]["hint"])
    assert "PEND" == element["state"]
    assert [f"{array}[5]", f"{array}[6]"] == ended["elements"]


def test_a_queue_is_closed_inactivated_and_opened_again(cluster: Cluster) -> None:
    """
    A closed queue takes nothing, an inactive one starts nothing.
    """
    cluster.post("/v1/queues/normal/close")
    status, named = refused(cluster, {"program": PROGRAM})
    cluster.post("/v1/queues/normal/open")
    cluster.post("/v1/queues/normal/inactivate")
    job_id = cluster.submit("true")
    why = cluster.get(f"/v1/jobs/{job_id}/why")["reasons"][0]["code"]
    cluster.post("/v1/queues/normal/activate")
    cluster.post(f"/v1/jobs/{job_id}/kill")

    (queue,) = cluster.get("/v1/queues")["queues"]
    assert (422, "queue", "QUE_INACT") == (status, named, why)
    assert (True, True, "builtin_fcfs") == (queue["is_open"], queue["is_active"], queue["picker"])


def test_nobody_sees_a_jobs_environment(cluster: Cluster) -> None:
    """
    Environments hold passwords and tokens.
    """
    job_id = cluster.post("/v1/jobs", {"program": PROGRAM})["job_id"]
    targets = [
        f"/v1/jobs/{job_id}",
        "/v1/jobs?all=1",
        f"/v1/jobs/{job_id}/history",
        f"/v1/jobs/{job_id}/why",
    ]
    seen = "".join(json.dumps(cluster.get(target)) for target in targets)
    cluster.post(f"/v1/jobs/{job_id}/kill")

    assert "true" in seen
    assert "hush" not in seen
    assert "SECRET" not in seen


# ------------------------------------------------------------------------------------- who may what


def as_nobody(cluster: Cluster, asked: list[tuple[str, str, object]]) -> list[tuple[int, dict]]:
    """
    Return the answers that a user without any right gets: who connects is what counts.
    """
    connection = live_cluster.Connection(cluster.directory)
    os.seteuid(NOBODY)
    try:
        connection.connect()
    finally:
        os.seteuid(0)
    found = []
    for method, target, body in asked:
        connection.request(method, target, None if body is None else json.dumps(body))
        response = connection.getresponse()
        found.append((response.status, json.loads(response.read())))
    connection.close()
    return found


@pytest.fixture
def open_door(cluster: Cluster) -> Iterator[None]:
    """
    Let other users through to the socket, as an administrator may.
    """
    folders = [cluster.directory, *cluster.directory.parents]
    modes = {folder: folder.stat().st_mode for folder in folders if folder != Path("/")}
    for folder, mode in modes.items():
        folder.chmod(mode | 0o011)
    yield
    for folder, mode in modes.items():
        folder.chmod(mode)


BODIES: dict[str, object] = {"switch": {"queue": "normal"}, "signal": {"signal": "USR1"}}
"""What must be in a body before anybody asks whose job it is."""


@pytest.mark.needs_root
@pytest.mark.usefixtures("open_door")
def test_the_table_of_rights_holds_for_every_route(cluster: Cluster) -> None:
    """
    Each route is asked by a user without rights: reads are answered, everything else is denied, and
    each denial is in the log. A route that somebody adds without a right can't even be started.
    """
    job_id = cluster.submit("true")
    filled = [
        (
            method,
            path.replace("{job_id}", job_id).replace("{name}", "x"),
            BODIES.get(path.rpartition("/")[2], {}),
        )
        for method, path in RIGHTS
    ]
    # Said here once more, and not taken from the table: a right given by mistake must be noticed.
    kept = ("workers", "recording")
    reads = [
        path
        for method, path in RIGHTS
        if method == "GET" and not any(word in path for word in kept)
    ]
    allowed = {("GET", path): 200 for path in reads} | {("POST", "/v1/jobs"): 422}
    expected = [allowed.get(route, 403) for route in RIGHTS]

    answers = as_nobody(cluster, filled)
    cluster.post(f"/v1/jobs/{job_id}/kill")

    got = [status for status, _ in answers]
    assert dict(zip(RIGHTS, expected, strict=True)) == dict(zip(RIGHTS, got, strict=True))
    with EventLog.open(cluster.directory, writable=False) as log:
        denied = {
            one.event.action
            for one in log.read()
            if isinstance(one.event, AccessDenied) and one.actor == "nobody"
        }
    # Only so many are recorded at once: the first of each kind of route.
    assert {"KillJob", "HoldJob", "LiftHold", "CloseWorker"} <= denied


@pytest.mark.needs_root
@pytest.mark.usefixtures("open_door")
def test_another_user_reads_a_story_without_the_command(cluster: Cluster) -> None:
    """
    What happened to a job is everybody's, what it runs is its user's.
    """
    job_id = cluster.submit("cat", "private-file")
    path = f"/v1/jobs/{job_id}/history"

    ((status, others),) = as_nobody(cluster, [("GET", path, None)])
    own = cluster.get(path)
    cluster.post(f"/v1/jobs/{job_id}/kill")

    assert 200 == status
    assert "private-file" in json.dumps(own)
    assert "private-file" not in json.dumps(others)
    told, seen = ([one["position"] for one in story["events"]] for story in (own, others))
    assert told[: len(seen)] == seen != []


@pytest.mark.needs_root
@pytest.mark.usefixtures("open_door")
def test_another_user_gets_the_trace_that_the_log_gives(cluster: Cluster) -> None:
    """
    How a job was decided is everybody's, as why it waits is; what it runs isn't in it.
    """
    job_id = cluster.submit("cat", "private-file")

    ((status, told),) = as_nobody(cluster, [("GET", f"/v1/jobs/{job_id}/trace", None)])

    found = traced(cluster.directory, job_id, None, level="full", lines_max=1000)
    assert (200, words(found)) == (status, told.pop("words"))
    assert json.loads(json.dumps(plain(job_id, found))) == told
    assert "private-file" not in json.dumps(told)
    assert told["traces"]


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [("level=most", 422, "level"), ("lines=0", 422, "lines"), ("lines=1e3", 422, "lines"),
     ("level=full", 404, "job_id")],
)
def test_what_is_wrong_with_a_question_for_a_trace_is_named(
    cluster: Cluster, query: str, status: int, field: str
) -> None:
    """
    The query before a process is started for it, the job by that process.
    """
    got, told = cluster.ask("GET", f"/v1/jobs/999999/trace?{query}")
    assert (status, field) == (got, told["error"]["field"])


@pytest.mark.needs_root
@pytest.mark.usefixtures("open_door")
def test_another_user_sees_no_program_and_cannot_act_for_somebody(cluster: Cluster) -> None:
    """
    Identity comes from the socket alone.
    """
    job_id = cluster.submit("cat", "private-file")
    body = {"program": PROGRAM, "user": "root"}

    shown, listed, posed = as_nobody(
        cluster,
        [
            ("GET", f"/v1/jobs/{job_id}", None),
            ("GET", "/v1/jobs", None),
            ("POST", "/v1/jobs", body),
        ],
    )
    mine, theirs = cluster.ask("POST", "/v1/jobs", {**body, "user": "nobody"})
    cluster.post(f"/v1/jobs/{job_id}/kill")

    assert job_id == shown[1]["job_id"]
    assert "private-file" not in json.dumps([shown, listed])
    assert "private-file" in json.dumps(cluster.job(job_id))
    assert (422, 403, "user") == (posed[0], mine, theirs["error"]["field"])


def test_refusals_are_in_the_log_but_cannot_fill_it(cluster: Cluster) -> None:
    """
    A client gone mad must not write a log entry for each of its mistakes.
    """

    def ask() -> list[CommandRefused]:
        refused(cluster, {"program": PROGRAM, "queue": "mad"})
        with EventLog.open(cluster.directory, writable=False) as log:
            recorded = [one.event for one in log.read() if isinstance(one.event, CommandRefused)]
        return [event for event in recorded if event.value == "mad"]

    # The denials of other tests may have used the rate up for a moment.
    until(ask, "one is recorded")
    for _ in range(200):
        refused(cluster, {"program": PROGRAM, "queue": "mad"})

    mad = ask()
    assert 1 <= len(mad) <= 100
    assert ("SubmitJob", "queue") == (mad[0].command, mad[0].field)


def test_the_openapi_document_has_every_route_with_its_body(cluster: Cluster) -> None:
    """
    A fuzzer drives the API by it.
    """
    document = cluster.get("/v1/openapi.json")

    routes = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert set(RIGHTS) == routes
    schema = document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert {"program", "key", "queue"} <= set(schema["schema"]["properties"])


def test_the_scheduler_runs_as_the_owner_of_its_directory_and_hides_its_key(
    cluster: Cluster,
) -> None:
    """
    Whoever reads the key can report for any job.
    """
    modes = {
        name: (cluster.directory / name).stat().st_mode & 0o777
        for name in ("cluster.key", "scheduler.log", "log")
    }

    assert {"cluster.key": 0o600, "scheduler.log": 0o600, "log": 0o700} == modes
    assert os.geteuid() == cluster.directory.stat().st_uid

"""
A branch without a change is its parent; one with a change differs by that and by what follows.
"""

# long: one test for each thing that a branch may change.

from __future__ import annotations

import json

import pytest

from domain.amounts import Amount
from domain.commands import (
    DefineQueue,
    KillJob,
    MarkUnreachable,
    MoveJob,
    OrderDoneReport,
    RequeueJob,
    ResumeJob,
    StopJob,
    SubmitJob,
    SwitchJob,
    WorkerReport,
)
from domain.errors import Refused
from domain.events.jobs import (
    JobDispatched,
    JobFinished,
    JobKillRequested,
    JobResumeRequested,
    JobStarted,
    JobStopRequested,
    JobSubmitted,
    JobSuspended,
)
from domain.events.log import LogBranched
from domain.events.queues import QueueDefined
from domain.events.session import ReasonSetChanged
from domain.events.workers import WorkerCameBack, WorkerJoined, WorkerOrderDone
from domain.ids import job_stream
from domain.queues import QueueSpec
from domain.signals import SignalName
from domain.windows import parse_windows
from projections.scheduling.plugins import Plugins
from replay.branch import Branch, branch_log_id
from replay.branch_changes import Changes, parse_hosts, parse_setting, read_inputs
from replay.check import check
from replay.verify import verify
from store.log import EventLog
from tests.builders import MB_MILLI, a_job, some_settings
from tests.replay.logs import ListLog
from tests.scenario import Scenario

S = 1_000_000


def branched(parent, position, **options):
    """
    Return the branch as a list log, and its result.
    """
    made = Branch(parent, position, **options)
    child = ListLog([], made.log_id)
    return child, made.run(child)


def read(place):
    """
    Return a log in a directory as a list log.
    """
    with EventLog.open(place, writable=False) as log:
        return ListLog([one.stamped() for one in log.read()], log.log_id)


def is_the_parent(parent, position, *, is_over=True):
    """
    Say whether a branch without a change repeats every event of its parent; more may follow only
    where something was still under way at the parent's end.
    """
    child, result = branched(parent, position)
    begin = result.parent_position
    assert isinstance(child.events[begin].event, LogBranched)
    return (
        result.differs_at is None
        and parent.stamped()[:begin] == child.stamped()[:begin]
        and parent.stamped(begin) == child.stamped(begin + 1)[: parent.head() - begin]
        and (child.head() == parent.head() + 1 or not is_over)
    )


def test_without_a_change_a_simulation_goes_on_as_it_did(small_log):
    """
    From every position the same events follow, to the byte: stamps, versions, causes.
    """
    parent = read(small_log)

    wrong = [place for place in range(parent.head() + 1) if not is_the_parent(parent, place)]

    assert [] == wrong


def test_without_a_change_a_live_cluster_goes_on_as_it_did(live):
    """
    The same with holds, kills, usage, and hosts that get lost, come back and change.
    """
    places = range(live.head() + 1)
    wrong = [place for place in places if not is_the_parent(live, place, is_over=False)]

    assert [] == wrong


@pytest.mark.needs_traces
@pytest.mark.slow
def test_without_a_change_a_real_workload_goes_on_as_it_did(kth_log):
    """
    The same over a thousand sessions with waiting jobs.
    """
    parent = read(kth_log)

    for place in (5, parent.head() // 3, parent.head() // 2):
        assert is_the_parent(parent, place)


@pytest.fixture
def stopped():
    """
    Return the log of a job that is stopped for 40 s of its 60, and of others changed, moved and put
    back meanwhile.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2", "h2 slots=2")
    scenario.queue("night", priority=10)
    scenario.jobs("A tasks=4", "B tasks=2", "C tasks=2", "D tasks=2")
    scenario.session()
    scenario.pass_time(1)
    scenario.start("A")
    scenario.pass_time(10)
    scenario.command(StopJob(job_id=scenario.ids["A"]))
    scenario.command(SwitchJob(job_id=scenario.ids["B"], queue="night"))
    scenario.command(MoveJob(job_id=scenario.ids["D"], to="top"))
    scenario.session()
    scenario.pass_time(1)
    scenario.suspended("A")
    scenario.pass_time(39)
    scenario.command(ResumeJob(job_id=scenario.ids["A"]))
    scenario.session()
    scenario.pass_time(1)
    scenario.resumed("A")
    scenario.pass_time(9)
    scenario.finish("A")
    scenario.session()
    scenario.pass_time(1)
    scenario.start("C", "D")
    scenario.pass_time(5)
    scenario.finish("C", "D")
    scenario.session()
    scenario.start("B")
    scenario.pass_time(7)
    scenario.finish("B")
    return ListLog(scenario.log)


def test_without_a_change_stopped_and_moved_jobs_go_on_as_they_did(stopped):
    """
    The same with stops, resumptions, switches and places in the queue.
    """
    wrong = [place for place in range(stopped.head() + 1) if not is_the_parent(stopped, place)]

    assert [] == wrong


def test_suspended_time_is_no_run_time(stopped):
    """
    A job whose stop is left out ends after the 20 s that it ran, not after the 60 s that it took.
    """
    assert (2, 60) == runs(stopped)[1]
    dropped = frozenset({stopped.where(JobStopRequested)})

    child, _ = branched(stopped, submitted(stopped), changes=Changes(dropped=dropped))

    assert (2, 20) == runs(child)[1]
    assert check(child, sample_events=1).is_good


def test_a_job_that_is_stopped_at_another_time_runs_as_long_as_ever(stopped, tmp_path):
    """
    Orders that the parent doesn't know are carried out at once, and the end moves by the stop.
    """
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(
        json.dumps({"time_us": time_s * S, "actor": "alice", "command": command,
                    "fields": {"job_id": "1"}})
        for time_s, command in ((5, "StopJob"), (11, "ResumeJob"))
    ))  # fmt: skip
    dropped = frozenset({stopped.where(JobStopRequested), stopped.where(JobResumeRequested)})
    changes = Changes(dropped=dropped, added=read_inputs(file))

    child, _ = branched(stopped, submitted(stopped), changes=changes)

    assert (2, 26) == runs(child)[1]
    assert 2 == sum(isinstance(one.event, WorkerOrderDone) for one in child.events)
    assert check(child, sample_events=1).is_good


@pytest.fixture
def busy(scenario_log):
    """
    Return the log of one host of two slots and three jobs one after the other, 10, 20, 30 s long.
    """
    return scenario_log


@pytest.fixture
def scenario_log():
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.queue("night", priority=10)
    scenario.jobs("A tasks=2", "B tasks=2", "C tasks=2 queue=night")
    for name, seconds in (("A", 10), ("B", 20), ("C", 30)):
        scenario.session()
        scenario.pass_time(1)
        scenario.start(name)
        scenario.pass_time(seconds)
        scenario.finish(name)
    scenario.session()
    return ListLog(scenario.log)


def submitted(log):
    """
    Return the position of the last submission.
    """
    return log.where(JobSubmitted, 3)


def runs(log):
    """
    Return start and run time in seconds of each job, by number.
    """
    starts, found = {}, {}
    for one in log.events:
        if isinstance(one.event, JobStarted):
            starts[one.stream] = one.time_us
        elif isinstance(one.event, JobFinished):
            start = starts[one.stream]
            found[int(one.stream[4:])] = (start // S, (one.time_us - start) // S)
    return found


def test_a_queue_of_higher_priority_goes_first_and_jobs_run_as_long_as_they_did(busy):
    """
    The change moves starts; the run times are the jobs' own, known from the parent.
    """
    assert {1: (2, 10), 2: (13, 20), 3: (34, 30)} == runs(busy)
    changes = Changes(settings=(parse_setting("queue.night.priority=90"),))

    child, result = branched(busy, submitted(busy), changes=changes)

    assert {3: (2, 30), 1: (33, 10), 2: (44, 20)} == runs(child)
    assert busy.where(JobDispatched) == result.differs_at
    assert 0 == result.run_time_unknown
    assert verify(child).is_same
    assert check(child, sample_events=1).is_good


def test_another_figure_in_a_reason_is_no_decision_that_differs():
    """
    A changed branch doesn't carry over what hosts measured; that is no consequence of the change.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2 mem_mb=100")
    scenario.queue("night", priority=10)
    scenario.jobs("A tasks=1 mem_mb=60")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(5)
    load = (Amount(resource="mem", milli=10 * MB_MILLI),)
    scenario.command(WorkerReport(worker="h1", incarnation=1, load=load), actor="")
    scenario.submit("B", resreq=("rusage[mem=80]",))
    scenario.session()
    scenario.pass_time(5)
    scenario.finish("A")
    scenario.session()
    parent = ListLog(scenario.log)
    changes = Changes(settings=(parse_setting("queue.night.priority=11"),))

    child, result = branched(parent, parent.where(JobStarted), changes=changes)

    told = [[one.event for one in log.events if isinstance(one.event, ReasonSetChanged)]
            for log in (parent, child)]  # fmt: skip
    assert told[0] != told[1]
    assert (None, "") == (result.differs_at, result.differs)


def test_added_hosts_take_jobs_at_once(busy):
    """
    A cluster three times as large starts all three jobs together.
    """
    changes = Changes(hosts=parse_hosts("2x2", frozenset({"h1"})))

    child, _ = branched(busy, submitted(busy), changes=changes)

    assert {1: (2, 10), 2: (2, 20), 3: (2, 30)} == runs(child)
    assert check(child, sample_events=1).is_good


def test_a_dropped_submission_never_happened(busy):
    """
    The others keep their numbers, so that both futures call them the same.
    """
    position = busy.where(JobSubmitted, 2)

    child, result = branched(
        busy, position - 1, changes=Changes(dropped=frozenset({position}))
    )

    assert {1: (2, 10), 3: (13, 30)} == runs(child)
    assert [position] == [one.position for one in result.not_taken]


def test_inputs_can_be_added_from_a_file(busy, tmp_path):
    """
    A job that nobody submitted gets a number of its own; a kill ends its job at once.
    """
    file = tmp_path / "more.jsonl"
    spec = {"user": "bob", "queue": "normal", "tasks_min": 2, "tasks_max": 2,
            "run_estimate_us": 5 * S}  # fmt: skip
    lines = [
        {"time_us": 6 * S, "actor": "alice", "command": "KillJob", "fields": {"job_id": "1"}},
        {"time_us": 3 * S, "command": "SubmitJob", "fields": {"spec": spec}},
    ]
    file.write_text("\n\n".join(json.dumps(line) for line in lines))

    child, result = branched(
        busy, submitted(busy), changes=Changes(added=read_inputs(file))
    )

    assert {1: (2, 4), 2: (7, 20), 4: (28 - 1, 5), 3: (33, 30)} == runs(child)
    assert 1 == result.run_time_unknown
    assert 0 == result.without_end
    assert check(child, sample_events=1).is_good


def test_a_branch_ends_when_it_is_told_to(busy):
    """
    What would come later isn't in the log.
    """
    child, result = branched(busy, submitted(busy), until_us=20 * S)

    assert {1: (2, 10)} == runs(child)
    assert result.end_us <= 20 * S


def test_a_setting_of_none_takes_a_value_away() -> None:
    """
    As in a definition; a queue without a picker has the cluster's, so none is looked for.
    """
    texts = ("queue.night.hosts=none", "queue.night.picker=none", "queue.night.tasks_max=none")
    changes = Changes(settings=tuple(map(parse_setting, texts)))
    plain = QueueSpec(priority=5)
    given = {"priority": 5, "picker": "easy", "tasks_max": 3,
             "hosts": {"entries": [{"name": "h1"}]}}  # fmt: skip

    changes.check_pickers(Plugins())
    assert plain == changes.queue("night", QueueSpec.model_validate_json(json.dumps(given)))


def test_settings_hold_against_later_definitions_of_the_parent():
    """
    Whoever asks what another priority would have done means it to last.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    position = len(scenario.log)
    scenario.pass_time(5)
    scenario.command(DefineQueue(queue="normal", spec=QueueSpec(priority=70)))
    parent = ListLog(scenario.log)
    changes = Changes(settings=(parse_setting("queue.priority=99"),))

    child, _ = branched(parent, position, changes=changes)

    after = [one.event.spec.priority for one in child.read(position)
             if isinstance(one.event, QueueDefined)]  # fmt: skip
    assert [99, 99] == after


def test_the_branch_says_where_it_comes_from(busy):
    """
    Parent id, position, digest and changes stand in the branch itself; its id is a function of
    them.
    """
    changes = Changes(settings=(parse_setting("queue.night.priority=90"),))

    child, result = branched(busy, 8, changes=changes)
    event = child.events[result.parent_position].event

    assert (busy.log_id, 8) == (event.parent_log_id, event.parent_position)
    assert busy.digest_at(8).hex() == event.parent_digest
    assert ("set queue.night.priority=90",) == event.changes
    assert child.log_id == branch_log_id(busy, 8, changes, None)
    assert child.log_id != branch_log_id(busy, 8, Changes(), None)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda _: Changes(settings=(parse_setting("queue.none.priority=1"),)), "--set"),
        (lambda _: Changes(settings=(parse_setting("queue.priority=-1"),)), "--set priority"),
        (lambda _: Changes(settings=(parse_setting("queue.priority=x"),)), "--set priority"),
        (lambda _: Changes(settings=(parse_setting("cluster.picker=x"),)), "--set picker"),
        (lambda _: Changes(settings=(parse_setting("queue.picker=x"),)), "--set picker"),
        (lambda _: Changes(settings=(parse_setting("queue.thresholds=r1m"),)), "--set thresholds"),
        (lambda _: Changes(settings=(parse_setting("queue.limits.colour=1"),)), "--set"),
        (lambda _: Changes(settings=(parse_setting("queue.limits.jobs=x"),)), "--set limits.jobs"),
        (lambda _: Changes(settings=(parse_setting("queue.colour=red"),)), "--set"),
        (lambda _: Changes(settings=(parse_setting("priority=1"),)), "--set"),
        (lambda _: Changes(settings=(parse_setting("queue..priority=1"),)), "--set queue name"),
        (lambda _: Changes(settings=(parse_setting("queue.a\nb.priority=1"),)), "--set queue name"),
        (lambda _: Changes(settings=(parse_setting("queue.a .priority=1"),)), "--set queue name"),
        (lambda _: Changes(settings=(parse_setting("queue.stop_condition=no > 1"),)),
         "stop_condition"),
        (lambda _: Changes(hosts=parse_hosts("0x1", frozenset())), "--add-hosts hosts"),
        (lambda _: Changes(dropped=frozenset({3})), "--drop-event"),
        (lambda log: Changes(dropped=frozenset({log.where(JobDispatched)})), "--drop-event"),
        (lambda log: Changes(dropped=frozenset({log.where(JobFinished)})), "--drop-event"),
        (lambda log: Changes(dropped=frozenset({log.head() + 1})), "--drop-event"),
    ],
)  # fmt: skip
def test_a_change_that_can_not_be_made_is_refused_before_anything_is_written(busy, make, field):
    """
    One clear error that names the option; there is no half branch.
    """
    with pytest.raises(Refused) as caught:
        Branch(busy, submitted(busy), changes=make(busy))

    assert field == caught.value.field


def test_who_names_a_decision_to_leave_out_is_told_the_next_input():
    """
    Positions of inputs are nothing that people know by heart.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=1")
    scenario.jobs("A")
    scenario.session()
    scenario.jobs("B")
    log = ListLog(scenario.log)
    decision, following = log.where(JobDispatched), log.where(JobSubmitted, 2)

    with pytest.raises(Refused) as caught:
        Branch(log, decision - 1, changes=Changes(dropped=frozenset({decision})))

    assert f"The next one is {following}, job.submitted of job:0000000002." == caught.value.hint


@pytest.mark.parametrize(
    ("setting", "field", "value"),
    [
        ("queue.thresholds=r1m=0.7/2", "thresholds.0.sched_milli", 700),
        ('queue.thresholds=[{"index": "r1m", "stop_milli": 5}]', "thresholds.0.stop_milli", 5),
        ("queue.normal.limits.user_slots=7", "limits.user_slots", 7),
        ("queue.slot_reserve_us=1h", "slot_reserve_us", 3_600_000_000),
        ("queue.preemptible_by=a+1 b", "preemptible_by.entries.0.preference", 1),
        ("cluster.preemption.relation=either", "preemption.relation", "either"),
    ],
)
def test_a_setting_is_said_as_in_a_definition(setting, field, value):
    """
    One way to say a value, wherever it is said; JSON is understood too.
    """
    changes = Changes(settings=(parse_setting(setting),))
    is_queue = setting.startswith("queue")
    made = changes.queue("normal", QueueSpec(priority=1)) if is_queue else changes.cluster(
        some_settings()
    )

    found = json.loads(made.model_dump_json())
    for part in field.split("."):
        found = found[int(part) if part.isdigit() else part]
    assert value == found


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("queue.priority=-1", ("--set priority", "must be at least 0", "-1")),
        ("queue.priority=high", ("--set priority", "must be a whole number", "high")),
        (
            'cluster.preemption={"order": []}',
            ("--set preemption.order", "must be a known field, one of ", ""),
        ),
    ],
)
def test_a_value_that_can_not_be_is_told_in_the_same_words_as_a_definition(busy, setting, told):
    """
    The field and the rule in our own words, not the checker's.
    """
    with pytest.raises(Refused) as caught:
        Branch(busy, submitted(busy), changes=Changes(settings=(parse_setting(setting),)))

    error = caught.value
    assert told == (error.field, error.rule[: len(told[1])], error.value or "")


def test_hosts_can_not_be_added_under_a_name_that_is_taken():
    """
    A name means one host in the whole log.
    """
    with pytest.raises(Refused) as caught:
        parse_hosts("1x1", frozenset({"added0001"}))
    assert "--add-hosts" == caught.value.field


@pytest.mark.parametrize(
    "line",
    ["{", '{"time_us": 1}', '{"time_us": 1, "command": "os", "fields": {}}',
     '{"time_us": 1, "command": "KillJob", "fields": {"job": "1"}}'],
)  # fmt: skip
def test_a_bad_line_of_inputs_is_named_by_its_number(tmp_path, line):
    """
    The second line is bad, and only commands that exist are known.
    """
    file = tmp_path / "bad.jsonl"
    file.write_text(f"\n{line}\n")

    with pytest.raises(Refused) as caught:
        read_inputs(file)
    assert caught.value.field.startswith("--events line 2")
    assert caught.value.rule.startswith("must be ")


def test_the_source_is_never_touched(small_log, tmp_path):
    """
    Its data file has the same bytes afterwards, and nothing new lies beside it.
    """
    def content():
        return {path.name: path.read_bytes() for path in small_log.rglob("*")
                if path.is_file() and "lock" not in path.name}  # fmt: skip

    before = content()
    with EventLog.open(small_log, writable=False) as parent:
        made = Branch(parent, 9)
        with EventLog.create(tmp_path / "child", log_id=made.log_id) as child:
            made.run(child)

    assert before == content()


def test_a_job_added_by_a_host_that_joins_later_keeps_host_numbers_apart(busy):
    """
    A host that joins after added ones gets the next number, whatever its number was in the parent.
    """
    joined = busy.where(WorkerJoined)
    changes = Changes(hosts=parse_hosts("1x2", frozenset()))

    child, _ = branched(busy, joined - 1, changes=changes)

    numbers = {one.stream: one.event.host_number for one in child.events
               if isinstance(one.event, WorkerJoined)}  # fmt: skip
    assert {"worker:added0001": 0, "worker:h1": 1} == numbers
    assert job_stream("1") in {one.stream for one in child.events}


def test_a_host_that_a_job_report_brought_back_comes_back_without_the_job():
    """
    That the host was heard again is true in the branch too, although the job never ran there.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(5)
    scenario.command(MarkUnreachable(worker="h1", incarnation=1, silent_us=9), actor="")
    scenario.pass_time(5)
    scenario.finish("A")
    parent = ListLog(scenario.log)
    position = parent.where(JobSubmitted)

    child, _ = branched(parent, position - 1, changes=Changes(dropped=frozenset({position})))

    stamps = [one.time_us for one in child.events if isinstance(one.event, WorkerCameBack)]
    assert [11 * S] == stamps


def test_a_job_whose_kill_is_left_out_runs_for_as_long_as_its_user_guessed():
    """
    How long it would have run nobody knows: the estimate holds, and it is counted as a guess.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    spec = a_job(name="A").spec.model_copy(update={"run_estimate_us": 30 * S})
    scenario.command(SubmitJob(spec=spec))
    scenario.ids["A"] = "1"
    scenario.session()
    scenario.start("A")
    scenario.pass_time(5)
    scenario.kill("A")
    scenario.session()
    scenario.pass_time(1)
    scenario.finish("A", exit_code=143)
    parent = ListLog(scenario.log)
    assert (1, 6) == runs(parent)[1]
    assert all(is_the_parent(parent, place) for place in range(parent.head() + 1))
    changes = Changes(dropped=frozenset({parent.where(JobKillRequested)}))

    for place in (JobSubmitted, JobStarted):
        child, result = branched(parent, parent.where(place), changes=changes)

        assert (1, 30) == runs(child)[1]
        assert 1 == result.run_time_unknown


@pytest.fixture
def signalled():
    """
    Return the log of a job that got two signals, the second of which ended it, and of one that was
    ended by force.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A", "B", "C")
    scenario.session()
    scenario.start("A", "B")
    for number, signal in enumerate((SignalName.USR1, SignalName.INT), 1):
        scenario.pass_time(5)
        scenario.signal("A", signal)
        scenario.session()
        scenario.pass_time(1)
        done = {"worker": "h1", "incarnation": 1, "order_number": number}
        scenario.command(OrderDoneReport(**done, outcome="signalled"), actor="")
    scenario.end_by("A", 2)
    scenario.session()
    scenario.start("C")
    scenario.pass_time(5)
    scenario.kill("B", force=True)
    scenario.session()
    scenario.pass_time(5)
    scenario.finish("C")
    scenario.session()
    return ListLog(scenario.log)


def test_without_a_change_signalled_jobs_go_on_as_they_did(signalled):
    """
    What a signal did to a program is known from the parent: it ended when it did.
    """
    wrong = [place for place in range(signalled.head() + 1) if not is_the_parent(signalled, place)]

    assert [] == wrong


def test_a_program_that_crashed_runs_as_long_in_a_branch():
    """
    A signal that nobody ordered is the program's own end: how long it runs is known.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(5)
    scenario.end_by("A", 11)
    parent = ListLog(scenario.log)

    assert all(is_the_parent(parent, place) for place in range(parent.head() + 1))
    assert (1, 5) == runs(branched(parent, parent.where(JobStarted))[0])[1]


def test_a_signal_of_a_branch_is_carried_out_and_ends_nothing(tmp_path):
    """
    Nobody knows what a program makes of it.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(20)
    scenario.finish("A")
    parent = ListLog(scenario.log)
    file = tmp_path / "more.jsonl"
    fields = {"job_id": "1", "signal": "SIGUSR1"}
    line = {"time_us": 6 * S, "actor": "alice", "command": "SignalJob", "fields": fields}
    file.write_text(json.dumps(line))
    changes = Changes(added=read_inputs(file))

    child, _ = branched(parent, parent.where(JobStarted), changes=changes)

    assert 1 == sum(isinstance(one.event, WorkerOrderDone) for one in child.events)
    assert (1, 20) == runs(child)[1]


@pytest.fixture
def put_back():
    """
    Return the log of a job that is stopped, goes on, is put back to pending and runs again.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A tasks=2", "B tasks=2")
    scenario.session()
    scenario.start("A")
    for command, report in ((StopJob, scenario.suspended), (ResumeJob, scenario.resumed)):
        scenario.pass_time(5)
        scenario.command(command(job_id="1"))
        scenario.session()
        report("A")
    scenario.pass_time(5)
    scenario.command(RequeueJob(job_id="1"))
    scenario.session()
    scenario.pass_time(1)
    scenario.finish("A", exit_code=130)
    scenario.session()
    for name in ("B", "A"):
        scenario.start(name)
        scenario.pass_time(20)
        scenario.finish(name)
        scenario.session()
    return ListLog(scenario.log)


def test_without_a_change_a_job_that_was_put_back_goes_on_as_it_did(put_back):
    """
    Its second attempt is another execution: earlier stops don't count for it.
    """
    wrong = [place for place in range(put_back.head() + 1) if not is_the_parent(put_back, place)]

    assert [] == wrong
    assert {1: (37, 20), 2: (17, 20)} == runs(put_back)


@pytest.mark.parametrize("command", [KillJob, StopJob])
def test_what_is_under_way_where_the_parent_ends_is_carried_out_after_its_end(command):
    """
    An order that nobody had reported on by then isn't told earlier than the parent could have.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    scenario.jobs("A")
    scenario.session()
    scenario.start("A")
    scenario.pass_time(5)
    scenario.command(command(job_id="1"))
    scenario.session()
    scenario.pass_time(5)
    scenario.jobs("B")
    parent = ListLog(scenario.log)

    places = range(parent.head() + 1)
    assert all(is_the_parent(parent, place, is_over=False) for place in places)

    child, _ = branched(parent, 0)
    reports = [one for one in child.read(parent.head() + 1) if one.stream == "job:0000000001"]
    assert [JobFinished if command is KillJob else JobSuspended] == [
        type(one.event) for one in reports
    ]
    assert 1 == sum(isinstance(one.event, WorkerOrderDone) for one in child.events)


def test_windows_that_open_and_close_for_ever_do_not_keep_a_branch_going():
    """
    A job without a known end is stopped and let go on again each day; some time that must be over.
    """
    scenario = Scenario()
    scenario.hosts("h1 slots=2")
    spec = QueueSpec(priority=50, run_windows=parse_windows("8:00-20:00"))
    scenario.now_us = 10 * 3600 * S
    scenario.command(DefineQueue(queue="day", spec=spec))
    scenario.jobs("A queue=day")
    scenario.session()
    scenario.start("A")
    parent = ListLog(scenario.log)

    child, result = branched(parent, parent.head())

    assert 1 == result.without_end
    assert any(isinstance(one.event, JobSuspended) for one in child.events)
    assert check(child, sample_events=1).is_good

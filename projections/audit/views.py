"""
Views over the tables: the questions that people ask most, with their columns described.
"""

from __future__ import annotations

import domain.events  # noqa: F401 - defining the events fills the registry
from domain.event import event_classes
from domain.reasons import TEXTS, ReasonCode
from projections.audit.schema import View

FOREVER = 9223372036854775807  # later than any position

# Type codes of what the core decides; everything else came in from outside.
DECISIONS = tuple(code for code, event in event_classes().items() if event.IS_DECISION)

# Type codes of what a user's command made of itself, with the command in words.
COMMANDS = {
    "job.submitted": "submit job",
    "job.held": "hold job",
    "job.hold_lifted": "lift hold",
    "job.kill_requested": "kill job",
    "job.run_requested": "run job",
    "job.signal_requested": "signal job",
    "job.stop_requested": "stop job",
    "job.resume_requested": "resume job",
    "job.requeue_requested": "requeue job",
    "job.modified": "modify job",
    "job.switched": "switch job",
    "job.moved": "move job",
    "queue.opened": "open queue",
    "queue.closed": "close queue",
    "queue.activated": "activate queue",
    "queue.inactivated": "inactivate queue",
    "worker.joined": "join worker",
    "worker.closed": "close worker",
    "worker.drained": "drain worker",
    "worker.configured": "configure worker",
    "worker.opened": "open worker",
    "scheduler.started": "start scheduler",
    "scheduler.stopped": "stop scheduler",
    "log.archived": "archive log",
    "log.pruned": "prune log",
    **{
        code: f"{verb} {code.partition('.')[0]}"
        for verb, ending in (("define", ".defined"), ("remove", ".removed"))
        for code in event_classes()
        if code.endswith(ending)
    },
}

_ENTITY = """CASE
    WHEN e.stream LIKE 'job:%[%' THEN ltrim(substr(e.stream, 5, 10), '0') || '['
      || ltrim(substr(e.stream, 16, 6), '0') || ']'
    WHEN e.stream LIKE 'job:%' THEN ltrim(substr(e.stream, 5), '0')
    WHEN instr(e.stream, ':') > 0 THEN substr(e.stream, instr(e.stream, ':') + 1)
    ELSE '' END"""
_KIND = (
    "CASE WHEN instr(e.stream, ':') > 0 THEN substr(e.stream, 1, instr(e.stream, ':') - 1) "
    "ELSE e.stream END"
)


def _time(column: str) -> str:
    whole = f"strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000000, 'unixepoch')"
    return f"{whole} || printf('.%06dZ', {column} % 1000000)"


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)


_COMMAND_CASE = (
    "CASE e.type "
    + " ".join(f"WHEN '{code}' THEN '{words}'" for code, words in COMMANDS.items())
    + " END"
)

DECISIONS_VIEW = View(
    "decisions",
    "What the scheduler decided, one row a decision, in the order of the log.",
    (
        ("position", "Place in the log"),
        ("time", "Log time, UTC"),
        ("time_us", "Log time, microseconds UTC"),
        ("session", "Session that decided it"),
        ("decision", "Type code of the event"),
        ("object_kind", "job, queue, session and so on"),
        ("object", "Job id, queue or host; empty for a singleton"),
        ("payload", "What was decided, as JSON"),
    ),
    f"SELECT e.position, {_time('e.time_us')}, e.time_us, e.session, e.type, {_KIND}, {_ENTITY}, "
    f"e.payload\n"
    f"FROM events e WHERE e.type IN ({_listed(DECISIONS)})",
)


def _carried_out(condition: str) -> str:
    """
    Return the query for the commands that were carried out, of events with a condition.
    """
    return f"""SELECT e.position, {_time("e.time_us")}, e.time_us, e.actor, {_COMMAND_CASE},
  {_KIND}, {_ENTITY}, 'done', '', '', '', e.cause
FROM events e WHERE {condition} AND e.type IN ({_listed(tuple(COMMANDS))})"""


# What refused commands were about: commands of the same words are always about the same kind.
_REFUSED_KIND = (
    "CASE WHEN r.subject = '' THEN '' ELSE CASE r.command "
    + " ".join(
        f"WHEN '{words}' THEN '{code.partition('.')[0]}'" for code, words in COMMANDS.items()
    )
    + " ELSE '' END END"
)

COMMANDS_VIEW = View(
    "commands",
    "Who did what: every command that changed something, was refused or denied. What it changed, "
    "old and new, "
    "is in changes at the same position.",
    (
        ("position", "Place in the log"),
        ("time", "Log time, UTC"),
        ("time_us", "Log time, microseconds UTC"),
        ("actor", "Who; empty for the scheduler itself"),
        ("command", "What they asked for"),
        ("object_kind", "job, queue, worker and so on; empty when unknown"),
        ("object", "Job id, queue or host; empty when none"),
        ("outcome", "done, refused or denied"),
        ("field", "Offending field of a refused or denied command"),
        ("rule", "Rule that it broke"),
        ("value", "What was given"),
        ("cause", "Command's own id, empty when none"),
    ),
    # Apart, what users did can be found by the partial index of actors.
    f"""{_carried_out("e.actor <> ''")}
UNION ALL
{_carried_out("e.actor = ''")}
UNION ALL
SELECT r.position, {_time("r.time_us")}, r.time_us, r.actor, r.command, {_REFUSED_KIND},
  r.subject, r.kind, r.field, r.rule, r.value, e.cause
FROM refusals r JOIN events e ON e.position = r.position WHERE r.kind IN ('refused', 'denied')""",
)

_IS_BEHIND = "coalesce(b.blocker, '') NOT IN ('', w.job_id)"
_BEHIND = "'job ' || b.blocker || ' comes first and can''t start yet'"
_IS_HELD = "w.kind IN ('held', 'held by other')"


def _by_holder(user: str, other: str) -> str:
    return f"CASE w.kind WHEN 'held' THEN '{user}' ELSE '{other}' END"


_HELD = _by_holder(TEXTS[ReasonCode.USER_STOP], TEXTS[ReasonCode.ADMIN_STOP])
_HELD_CODE = _by_holder(ReasonCode.USER_STOP, ReasonCode.ADMIN_STOP)
_NEW = "'new job, not yet considered'"


def _case(behind: str, in_set: str, held: str, new: str) -> str:
    """
    Return what a column says by what the job waited for.
    """
    return (
        f"CASE WHEN {_IS_BEHIND} THEN {behind} WHEN w.kind = 'set' THEN {in_set} "
        f"WHEN {_IS_HELD} THEN {held} ELSE {new} END"
    )


PEND_REASONS_VIEW = View(
    "pend_reasons",
    "Why a job waited, as intervals that sum to its whole waiting time. An interval may have no "
    "length: "
    "several things can happen at one moment.",
    (
        ("job_id", "Job"),
        ("from_position", "Position of the event that began it"),
        ("from_us", "Begin"),
        ("to_position", "Position of the event that ended it; NULL while it lasts"),
        ("to_us", "End; NULL while it lasts"),
        ("code", "Code of the main reason"),
        ("main_reason", "The main reason in words"),
        ("reasons", "All reasons in words, grouped, with counts of hosts"),
        ("never", "1 when even the empty cluster couldn't hold the job"),
        ("reason_set", "Reason set, NULL when none applies"),
        (
            "set_position",
            "Position of the reason set's event: with reason_set the key of its reason_details",
        ),
        ("blocker", "Job that held this one back, empty when none did"),
    ),
    # A wait is cut where the blocker of its list changed and, unless the job is behind that
    # blocker, where its reason set changed. Stamps never fall, so the greatest begin and the least
    # end of what overlaps are those of the positions too. One plain join: SQLite must be able to
    # carry the condition on the job inwards.
    f"""SELECT w.job_id,
  max(w.from_position, coalesce(b.from_position, 0), coalesce(s.from_position, 0)),
  max(w.from_us, coalesce(b.from_us, 0), coalesce(s.from_us, 0)),
  nullif(min(coalesce(w.to_position, {FOREVER}), coalesce(b.to_position, {FOREVER}),
    coalesce(s.to_position, {FOREVER})), {FOREVER}),
  nullif(min(coalesce(w.to_us, {FOREVER}), coalesce(b.to_us, {FOREVER}), coalesce(s.to_us,
  {FOREVER})), {FOREVER}),
  {_case("'JOB_BEHIND'", "coalesce(s.main_code, '')", _HELD_CODE, "'JOB_NEW'")},
  {_case(_BEHIND, "coalesce(s.main_text, 'not in this log')", _HELD, _NEW)},
  {_case(_BEHIND, "coalesce(s.summary, 'not in this log')", _HELD, _NEW)},
  {_case("0", "coalesce(s.never, 0)", "0", "0")},
  {_case("NULL", "w.reason_set", "NULL", "NULL")},
  {_case("NULL", "s.from_position", "NULL", "NULL")},
  {_case("b.blocker", "''", "''", "''")}
FROM waits w
LEFT JOIN list_blockers b ON NOT {_IS_HELD}
  AND b.list = CASE WHEN EXISTS (SELECT 1 FROM list_blockers l WHERE l.list = 'queue:' || w.queue)
    THEN 'queue:' || w.queue ELSE 'cluster' END
  AND b.from_position < coalesce(w.to_position, {FOREVER})
  AND coalesce(b.to_position, {FOREVER}) > w.from_position
LEFT JOIN reason_sets s ON w.kind = 'set' AND NOT {_IS_BEHIND} AND s.set_number = w.reason_set
  AND s.from_position < min(coalesce(w.to_position, {FOREVER}), coalesce(b.to_position, {FOREVER}))
  AND coalesce(s.to_position, {FOREVER}) > max(w.from_position, coalesce(b.from_position, 0))""",
)

JOB_TIMES_VIEW = View(
    "job_times",
    "How long each job was in each state, microseconds; what lasts still counts up to the last "
    "event of the log.",
    (
        ("job_id", "Job"),
        ("pend_us", "PEND and WAIT"),
        ("psusp_us", "PSUSP: held"),
        ("run_us", "RUN"),
        ("ususp_us", "USUSP"),
        ("ssusp_us", "SSUSP"),
        ("unkwn_us", "UNKWN"),
        ("total_us", "All of them"),
    ),
    """WITH spans AS (
  SELECT job_id, state, coalesce(to_us, (SELECT max(time_us) FROM (
    SELECT time_us FROM events ORDER BY position DESC LIMIT 1))) - from_us AS us
  FROM job_states WHERE state NOT IN ('DONE', 'EXIT')
)
SELECT job_id,
  sum(CASE WHEN state IN ('PEND', 'WAIT') THEN us ELSE 0 END),
  sum(CASE state WHEN 'PSUSP' THEN us ELSE 0 END),
  sum(CASE state WHEN 'RUN' THEN us ELSE 0 END),
  sum(CASE state WHEN 'USUSP' THEN us ELSE 0 END),
  sum(CASE state WHEN 'SSUSP' THEN us ELSE 0 END),
  sum(CASE state WHEN 'UNKWN' THEN us ELSE 0 END),
  sum(us)
FROM spans GROUP BY job_id""",
)

JOB_FIGURES_VIEW = View(
    "job_figures",
    "Wait, run time and bounded slowdown of jobs that ran and ended, as everywhere else in XCE: "
    "wait = dispatch "
    "- submit, slowdown = max(1, (wait + run) / max(run, 10 s)).",
    (
        ("job_id", "Job"),
        ("user", "User"),
        ("queue", "Queue"),
        ("project", "Project"),
        ("tasks", "Tasks"),
        ("submit_us", "Submission"),
        ("dispatch_us", "Last dispatch"),
        ("finish_us", "End"),
        ("wait_us", "Wait, microseconds"),
        ("run_us", "Run time, microseconds"),
        ("bounded_slowdown_milli", "Bounded slowdown, thousandths, rounded down"),
    ),
    """SELECT job_id, user, queue, project, tasks, submit_us, dispatch_us, finish_us,
  dispatch_us - submit_us, finish_us - dispatch_us,
  max(1000, (finish_us - submit_us) * 1000 / max(finish_us - dispatch_us, 10000000))
FROM jobs WHERE dispatch_us IS NOT NULL AND finish_us IS NOT NULL""",
)

ALLOCATION_HOSTS_VIEW = View(
    "allocation_hosts",
    "Allocations host by host: who held what where, and when.",
    (
        ("job_id", "Job"),
        ("attempt", "Execution"),
        ("host", "Host"),
        ("host_number", "Its number"),
        ("tasks", "Tasks there"),
        ("amounts", "Amounts reserved there, JSON object of resource to thousandths"),
        ("from_us", "Since when"),
        ("to_us", "Until when; NULL while it is held"),
    ),
    """SELECT a.job_id, a.attempt, h.host, h.host_number, a.tasks_per_host, a.amounts,
  a.from_us, a.to_us
FROM allocations a JOIN hosts h
  ON h.host_number BETWEEN a.first_number AND a.first_number + a.host_count - 1""",
)

REASON_HOSTS_VIEW = View(
    "reason_hosts",
    "Reasons host by host: what each host was short of for a reason set.",
    (
        ("set_number", "Reason set"),
        ("from_position", "Position of the reason set's event"),
        ("code", "Code of the reason"),
        ("text", "The reason in words"),
        ("resource", "Resource"),
        ("host", "Host"),
        ("host_number", "Its number"),
        ("requested_milli", "Smallest amount that was tried there, thousandths"),
        ("available_milli", "What it had available, thousandths"),
    ),
    """SELECT d.set_number, d.from_position, d.code, d.text, d.resource, h.host, h.host_number,
  d.requested_milli,
  json_extract(span.value, '$[2]')
FROM reason_details d JOIN json_each(d.hosts) span
JOIN hosts h ON h.host_number BETWEEN json_extract(span.value, '$[0]')
  AND json_extract(span.value, '$[0]') + json_extract(span.value, '$[1]') - 1""",
)

VIEWS = (
    DECISIONS_VIEW,
    COMMANDS_VIEW,
    PEND_REASONS_VIEW,
    JOB_TIMES_VIEW,
    JOB_FIGURES_VIEW,
    ALLOCATION_HOSTS_VIEW,
    REASON_HOSTS_VIEW,
)

"""
The tables explained: metadata for Datasette with canned queries, and a page of documentation.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from projections.audit.schema import tables
from projections.audit.views import VIEWS

TITLE = "XCE audit: what happened on the cluster, and why"
DESCRIPTION = (
    "A read model of one event log, made anew from it at any time. Times are microseconds UTC, "
    "amounts thousandths "
    "of the base unit (memory in KiB), positions are places in the log."
)


class Canned(NamedTuple):
    """
    Hold one question that people ask often, as SQL; words after a colon are parameters.
    """

    name: str
    title: str
    description: str
    sql: str


CANNED = (
    Canned(
        "why_did_it_wait",
        "Why did a job wait?",
        "All reasons of one job over time; the seconds sum to its whole waiting time.",
        "SELECT from_position, from_us, (coalesce(to_us, (SELECT max(time_us) FROM events)) - "
        "from_us) / 1000000.0 "
        "AS seconds, code, reasons, blocker FROM pend_reasons WHERE job_id = :job_id ORDER BY "
        "from_position",
    ),
    Canned(
        "story_of_a_job",
        "What happened to a job?",
        "Every event of a job's own stream, in order.",
        "SELECT e.position, strftime('%Y-%m-%d %H:%M:%S', e.time_us / 1000000, 'unixepoch') AS "
        "time, e.type, e.actor, "
        "e.payload FROM jobs j JOIN events e ON e.stream = printf('job:%010d', j.number) "
        "|| CASE j.array_index WHEN 0 THEN '' ELSE printf('[%06d]', j.array_index) END "
        "WHERE j.job_id = :job_id ORDER BY e.position",
    ),
    Canned(
        "who_did_what",
        "Who did what?",
        "Commands of one user, with what they changed, old and new.",
        "SELECT c.position, c.time, c.command, c.object, c.outcome, c.rule, h.field, h.old, h.new "
        "FROM commands c "
        "LEFT JOIN changes h ON h.position = c.position WHERE c.actor = :actor ORDER BY c.position",
    ),
    Canned(
        "refused",
        "What was refused or denied?",
        "Every command that was refused, access that was denied and report that was ignored, "
        "latest first.",
        "SELECT * FROM refusals ORDER BY position DESC",
    ),
    Canned(
        "changes_of_settings",
        "Which settings changed?",
        "Every changed field of the cluster, queues, limits and hosts, old and new, latest first.",
        "SELECT * FROM changes WHERE old IS NOT NULL ORDER BY position DESC",
    ),
    Canned(
        "waits_by_queue",
        "How long did jobs wait, by queue?",
        "Jobs that ran and ended.",
        "SELECT queue, count(*) AS jobs, avg(wait_us) / 1000000.0 AS mean_wait_s, max(wait_us) / "
        "1000000.0 AS "
        "longest_wait_s, avg(bounded_slowdown_milli) / 1000.0 AS mean_bounded_slowdown FROM "
        "job_figures "
        "GROUP BY queue ORDER BY queue",
    ),
    Canned(
        "waits_by_user",
        "How long did jobs wait, by user?",
        "Jobs that ran and ended, the longest mean wait first.",
        "SELECT user, count(*) AS jobs, avg(wait_us) / 1000000.0 AS mean_wait_s, sum(run_us * "
        "tasks) / 3600e6 AS "
        "slot_hours FROM job_figures GROUP BY user ORDER BY mean_wait_s DESC",
    ),
    Canned(
        "what_ran_where",
        "What ran on a host, and when?",
        "Allocations of one host, latest first.",
        "SELECT * FROM allocation_hosts WHERE host = :host ORDER BY from_us DESC",
    ),
    Canned(
        "state_of_hosts",
        "When was a host not available?",
        "Every interval in which a host was closed, unreachable or gone.",
        "SELECT host, status, from_us, (coalesce(to_us, (SELECT max(time_us) FROM events)) - "
        "from_us) / 1000000.0 AS "
        "seconds, why, actor FROM host_states WHERE status <> 'ok' ORDER BY from_position DESC",
    ),
    Canned(
        "never",
        "Which jobs can never start?",
        "Jobs waiting now for something that even the empty cluster couldn't give.",
        "SELECT w.job_id, j.user, s.summary FROM waits w JOIN reason_sets s ON s.set_number = "
        "w.reason_set "
        "AND s.to_position IS NULL JOIN jobs j ON j.job_id = w.job_id WHERE w.to_position IS NULL "
        "AND s.never = 1",
    ),
    Canned(
        "search",
        "Find jobs by words",
        "Full-text search over names, commands and users of jobs.",
        "SELECT j.job_id, j.user, j.name, j.state FROM jobs_fts f JOIN jobs j ON j.job_key = "
        "f.rowid "
        "WHERE jobs_fts MATCH :words ORDER BY j.job_key",
    ),
    Canned(
        "queue_length",
        "How many jobs waited at a moment?",
        "Waiting jobs by queue at a time in microseconds UTC.",
        "SELECT queue, kind, count(*) AS jobs FROM waits WHERE from_us <= :time_us "
        "AND (to_us IS NULL OR to_us > :time_us) GROUP BY queue, kind",
    ),
)


def names() -> list[str]:
    """
    Return the names of all tables and views.
    """
    return [*tables(), *(view.name for view in VIEWS)]


def described(name: str) -> tuple[str, list[tuple[str, str, str]]]:
    """
    Return what one row of a table or view is, and name, type and meaning of each column.
    """
    for view in VIEWS:
        if view.name == name:
            return view.doc, [(column, "", doc) for column, doc in view.columns]
    table = tables()[name]
    return table.doc, [
        (one.name, one.kind + (" or NULL" if one.is_optional else ""), one.doc)
        for one in table.columns
    ]


def metadata(database: str) -> dict[str, Any]:
    """
    Return the metadata for Datasette of a database of a name (its file's, without the ending).
    """
    described: dict[str, Any] = {
        table.name: {
            "title": table.name,
            "description": table.doc,
            "columns": {column.name: column.doc for column in table.columns},
        }
        for table in tables().values()
    }
    described |= {
        view.name: {"title": view.name, "description": view.doc, "columns": dict(view.columns)}
        for view in VIEWS
    }
    described["tracking"] = {"description": "How far the tables have got in the log."}
    described["about"] = {
        "description": "Which log the tables are made from, and by which version."
    }
    queries = {
        one.name: {"title": one.title, "description": one.description, "sql": one.sql}
        for one in CANNED
    }
    return {
        "title": TITLE,
        "description": DESCRIPTION,
        "databases": {database: {"tables": described, "queries": queries}},
    }


def metadata_json(database: str) -> str:
    """
    Return the metadata as the text of a file.
    """
    return json.dumps(metadata(database), indent=2) + "\n"


def documentation() -> str:
    """
    Return a page of documentation in Markdown: every table and view, column by column.
    """
    lines = [
        "# Tables of the audit database",
        "",
        "Made by `xce audit tables --markdown` from projections/audit; don't edit it by hand.",
        "",
        DESCRIPTION,
        "",
        "Open it with any SQLite tool, `xce audit sql`, or Datasette:",
        "",
        "    datasette audit.db --metadata audit.db.metadata.json",
        "",
        "A column is never NULL unless its type says so.",
        "",
    ]
    for table in tables().values():
        lines += [
            f"## {table.name}",
            "",
            table.doc,
            "",
            f"Key: {', '.join(table.key)}.",
            "",
            "| column | type | says |",
            "|---|---|---|",
        ]
        for column in table.columns:
            kind = column.kind + (" or NULL" if column.is_optional else "")
            lines.append(f"| {column.name} | {kind} | {column.doc} |")
        lines.append("")
    for view in VIEWS:
        lines += [f"## {view.name} (view)", "", view.doc, "", "| column | says |", "|---|---|"]
        lines += [f"| {name} | {doc} |" for name, doc in view.columns]
        lines.append("")
    lines += ["## Questions", ""]
    for one in CANNED:
        lines += [f"### {one.title}", "", one.description, "", "```sql", one.sql, "```", ""]
    return "\n".join(lines)

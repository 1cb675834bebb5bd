"""
Which fields name people and what they do, and which don't: every text of an event, a definition or
a record is in one of the two tables, or a test fails.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """
    Name what a text is, and so what becomes of it.

    Users and groups are one kind: lists name both. INHERITED is what the list around it says.
    """

    PERSON = "person"
    PROJECT = "project"
    LIMIT = "limit"
    PROFILE = "profile"
    JOB = "job"
    COMMAND = "command"
    PATH = "path"
    KEY = "key"
    STREAM = "stream"
    """A stream's name, which ends in an entity's."""
    MIXED = "mixed"
    """Words of the program with names in them."""
    WORDS = "words"
    """A code of the program is kept, what a person or a program wrote isn't."""
    DROPPED = "dropped"
    """Nothing is left of it: no decision looks at it."""
    INHERITED = "inherited"


K = Kind

RULES: Final[dict[tuple[str, str], Kind]] = {
    ("ClusterSettings", "default_project"): K.PROJECT,
    ("CommandRefused", "subject"): K.WORDS,
    ("CommandRefused", "rule"): K.WORDS,
    ("CommandRefused", "value"): K.DROPPED,
    ("AccessDenied", "subject"): K.WORDS,
    ("AccessDenied", "rule"): K.WORDS,
    ("AccessDenied", "value"): K.DROPPED,
    ("Condition", "message"): K.DROPPED,
    ("Document", "text"): K.MIXED,
    ("Fairshare", "shares"): K.PERSON,
    ("FileTransfer", "local"): K.PATH,
    ("FileTransfer", "remote"): K.PATH,
    ("GroupSpec", "members"): K.PERSON,
    ("GroupSpec", "default_project"): K.PROJECT,
    ("GroupSpec", "description"): K.DROPPED,
    ("HostSettings", "description"): K.DROPPED,
    ("JobCouldNotStart", "why"): K.WORDS,
    ("JobFinished", "why"): K.WORDS,
    ("JobRecord", "why"): K.WORDS,
    ("JobRecord", "key"): K.KEY,
    ("JobRecord", "kill_actor"): K.PERSON,
    ("JobRecord", "stop_actor"): K.PERSON,
    ("JobRef", "name"): K.JOB,
    ("JobSpec", "user"): K.PERSON,
    ("JobSpec", "group"): K.PERSON,
    ("JobSpec", "project"): K.PROJECT,
    ("JobSpec", "profile"): K.PROFILE,
    ("JobSpec", "name"): K.JOB,
    ("JobSpec", "dependency_text"): K.DROPPED,
    ("JobSubmitted", "key"): K.KEY,
    ("JobSubmitted", "digest"): K.KEY,
    ("KeyRecord", "digest"): K.KEY,
    ("LimitCharge", "limit"): K.MIXED,
    ("LimitCharge", "budget"): K.MIXED,
    ("LimitSpec", "users"): K.PERSON,
    ("LimitSpec", "groups"): K.PERSON,
    ("LimitSpec", "projects"): K.PROJECT,
    ("LimitSpec", "profiles"): K.PROFILE,
    ("LimitSpec", "description"): K.DROPPED,
    ("ListedName", "name"): K.INHERITED,
    ("LogBranched", "changes"): K.DROPPED,
    ("PendReason", "detail"): K.MIXED,
    ("ProfileSpec", "description"): K.DROPPED,
    ("ProfileSpec", "env"): K.DROPPED,
    ("ProfileSpec", "pre_exec"): K.COMMAND,
    ("ProfileSpec", "post_exec"): K.COMMAND,
    ("Program", "argv"): K.COMMAND,
    ("Program", "shell"): K.COMMAND,
    ("Program", "env"): K.DROPPED,
    ("Program", "cwd"): K.PATH,
    ("Program", "stdin"): K.PATH,
    ("Program", "stdout"): K.PATH,
    ("Program", "stderr"): K.PATH,
    ("Program", "pre_exec"): K.COMMAND,
    ("Program", "post_exec"): K.COMMAND,
    ("ProjectSpec", "users"): K.PERSON,
    ("ProjectSpec", "groups"): K.PERSON,
    ("ProjectSpec", "description"): K.DROPPED,
    ("QueueSpec", "users"): K.PERSON,
    ("QueueSpec", "project"): K.PROJECT,
    ("QueueSpec", "description"): K.DROPPED,
    ("QueueSpec", "pre_exec"): K.COMMAND,
    ("QueueSpec", "post_exec"): K.COMMAND,
    ("ReasonSet", "fingerprint"): K.MIXED,
    ("ReasonSetChanged", "fingerprint"): K.MIXED,
    ("ResourceDescriptor", "description"): K.DROPPED,
    ("SchedulerStarted", "holder"): K.DROPPED,
    ("SchedulerStarted", "boot_id"): K.DROPPED,
    ("SchedulerStopped", "why"): K.WORDS,
    ("ShareNode", "name"): K.INHERITED,
    ("UserSpec", "description"): K.DROPPED,
    ("WantedSignal", "by"): K.PERSON,
    ("WorkerClosed", "why"): K.WORDS,
    ("WorkerDrained", "why"): K.WORDS,
    ("WorkerOrderDone", "outcome"): K.WORDS,
    ("WorkerRecord", "closed_why"): K.WORDS,
}
"""Class and field -> what it is; a list's kind is that of every name in it."""

KEYS: Final[dict[tuple[str, str], Kind]] = {
    ("StoredState", "versions"): K.STREAM,
    ("StoredState", "users"): K.PERSON,
    ("StoredState", "groups"): K.PERSON,
    ("StoredState", "projects"): K.PROJECT,
    ("StoredState", "limits"): K.LIMIT,
    ("StoredState", "profiles"): K.PROFILE,
    ("StoredState", "keys"): K.KEY,
    ("StoredState", "documents"): K.MIXED,
}
"""The same for the keys of mappings."""

OPEN: Final[dict[str, str]] = {
    "AccessDenied": "action field",
    "Allocation": "allocator",
    "Amount": "resource",
    "ArrayRecord": "elements",
    "Attribute": "name value",
    "BackfillReservation": "policy",
    "ClusterSettings": "name default_queue picker allocators",
    "CommandRefused": "command field",
    "Compound": "same",
    "Defined": "name",
    "EnvironmentVariable": "name value",
    "Fairshare": "accounts_of",
    "HostChoice": "host",
    "HostTasks": "host",
    "HostResource": "name",
    "InstanceUnit": "name model topology",
    "Instances": "resource units",
    "JobDispatched": "ahead_of",
    "JobEnded": "why",
    "JobKillOrdered": "worker why signals preemptor",
    "JobPreemptionPlanned": "victims",
    "JobRecord": "stream fresh requeue_why spared_from preemptor actual ahead_of suspend_why",
    "JobRequeued": "why",
    "JobResumeOrdered": "worker",
    "JobSpec": "queue resreq submit_type submit_model",
    "JobSignalOrdered": "worker",
    "JobSuspendOrdered": "worker why signal preemptor",
    "JobSwitched": "queue",
    "JobUsage": "job_id",
    "KeyRecord": "stream",
    "KindCount": "kind",
    "LimitAmount": "resource",
    "LimitCharge": "resource",
    "ListHeldBack": "blocker",
    "LogArchived": "digest file sha256",
    "LoadThreshold": "index",
    "LogBranched": "parent_log_id parent_digest",
    "LogPruned": "digest",
    "Name": "name unit",
    "Number": "unit base",
    "OrderKey": "name",
    "OrderRecord": "stream signal kind why signals",
    "PendReason": "resource",
    "PluginVersion": "name",
    "Preemption": "resources",
    "Primary": "same",
    "ProfileSpec": "resreq",
    "QueueRecord": "name",
    "QueueSpec": "picker resreq stop_condition resume_condition",
    "ReasonSet": "proved_by",
    "ReasonSetChanged": "proved_by",
    "ReportIgnored": "report worker job_id why",
    "ReservationRange": "resource",
    "ResourceDescriptor": "name unit",
    "RusageTerm": "resource",
    "SchedulerStarted": "code_version",
    "SharedAmount": "resource",
    "SharedTotal": "hosts",
    "StoredState": "workers resources blockers blocker jobs queues",
    "Text": "name value",
    "Windows": "zone",
    "WorkerRecord": "name load",
}
"""Hosts, queues, resources, requirements, job ids and the program's own words stay as they are."""

"""The tables, their checks and their indexes: the database repeats the invariants (section 10)."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    literal_column,
    text,
)

from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import Event
from latchwork.store.column_types import BigId, UtcTime, Word
from latchwork.views import FAILED_ENDS

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

State: Word[JobState] = Word(JobState)


def _facts_of_states() -> str:
    """What a row holds in each state, as one CASE: separate CHECKs tripled an update on SQLite.

    Leased has an owner and an expiry, the terminal states have a time, Awaiting Parent has a latch,
    Cancelled has a cause, and only a Leased job can have an unanswered cancel.
    """
    cases = []
    for state in JobState:
        leased = "NOT NULL" if state is JobState.LEASED else "NULL"
        ended = "NOT NULL" if state.terminal else "NULL"
        latch = "> 0" if state is JobState.AWAITING_PARENT else "= 0"
        facts = [f"owner IS {leased}", f"lease_expires_at IS {leased}"]
        facts += [f"terminal_at IS {ended}", f"parents_remaining {latch}"]
        if state is not JobState.LEASED:
            facts.append("NOT cancel_pending")
        if state is JobState.CANCELLED:
            facts.append("cause_code IS NOT NULL")
        cases.append(f"WHEN '{state.value}' THEN {' AND '.join(facts)}")
    return f"CASE state {' '.join(cases)} ELSE false END"


jobs = Table(
    "latchwork_jobs",
    metadata,
    # The enqueue number: rises in enqueue order, breaks ties in claims, orders locks and log rows.
    Column("sequence", BigId, primary_key=True, autoincrement=True),
    Column("id", Uuid, nullable=False, unique=True),
    Column("wire_name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("tags", Text, nullable=False, server_default="[]"),
    Column("retry_policy", Text, nullable=False),
    Column("state", State, nullable=False),
    # When the job entered its state: the time of its last log row.
    Column("state_since", UtcTime, nullable=False),
    Column("next_ordinal", Integer, nullable=False, server_default="1"),
    Column("enqueued_at", UtcTime, nullable=False),
    Column("due_at", UtcTime, nullable=False),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("claim_number", Integer, nullable=False, server_default="0"),
    Column("owner", Text),
    Column("lease_expires_at", UtcTime),
    # Lease lapses in a row: a job with two or more is a suspect (section 4, Poison).
    Column("lapses", Integer, nullable=False, server_default="0"),
    Column("terminal_at", UtcTime),
    Column("mode", Word(DependencyMode), nullable=False, server_default="on_success"),
    Column("parents_remaining", Integer, nullable=False, server_default="0"),
    Column("cancel_pending", Boolean, nullable=False, server_default=text("false")),
    Column("cancel_requested_at", UtcTime),
    Column("cancel_requested_by", Text),
    Column("cancel_delivered_at", UtcTime),
    Column("cause_code", Text),
    Column("cause_type", Text),
    Column("cause_text", Text),
    # For a cascaded cancel: the direct parent that ended otherwise, its state, and the root job.
    Column("cause_parent_id", Uuid),
    Column("cause_parent_state", State),
    Column("cause_root_id", Uuid),
    # The last accepted outcome, so that an answer lost after the commit is recognised.
    Column("applied_claim", Integer),
    Column("applied_worker", Text),
    Column("applied_outcome", State),
    Column("workflow_id", Uuid, ForeignKey("latchwork_workflows.id")),
    Column("step", Text),
    # Which failures are of one kind; set by a sweep after the end, cleared with the cause.
    Column("cause_group", Text),
    # The W3C traceparent of the enqueuer, where tracing is on.
    Column("trace_context", Text),
    CheckConstraint(_facts_of_states(), name="state_has_its_facts"),
    CheckConstraint("attempt >= 0 AND claim_number >= attempt", name="attempt_counts_claims"),
    sqlite_autoincrement=True,
)
# The claim's index: due work of one queue in claim order, and nothing else.
Index(
    "ix_latchwork_jobs_due",
    jobs.c.queue, jobs.c.due_at, jobs.c.sequence,
    postgresql_where=text("state = 'scheduled'"), sqlite_where=text("state = 'scheduled'"),
)  # fmt: skip
Index(
    "ix_latchwork_jobs_leased",
    jobs.c.lease_expires_at,
    postgresql_where=text("state = 'leased'"), sqlite_where=text("state = 'leased'"),
)  # fmt: skip
Index("ix_latchwork_jobs_state", jobs.c.state, jobs.c.sequence)
Index("ix_latchwork_jobs_wire_name", jobs.c.wire_name, jobs.c.sequence)
Index(
    "ix_latchwork_jobs_workflow",
    jobs.c.workflow_id, jobs.c.sequence,
    postgresql_where=text("workflow_id IS NOT NULL"), sqlite_where=text("workflow_id IS NOT NULL"),
)  # fmt: skip

Index(
    "uq_latchwork_jobs_workflow_step",
    jobs.c.workflow_id, jobs.c.step,
    unique=True,
    postgresql_where=text("workflow_id IS NOT NULL"), sqlite_where=text("workflow_id IS NOT NULL"),
)  # fmt: skip
# A workflow's status is derived from how many of its members are in each state.
Index(
    "ix_latchwork_jobs_workflow_state",
    jobs.c.workflow_id, jobs.c.state,
    postgresql_where=text("workflow_id IS NOT NULL"), sqlite_where=text("workflow_id IS NOT NULL"),
)  # fmt: skip
# What the purge looks for.
Index(
    "ix_latchwork_jobs_ended",
    jobs.c.terminal_at, jobs.c.sequence,
    postgresql_where=text("terminal_at IS NOT NULL"), sqlite_where=text("terminal_at IS NOT NULL"),
)  # fmt: skip
_FAILED = "(state = 'dead_lettered' OR state = 'quarantined')"
Index(
    "ix_latchwork_jobs_cause_group",
    jobs.c.cause_group, jobs.c.sequence,
    postgresql_where=text(f"cause_group IS NOT NULL AND {_FAILED}"),
    sqlite_where=text(f"cause_group IS NOT NULL AND {_FAILED}"),
)  # fmt: skip
Index(
    "ix_latchwork_jobs_ungrouped",
    jobs.c.sequence,
    postgresql_where=text(f"cause_group IS NULL AND {_FAILED}"),
    sqlite_where=text(f"cause_group IS NULL AND {_FAILED}"),
)  # fmt: skip

outputs = Table(
    "latchwork_outputs",
    metadata,
    Column("job_sequence", BigId, ForeignKey(jobs.c.sequence, ondelete="CASCADE"),
           primary_key=True, autoincrement=False),
    Column("output", Text, nullable=False),
)  # fmt: skip

job_tags = Table(
    "latchwork_job_tags",
    metadata,
    Column("job_sequence", BigId, ForeignKey(jobs.c.sequence, ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    # Empty for a plain label.
    Column("value", Text, nullable=False, server_default=""),
    PrimaryKeyConstraint("job_sequence", "key", "value"),
)
Index("ix_latchwork_job_tags_find", job_tags.c.key, job_tags.c.value, job_tags.c.job_sequence)

# One row per parent and child, for ever; open while the parent has not settled it.
edges = Table(
    "latchwork_edges",
    metadata,
    Column(
        "child_sequence", BigId, ForeignKey(jobs.c.sequence, ondelete="CASCADE"), nullable=False
    ),
    Column("parent_sequence", BigId, ForeignKey(jobs.c.sequence), nullable=False),
    Column("is_open", Boolean, nullable=False),
    PrimaryKeyConstraint("child_sequence", "parent_sequence"),
    CheckConstraint("parent_sequence < child_sequence", name="child_after_parent"),
)
Index("ix_latchwork_edges_parent", edges.c.parent_sequence, edges.c.is_open)

transitions = Table(
    "latchwork_transitions",
    metadata,
    Column("position", BigId, primary_key=True, autoincrement=True),
    Column("job_sequence", BigId, nullable=False),
    Column("job_id", Uuid, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("at", UtcTime, nullable=False),
    Column("state", State, nullable=False),
    Column("previous_state", State),
    # What moved the job: of two edges between the same states, this says which one it was.
    Column("event", Word(Event), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("queue", Text, nullable=False),
    Column("wire_name", Text, nullable=False),
    # Who held the lease that this row begins or ends.
    Column("worker", Text),
    # When a Scheduled row becomes due.
    Column("due_at", UtcTime),
    Column("failure_detail", Text),
    UniqueConstraint("job_sequence", "ordinal"),
    sqlite_autoincrement=True,
)

# Attempts that ended without success, for the log's "failing only": few rows are in it.
# Written without IN, for which SQLite would build a list at every insert.
NOT_FAILED = [state for state in JobState if state.terminal and state not in FAILED_ENDS]
FAILING = text(
    " AND ".join(["previous_state = 'leased'", *(f"state <> '{s.value}'" for s in NOT_FAILED)])
)
Index(
    "ix_latchwork_transitions_failing",
    transitions.c.position,
    postgresql_where=FAILING, sqlite_where=FAILING,
)  # fmt: skip

queues = Table(
    "latchwork_queues",
    metadata,
    Column("name", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
    Column("paused_at", UtcTime),
    Column("paused_by", Text),
    Column("concurrency_limit", Integer),
    CheckConstraint("concurrency_limit IS NULL OR concurrency_limit >= 1", name="limit_positive"),
    CheckConstraint("(paused_at IS NULL) = (paused_by IS NULL)", name="paused_by_somebody"),
)

wire_names = Table(
    "latchwork_wire_names",
    metadata,
    Column("name", Text, primary_key=True),
    Column("created_at", UtcTime, nullable=False),
)

workflows = Table(
    "latchwork_workflows",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("input", Text),
    Column("restarted_from", Uuid),
)
Index("ix_latchwork_workflows_name", workflows.c.name, workflows.c.id)
Index(
    "ix_latchwork_workflows_restarted_from",
    workflows.c.restarted_from,
    postgresql_where=text("restarted_from IS NOT NULL"),
    sqlite_where=text("restarted_from IS NOT NULL"),
)

nodes = Table(
    "latchwork_nodes",
    metadata,
    Column("worker_id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("version", Text, nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime, nullable=False),
    Column("heartbeat_seconds", Float, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("queues", Text, nullable=False),
    Column("wire_names", Text, nullable=False),
    Column("draining", Boolean, nullable=False, server_default=text("false")),
    Column("stopped_at", UtcTime),
)

# Small rows of one batch each, folded by a sweep; sums over them are the exact counts.
counter_entries = Table(
    "latchwork_counter_entries",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("minute", UtcTime, nullable=False),
    Column("queue", Text, nullable=False),
    Column("wire_name", Text, nullable=False),
    Column("from_state", State),
    Column("to_state", State),
    Column("count", BigId, nullable=False),
    # Total time the moved jobs had spent in from_state, and how it spreads over powers of two.
    Column("seconds", Float, nullable=False),
    Column("buckets", Text, nullable=False),
    sqlite_autoincrement=True,
)

counter_totals = Table(
    "latchwork_counter_totals",
    metadata,
    Column("queue", Text, nullable=False),
    Column("state", State, nullable=False),
    Column("count", BigId, nullable=False),
    PrimaryKeyConstraint("queue", "state"),
)

counter_periods = Table(
    "latchwork_counter_periods",
    metadata,
    # 'minute' (kept 2 hours) or 'hour' (kept 8 days).
    Column("period", Text, nullable=False),
    Column("starts_at", UtcTime, nullable=False),
    Column("queue", Text, nullable=False),
    Column("wire_name", Text, nullable=False),
    # Empty where there is none: a birth has no from, a purge no to.
    Column("from_state", Text, nullable=False),
    Column("to_state", Text, nullable=False),
    Column("count", BigId, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("buckets", Text, nullable=False),
    PrimaryKeyConstraint("period", "starts_at", "wire_name", "queue", "from_state", "to_state"),
)

audit = Table(
    "latchwork_audit",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("at", UtcTime, nullable=False),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    # What was acted on: 'job', 'queue', 'workflow', ... and its name or id.
    Column("subject_kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default="{}"),
    # The client's id of the action: a repeat after a lost answer finds its own row.
    Column("request_id", Uuid, unique=True),
    sqlite_autoincrement=True,
)
Index("ix_latchwork_audit_subject", audit.c.subject_kind, audit.c.subject, audit.c.id)

# Facts about the database itself: the history policy and since when.
facts = Table(
    "latchwork_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Column("since", UtcTime, nullable=False),
)


def in_state(state: JobState) -> ColumnElement[bool]:
    """``jobs.state`` is ``state``, written out so that partial indexes are recognised."""
    return jobs.c.state == literal_column(f"'{state.value}'", State)

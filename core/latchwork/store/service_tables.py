"""The tables beside the jobs: schedules, observers, bulk operations, failure groups."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)

from latchwork.store.column_types import BigId, UtcTime
from latchwork.store.schema import metadata

__all__ = [
    "bulk_members",
    "bulk_operations",
    "deliveries",
    "failure_groups",
    "failure_hours",
    "metadata",
    "observers",
    "schedule_ticks",
    "schedules",
]

schedules = Table(
    "latchwork_schedules",
    metadata,
    Column("id", Text, primary_key=True),
    # What each tick enqueues.
    Column("wire_name", Text, nullable=False),
    Column("queue", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("tags", Text, nullable=False, server_default="[]"),
    Column("retry_policy", Text, nullable=False),
    Column("cron", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("catch_up", Text, nullable=False),
    Column("may_overlap", Boolean, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("updated_at", UtcTime, nullable=False),
    # Every tick up to here has been decided; an upsert keeps it.
    Column("cursor_at", UtcTime, nullable=False),
    # Null when the expression has no further tick.
    Column("next_tick_at", UtcTime),
    # The job of the last tick: the one a next tick must not overlap.
    Column("last_job_id", Uuid),
)
Index("ix_latchwork_schedules_next_tick", schedules.c.next_tick_at)

# One row per decided tick: what was minted, and what was left out and why.
schedule_ticks = Table(
    "latchwork_schedule_ticks",
    metadata,
    Column("schedule_id", Text, ForeignKey(schedules.c.id, ondelete="CASCADE"), nullable=False),
    Column("tick_at", UtcTime, nullable=False),
    Column("decided_at", UtcTime, nullable=False),
    Column("outcome", Text, nullable=False),
    # How many ticks this row stands for: those missed in one outage share a row.
    Column("count", Integer, nullable=False, server_default="1"),
    Column("job_id", Uuid),
    PrimaryKeyConstraint("schedule_id", "tick_at"),
)
Index("ix_latchwork_schedule_ticks_job", schedule_ticks.c.job_id)
Index("ix_latchwork_schedule_ticks_decided", schedule_ticks.c.decided_at)

observers = Table(
    "latchwork_observers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("states", Text, nullable=False),
    Column("wire_name", Text),
    Column("queue", Text),
    Column("registered_at", UtcTime, nullable=False),
    # When a node last registered it: after 7 days without, it is no longer active (section 7).
    Column("last_seen_at", UtcTime, nullable=False),
    # The token of its place in the log, and the position below which it has passed everything.
    Column("token", Text, nullable=False),
    Column("passed_position", BigId, nullable=False),
    Column("owner", Text),
    Column("lease_expires_at", UtcTime),
    Column("delivered", BigId, nullable=False, server_default="0"),
    Column("skipped", BigId, nullable=False, server_default="0"),
    Column("last_delivered_at", UtcTime),
    Column("last_error", Text),
    Column("last_error_at", UtcTime),
    Column("retired_at", UtcTime),
    Column("retired_by", Text),
    CheckConstraint("(owner IS NULL) = (lease_expires_at IS NULL)", name="lease_is_whole"),
    CheckConstraint("(retired_at IS NULL) = (retired_by IS NULL)", name="retired_by_somebody"),
)

# Rows an observer has taken from the log and not delivered yet, or given up: each with its copy.
deliveries = Table(
    "latchwork_deliveries",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("observer", Text, ForeignKey(observers.c.name, ondelete="CASCADE"), nullable=False),
    Column("position", BigId, nullable=False),
    Column("job_sequence", BigId, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("transition", Text, nullable=False),
    Column("taken_at", UtcTime, nullable=False),
    # Calls that began, and calls that failed: a start that never ended killed its process.
    Column("starts", Integer, nullable=False, server_default="0"),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("next_try_at", UtcTime, nullable=False),
    Column("error", Text),
    Column("dead_at", UtcTime),
    UniqueConstraint("observer", "position"),
    sqlite_autoincrement=True,
)
Index("ix_latchwork_deliveries_job", deliveries.c.observer, deliveries.c.job_sequence,
      deliveries.c.ordinal)  # fmt: skip
Index(
    "ix_latchwork_deliveries_next",
    deliveries.c.observer, deliveries.c.next_try_at, deliveries.c.id,
    postgresql_where=text("dead_at IS NULL"), sqlite_where=text("dead_at IS NULL"),
)  # fmt: skip
Index(
    "ix_latchwork_deliveries_dead",
    deliveries.c.observer, deliveries.c.id,
    postgresql_where=text("dead_at IS NOT NULL"), sqlite_where=text("dead_at IS NOT NULL"),
)  # fmt: skip

# One requeue or cancel of many jobs, worked off in small transactions.
bulk_operations = Table(
    "latchwork_bulk_operations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("action", Text, nullable=False),
    Column("actor", Text, nullable=False),
    # Which jobs, in words a person reads and as the filter that found them.
    Column("criteria", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    # Null while the members are still being listed; then how many there are.
    Column("total", BigId),
    Column("done", BigId, nullable=False, server_default="0"),
    Column("skipped", BigId, nullable=False, server_default="0"),
    # How often each answer was given, as JSON: the reasons, without counting the members.
    Column("outcomes", Text, nullable=False, server_default="{}"),
    # Members beyond this number wait until the operator lets the rest follow: the canary first.
    Column("allowed", BigId),
    # The last enqueue number that was listed.
    Column("listed_sequence", BigId, nullable=False),
    Column("owner", Text),
    Column("lease_expires_at", UtcTime),
    Column("finished_at", UtcTime),
    Column("stopped_by", Text),
)
bulk_members = Table(
    "latchwork_bulk_members",
    metadata,
    Column("operation_id", Uuid, ForeignKey(bulk_operations.c.id, ondelete="CASCADE"),
           nullable=False),
    Column("number", BigId, nullable=False),
    Column("job_id", Uuid, nullable=False),
    # Null until it was tried; then what was answered.
    Column("outcome", Text),
    PrimaryKeyConstraint("operation_id", "number"),
)  # fmt: skip
# The members that were not tried yet, in their order.
Index(
    "ix_latchwork_bulk_members_untried",
    bulk_members.c.operation_id, bulk_members.c.number,
    postgresql_where=text("outcome IS NULL"), sqlite_where=text("outcome IS NULL"),
)  # fmt: skip

# Dead-lettered and quarantined jobs of one cause: see jobs.cause_group.
failure_groups = Table(
    "latchwork_failure_groups",
    metadata,
    Column("key", Text, primary_key=True),
    Column("wire_name", Text, nullable=False),
    Column("cause_code", Text, nullable=False),
    Column("cause_type", Text),
    # The cause text without the parts that differ from job to job.
    Column("message", Text),
    Column("first_seen_at", UtcTime, nullable=False),
    Column("last_seen_at", UtcTime, nullable=False),
)
Index("ix_latchwork_failure_groups_last_seen", failure_groups.c.last_seen_at)
failure_hours = Table(
    "latchwork_failure_hours",
    metadata,
    Column("key", Text, ForeignKey(failure_groups.c.key, ondelete="CASCADE"), nullable=False),
    Column("hour", UtcTime, nullable=False),
    Column("count", BigId, nullable=False),
    PrimaryKeyConstraint("key", "hour"),
)

"""Schedules, observers, bulk operations, failure groups; indexes for workflows and the purge."""

import sqlalchemy as sa
from alembic import op

from latchwork.store import column_types

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Only add: the previous version's nodes keep running on the new schema."""
    op.create_table(
        "latchwork_bulk_operations",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("criteria", sa.Text(), nullable=False),
        sa.Column("created_at", column_types.UtcTime(), nullable=False),
        sa.Column("total", column_types.BigId, nullable=True),
        sa.Column("done", column_types.BigId, server_default="0", nullable=False),
        sa.Column("skipped", column_types.BigId, server_default="0", nullable=False),
        sa.Column("outcomes", sa.Text(), server_default="{}", nullable=False),
        sa.Column("allowed", column_types.BigId, nullable=True),
        sa.Column("listed_sequence", column_types.BigId, nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", column_types.UtcTime(), nullable=True),
        sa.Column("finished_at", column_types.UtcTime(), nullable=True),
        sa.Column("stopped_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latchwork_bulk_operations")),
    )
    op.create_table(
        "latchwork_failure_groups",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=False),
        sa.Column("cause_code", sa.Text(), nullable=False),
        sa.Column("cause_type", sa.Text(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("first_seen_at", column_types.UtcTime(), nullable=False),
        sa.Column("last_seen_at", column_types.UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_latchwork_failure_groups")),
    )
    op.create_index(
        "ix_latchwork_failure_groups_last_seen",
        "latchwork_failure_groups",
        ["last_seen_at"],
        unique=False,
    )
    op.create_table(
        "latchwork_observers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("states", sa.Text(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=True),
        sa.Column("queue", sa.Text(), nullable=True),
        sa.Column("registered_at", column_types.UtcTime(), nullable=False),
        sa.Column("last_seen_at", column_types.UtcTime(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("passed_position", column_types.BigId, nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", column_types.UtcTime(), nullable=True),
        sa.Column("delivered", column_types.BigId, server_default="0", nullable=False),
        sa.Column("skipped", column_types.BigId, server_default="0", nullable=False),
        sa.Column("last_delivered_at", column_types.UtcTime(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("last_error_at", column_types.UtcTime(), nullable=True),
        sa.Column("retired_at", column_types.UtcTime(), nullable=True),
        sa.Column("retired_by", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(owner IS NULL) = (lease_expires_at IS NULL)",
            name=op.f("ck_latchwork_observers_lease_is_whole"),
        ),
        sa.CheckConstraint(
            "(retired_at IS NULL) = (retired_by IS NULL)",
            name=op.f("ck_latchwork_observers_retired_by_somebody"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_latchwork_observers")),
    )
    op.create_table(
        "latchwork_schedules",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), server_default="[]", nullable=False),
        sa.Column("retry_policy", sa.Text(), nullable=False),
        sa.Column("cron", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("catch_up", sa.Text(), nullable=False),
        sa.Column("may_overlap", sa.Boolean(), nullable=False),
        sa.Column("created_at", column_types.UtcTime(), nullable=False),
        sa.Column("updated_at", column_types.UtcTime(), nullable=False),
        sa.Column("cursor_at", column_types.UtcTime(), nullable=False),
        sa.Column("next_tick_at", column_types.UtcTime(), nullable=True),
        sa.Column("last_job_id", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latchwork_schedules")),
    )
    op.create_index(
        "ix_latchwork_schedules_next_tick", "latchwork_schedules", ["next_tick_at"], unique=False
    )
    op.create_table(
        "latchwork_bulk_members",
        sa.Column("operation_id", sa.Uuid(), nullable=False),
        sa.Column("number", column_types.BigId, nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["operation_id"],
            ["latchwork_bulk_operations.id"],
            name=op.f("fk_latchwork_bulk_members_operation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("operation_id", "number", name=op.f("pk_latchwork_bulk_members")),
    )
    op.create_index(
        "ix_latchwork_bulk_members_untried",
        "latchwork_bulk_members",
        ["operation_id", "number"],
        unique=False,
        sqlite_where=sa.text("outcome IS NULL"),
        postgresql_where=sa.text("outcome IS NULL"),
    )
    op.create_table(
        "latchwork_deliveries",
        sa.Column("id", column_types.BigId, autoincrement=True, nullable=False),
        sa.Column("observer", sa.Text(), nullable=False),
        sa.Column("position", column_types.BigId, nullable=False),
        sa.Column("job_sequence", column_types.BigId, nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("transition", sa.Text(), nullable=False),
        sa.Column("taken_at", column_types.UtcTime(), nullable=False),
        sa.Column("starts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_try_at", column_types.UtcTime(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("dead_at", column_types.UtcTime(), nullable=True),
        sa.ForeignKeyConstraint(
            ["observer"],
            ["latchwork_observers.name"],
            name=op.f("fk_latchwork_deliveries_observer"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latchwork_deliveries")),
        sa.UniqueConstraint(
            "observer", "position", name=op.f("uq_latchwork_deliveries_observer_position")
        ),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_latchwork_deliveries_dead",
        "latchwork_deliveries",
        ["observer", "id"],
        unique=False,
        postgresql_where=sa.text("dead_at IS NOT NULL"),
        sqlite_where=sa.text("dead_at IS NOT NULL"),
    )
    op.create_index(
        "ix_latchwork_deliveries_job",
        "latchwork_deliveries",
        ["observer", "job_sequence", "ordinal"],
        unique=False,
    )
    op.create_index(
        "ix_latchwork_deliveries_next",
        "latchwork_deliveries",
        ["observer", "next_try_at", "id"],
        unique=False,
        postgresql_where=sa.text("dead_at IS NULL"),
        sqlite_where=sa.text("dead_at IS NULL"),
    )
    op.create_table(
        "latchwork_failure_hours",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("hour", column_types.UtcTime(), nullable=False),
        sa.Column("count", column_types.BigId, nullable=False),
        sa.ForeignKeyConstraint(
            ["key"],
            ["latchwork_failure_groups.key"],
            name=op.f("fk_latchwork_failure_hours_key"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("key", "hour", name=op.f("pk_latchwork_failure_hours")),
    )
    op.create_table(
        "latchwork_schedule_ticks",
        sa.Column("schedule_id", sa.Text(), nullable=False),
        sa.Column("tick_at", column_types.UtcTime(), nullable=False),
        sa.Column("decided_at", column_types.UtcTime(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), server_default="1", nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=True),
        sa.ForeignKeyConstraint(
            ["schedule_id"],
            ["latchwork_schedules.id"],
            name=op.f("fk_latchwork_schedule_ticks_schedule_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("schedule_id", "tick_at", name=op.f("pk_latchwork_schedule_ticks")),
    )
    op.create_index(
        "ix_latchwork_schedule_ticks_decided",
        "latchwork_schedule_ticks",
        ["decided_at"],
        unique=False,
    )
    op.create_index(
        "ix_latchwork_schedule_ticks_job", "latchwork_schedule_ticks", ["job_id"], unique=False
    )
    op.add_column("latchwork_jobs", sa.Column("cause_group", sa.Text(), nullable=True))
    op.add_column("latchwork_jobs", sa.Column("trace_context", sa.Text(), nullable=True))
    op.create_index(
        "ix_latchwork_jobs_cause_group",
        "latchwork_jobs",
        ["cause_group", "sequence"],
        unique=False,
        postgresql_where=sa.text(
            "cause_group IS NOT NULL AND (state = 'dead_lettered' OR state = 'quarantined')"
        ),
        sqlite_where=sa.text(
            "cause_group IS NOT NULL AND (state = 'dead_lettered' OR state = 'quarantined')"
        ),
    )
    op.create_index(
        "ix_latchwork_jobs_ended",
        "latchwork_jobs",
        ["terminal_at", "sequence"],
        unique=False,
        postgresql_where=sa.text("terminal_at IS NOT NULL"),
        sqlite_where=sa.text("terminal_at IS NOT NULL"),
    )
    op.create_index(
        "ix_latchwork_jobs_ungrouped",
        "latchwork_jobs",
        ["sequence"],
        unique=False,
        postgresql_where=sa.text(
            "cause_group IS NULL AND (state = 'dead_lettered' OR state = 'quarantined')"
        ),
        sqlite_where=sa.text(
            "cause_group IS NULL AND (state = 'dead_lettered' OR state = 'quarantined')"
        ),
    )
    op.create_index(
        "ix_latchwork_jobs_workflow_state",
        "latchwork_jobs",
        ["workflow_id", "state"],
        unique=False,
        postgresql_where=sa.text("workflow_id IS NOT NULL"),
        sqlite_where=sa.text("workflow_id IS NOT NULL"),
    )
    op.create_index(
        "uq_latchwork_jobs_workflow_step",
        "latchwork_jobs",
        ["workflow_id", "step"],
        unique=True,
        postgresql_where=sa.text("workflow_id IS NOT NULL"),
        sqlite_where=sa.text("workflow_id IS NOT NULL"),
    )
    op.create_index(
        "ix_latchwork_workflows_name", "latchwork_workflows", ["name", "id"], unique=False
    )
    op.create_index(
        "ix_latchwork_workflows_restarted_from",
        "latchwork_workflows",
        ["restarted_from"],
        unique=False,
        postgresql_where=sa.text("restarted_from IS NOT NULL"),
        sqlite_where=sa.text("restarted_from IS NOT NULL"),
    )

"""The first schema."""

import sqlalchemy as sa
from alembic import op

from latchwork.store import column_types

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Only add: the previous version's nodes keep running on the new schema."""
    op.create_table(
        "latchwork_audit",
        sa.Column("id", column_types.BigId, autoincrement=True, nullable=False),
        sa.Column("at", column_types.UtcTime(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("subject_kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="{}", nullable=False),
        sa.Column("request_id", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latchwork_audit")),
        sa.UniqueConstraint("request_id", name=op.f("uq_latchwork_audit_request_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_latchwork_audit_subject",
        "latchwork_audit",
        ["subject_kind", "subject", "id"],
        unique=False,
    )
    op.create_table(
        "latchwork_counter_entries",
        sa.Column("id", column_types.BigId, autoincrement=True, nullable=False),
        sa.Column("minute", column_types.UtcTime(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=True),
        sa.Column("to_state", sa.Text(), nullable=True),
        sa.Column("count", column_types.BigId, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("buckets", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latchwork_counter_entries")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "latchwork_counter_periods",
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("starts_at", column_types.UtcTime(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=False),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.Column("count", column_types.BigId, nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("buckets", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint(
            "period",
            "starts_at",
            "wire_name",
            "queue",
            "from_state",
            "to_state",
            name=op.f("pk_latchwork_counter_periods"),
        ),
    )
    op.create_table(
        "latchwork_counter_totals",
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("count", column_types.BigId, nullable=False),
        sa.PrimaryKeyConstraint("queue", "state", name=op.f("pk_latchwork_counter_totals")),
    )
    op.create_table(
        "latchwork_facts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("since", column_types.UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_latchwork_facts")),
    )
    op.create_table(
        "latchwork_nodes",
        sa.Column("worker_id", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("started_at", column_types.UtcTime(), nullable=False),
        sa.Column("last_seen_at", column_types.UtcTime(), nullable=False),
        sa.Column("heartbeat_seconds", sa.Float(), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("queues", sa.Text(), nullable=False),
        sa.Column("wire_names", sa.Text(), nullable=False),
        sa.Column("draining", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("stopped_at", column_types.UtcTime(), nullable=True),
        sa.PrimaryKeyConstraint("worker_id", name=op.f("pk_latchwork_nodes")),
    )
    op.create_table(
        "latchwork_queues",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", column_types.UtcTime(), nullable=False),
        sa.Column("paused_at", column_types.UtcTime(), nullable=True),
        sa.Column("paused_by", sa.Text(), nullable=True),
        sa.Column("concurrency_limit", sa.Integer(), nullable=True),
        sa.CheckConstraint(
            "(paused_at IS NULL) = (paused_by IS NULL)",
            name=op.f("ck_latchwork_queues_paused_by_somebody"),
        ),
        sa.CheckConstraint(
            "concurrency_limit IS NULL OR concurrency_limit >= 1",
            name=op.f("ck_latchwork_queues_limit_positive"),
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_latchwork_queues")),
    )
    op.create_table(
        "latchwork_transitions",
        sa.Column("position", column_types.BigId, autoincrement=True, nullable=False),
        sa.Column("job_sequence", column_types.BigId, nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("at", column_types.UtcTime(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("previous_state", sa.Text(), nullable=True),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("due_at", column_types.UtcTime(), nullable=True),
        sa.Column("failure_detail", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_latchwork_transitions")),
        sa.UniqueConstraint(
            "job_sequence", "ordinal", name=op.f("uq_latchwork_transitions_job_sequence_ordinal")
        ),
        sqlite_autoincrement=True,
    )
    failing = sa.text("previous_state = 'leased' AND state <> 'succeeded' AND state <> 'cancelled'")
    op.create_index(
        "ix_latchwork_transitions_failing",
        "latchwork_transitions",
        ["position"],
        unique=False,
        postgresql_where=failing,
        sqlite_where=failing,
    )
    op.create_table(
        "latchwork_wire_names",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", column_types.UtcTime(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_latchwork_wire_names")),
    )
    op.create_table(
        "latchwork_workflows",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", column_types.UtcTime(), nullable=False),
        sa.Column("input", sa.Text(), nullable=True),
        sa.Column("restarted_from", sa.Uuid(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_latchwork_workflows")),
    )
    op.create_table(
        "latchwork_jobs",
        sa.Column("sequence", column_types.BigId, autoincrement=True, nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("wire_name", sa.Text(), nullable=False),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), server_default="[]", nullable=False),
        sa.Column("retry_policy", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("state_since", column_types.UtcTime(), nullable=False),
        sa.Column("next_ordinal", sa.Integer(), server_default="1", nullable=False),
        sa.Column("enqueued_at", column_types.UtcTime(), nullable=False),
        sa.Column("due_at", column_types.UtcTime(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("claim_number", sa.Integer(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_expires_at", column_types.UtcTime(), nullable=True),
        sa.Column("lapses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("terminal_at", column_types.UtcTime(), nullable=True),
        sa.Column("mode", sa.Text(), server_default="on_success", nullable=False),
        sa.Column("parents_remaining", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cancel_pending", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("cancel_requested_at", column_types.UtcTime(), nullable=True),
        sa.Column("cancel_requested_by", sa.Text(), nullable=True),
        sa.Column("cancel_delivered_at", column_types.UtcTime(), nullable=True),
        sa.Column("cause_code", sa.Text(), nullable=True),
        sa.Column("cause_type", sa.Text(), nullable=True),
        sa.Column("cause_text", sa.Text(), nullable=True),
        sa.Column("cause_parent_id", sa.Uuid(), nullable=True),
        sa.Column("cause_parent_state", sa.Text(), nullable=True),
        sa.Column("cause_root_id", sa.Uuid(), nullable=True),
        sa.Column("applied_claim", sa.Integer(), nullable=True),
        sa.Column("applied_worker", sa.Text(), nullable=True),
        sa.Column("applied_outcome", sa.Text(), nullable=True),
        sa.Column("workflow_id", sa.Uuid(), nullable=True),
        sa.Column("step", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "CASE state "
            "WHEN 'scheduled' THEN owner IS NULL AND lease_expires_at IS NULL AND terminal_at IS NULL AND parents_remaining = 0 AND NOT cancel_pending "
            "WHEN 'awaiting_parent' THEN owner IS NULL AND lease_expires_at IS NULL AND terminal_at IS NULL AND parents_remaining > 0 AND NOT cancel_pending "
            "WHEN 'leased' THEN owner IS NOT NULL AND lease_expires_at IS NOT NULL AND terminal_at IS NULL AND parents_remaining = 0 "
            "WHEN 'succeeded' THEN owner IS NULL AND lease_expires_at IS NULL AND terminal_at IS NOT NULL AND parents_remaining = 0 AND NOT cancel_pending "
            "WHEN 'cancelled' THEN owner IS NULL AND lease_expires_at IS NULL AND terminal_at IS NOT NULL AND parents_remaining = 0 AND NOT cancel_pending AND cause_code IS NOT NULL "
            "WHEN 'dead_lettered' THEN owner IS NULL AND lease_expires_at IS NULL AND terminal_at IS NOT NULL AND parents_remaining = 0 AND NOT cancel_pending "
            "WHEN 'quarantined' THEN owner IS NULL AND lease_expires_at IS NULL AND terminal_at IS NOT NULL AND parents_remaining = 0 AND NOT cancel_pending "
            "ELSE false END",
            name=op.f("ck_latchwork_jobs_state_has_its_facts"),
        ),
        sa.CheckConstraint(
            "attempt >= 0 AND claim_number >= attempt",
            name=op.f("ck_latchwork_jobs_attempt_counts_claims"),
        ),
        sa.ForeignKeyConstraint(
            ["workflow_id"], ["latchwork_workflows.id"], name=op.f("fk_latchwork_jobs_workflow_id")
        ),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_latchwork_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_latchwork_jobs_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_latchwork_jobs_due",
        "latchwork_jobs",
        ["queue", "due_at", "sequence"],
        unique=False,
        postgresql_where=sa.text("state = 'scheduled'"),
        sqlite_where=sa.text("state = 'scheduled'"),
    )
    op.create_index(
        "ix_latchwork_jobs_leased",
        "latchwork_jobs",
        ["lease_expires_at"],
        unique=False,
        postgresql_where=sa.text("state = 'leased'"),
        sqlite_where=sa.text("state = 'leased'"),
    )
    op.create_index(
        "ix_latchwork_jobs_state", "latchwork_jobs", ["state", "sequence"], unique=False
    )
    op.create_index(
        "ix_latchwork_jobs_wire_name", "latchwork_jobs", ["wire_name", "sequence"], unique=False
    )
    op.create_index(
        "ix_latchwork_jobs_workflow",
        "latchwork_jobs",
        ["workflow_id", "sequence"],
        unique=False,
        postgresql_where=sa.text("workflow_id IS NOT NULL"),
        sqlite_where=sa.text("workflow_id IS NOT NULL"),
    )
    op.create_table(
        "latchwork_edges",
        sa.Column("child_sequence", column_types.BigId, nullable=False),
        sa.Column("parent_sequence", column_types.BigId, nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.CheckConstraint(
            "parent_sequence < child_sequence", name=op.f("ck_latchwork_edges_child_after_parent")
        ),
        sa.ForeignKeyConstraint(
            ["child_sequence"],
            ["latchwork_jobs.sequence"],
            name=op.f("fk_latchwork_edges_child_sequence"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["parent_sequence"],
            ["latchwork_jobs.sequence"],
            name=op.f("fk_latchwork_edges_parent_sequence"),
        ),
        sa.PrimaryKeyConstraint(
            "child_sequence", "parent_sequence", name=op.f("pk_latchwork_edges")
        ),
    )
    op.create_index(
        "ix_latchwork_edges_parent", "latchwork_edges", ["parent_sequence", "is_open"], unique=False
    )
    op.create_table(
        "latchwork_job_tags",
        sa.Column("job_sequence", column_types.BigId, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["job_sequence"],
            ["latchwork_jobs.sequence"],
            name=op.f("fk_latchwork_job_tags_job_sequence"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("job_sequence", "key", "value", name=op.f("pk_latchwork_job_tags")),
    )
    op.create_index(
        "ix_latchwork_job_tags_find",
        "latchwork_job_tags",
        ["key", "value", "job_sequence"],
        unique=False,
    )
    op.create_table(
        "latchwork_outputs",
        sa.Column("job_sequence", column_types.BigId, autoincrement=False, nullable=False),
        sa.Column("output", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_sequence"],
            ["latchwork_jobs.sequence"],
            name=op.f("fk_latchwork_outputs_job_sequence"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("job_sequence", name=op.f("pk_latchwork_outputs")),
    )

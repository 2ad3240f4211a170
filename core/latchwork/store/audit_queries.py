"""Reading the audit trail of operator actions."""

import json
from uuid import UUID

from sqlalchemy import Connection, select

from latchwork.store.schema import audit
from latchwork.views import AuditRow

MAX_AUDIT_ROWS = 200

_COLUMNS = (
    audit.c.id, audit.c.at, audit.c.actor, audit.c.action,
    audit.c.subject_kind, audit.c.subject, audit.c.detail,
)  # fmt: skip


def read_audit(
    connection: Connection,
    *,
    limit: int,
    before: int | None = None,
    job_id: UUID | None = None,
) -> tuple[AuditRow, ...]:
    """The newest audit rows, before row number ``before`` and about one job if asked for."""
    statement = select(*_COLUMNS).order_by(audit.c.id.desc()).limit(min(limit, MAX_AUDIT_ROWS))
    if before is not None:
        statement = statement.where(audit.c.id < before)
    if job_id is not None:
        statement = statement.where(audit.c.subject_kind == "job", audit.c.subject == str(job_id))
    return tuple(
        AuditRow(*row[:-1], detail=json.loads(row.detail)) for row in connection.execute(statement)
    )

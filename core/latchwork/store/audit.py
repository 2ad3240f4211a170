"""The audit trail: one row per operator action that was carried out, in its own transaction."""

import json
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, insert, select

from latchwork.store.schema import audit


def append(
    connection: Connection,
    *,
    at: datetime,
    actor: str,
    action: str,
    subject_kind: str,
    subject: str,
    detail: dict[str, Any],
    request_id: UUID | None,
) -> None:
    """Write down an action that this transaction carries out; refused actions leave no row."""
    connection.execute(
        insert(audit),
        {
            "at": at,
            "actor": actor,
            "action": action,
            "subject_kind": subject_kind,
            "subject": subject,
            "detail": json.dumps(detail, ensure_ascii=False, separators=(",", ":")),
            "request_id": request_id,
        },
    )


def detail_of_request(connection: Connection, request_id: UUID | None) -> dict[str, Any] | None:
    """The detail of an action that was carried out under this request id already."""
    if request_id is None:
        return None
    stored = connection.scalar(select(audit.c.detail).where(audit.c.request_id == request_id))
    return None if stored is None else json.loads(stored)

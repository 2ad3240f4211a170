"""The audit trail: one row per operator action that was carried out, in its own transaction."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, insert, select

from latchwork.store.schema import audit


class Action(NamedTuple):
    """One action that this transaction carries out, and what it was done to."""

    action: str
    subject_kind: str
    subject: str
    detail: dict[str, Any]
    request_id: UUID | None = None


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
    done = Action(action, subject_kind, subject, detail, request_id)
    append_many(connection, [done], at=at, actor=actor)


def append_many(
    connection: Connection, actions: Sequence[Action], *, at: datetime, actor: str
) -> None:
    """Write down ``actions``, in order."""
    rows = [
        action._asdict()
        | {
            "at": at,
            "actor": actor,
            "detail": json.dumps(action.detail, ensure_ascii=False, separators=(",", ":")),
        }
        for action in actions
    ]
    connection.execute(insert(audit), rows)


def detail_of_request(connection: Connection, request_id: UUID | None) -> dict[str, Any] | None:
    """The detail of an action that was carried out under this request id already."""
    if request_id is None:
        return None
    stored = connection.scalar(select(audit.c.detail).where(audit.c.request_id == request_id))
    return None if stored is None else json.loads(stored)

"""Reading the audit trail of operator actions."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select

from latchwork.audit_views import AuditFilter, AuditNames, AuditPage
from latchwork.store.keyset import Cursor, Listing, Term, Walk
from latchwork.store.schema import audit
from latchwork.views import AuditRow

MAX_AUDIT_ROWS = 200
NAMES_AMONG = 1_000
"""How many of the newest rows the names of actors and actions are taken from."""

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
    return tuple(map(_audit_row, connection.execute(statement)))


def list_audit(
    connection: Connection, audit_filter: AuditFilter, cursor: Cursor | None, *, limit: int
) -> AuditPage:
    """One page of the actions that match ``audit_filter``."""
    listing = Listing(_along(), "id", tuple(_terms(audit_filter)))
    page = listing.page(connection, cursor, limit=limit)
    return AuditPage(
        rows=tuple(map(_audit_row, page.rows)),
        older=None if page.older is None else page.older.key,
        newer=None if page.newer is None else page.newer.key,
        partial=page.partial,
    )


def read_names(connection: Connection) -> AuditNames:
    """Who acted lately, and how."""
    newest = select(audit.c.actor, audit.c.action).order_by(audit.c.id.desc()).limit(NAMES_AMONG)
    among = newest.subquery("newest")
    names = [
        tuple(connection.scalars(select(column).distinct().order_by(column)))
        for column in (among.c.actor, among.c.action)
    ]
    return AuditNames(actors=names[0], actions=names[1])


def _audit_row(row: Any) -> AuditRow:
    facts = (row.id, row.at, row.actor, row.action, row.subject_kind, row.subject)
    return AuditRow(*facts, detail=json.loads(row.detail))


def _along(*prefix: tuple[ColumnElement[Any], Any]) -> Walk:
    return Walk(select(*_COLUMNS), audit.c.id, prefix)


def _terms(chosen: AuditFilter) -> Iterator[Term]:
    if chosen.subject is not None and chosen.subject_kind is not None:
        kind, subject = chosen.subject_kind, chosen.subject
        yield Term(
            lambda row: (row.subject_kind == kind) & (row.subject == subject),
            (audit.c.subject_kind, audit.c.subject),
            (_along((audit.c.subject_kind, kind), (audit.c.subject, subject)),),
        )
    else:
        for column in (audit.c.subject_kind, audit.c.subject):
            yield from _equals(column, getattr(chosen, column.key))
    for column in (audit.c.actor, audit.c.action):
        yield from _equals(column, getattr(chosen, column.key))


def _equals(column: ColumnElement[Any], value: str | None) -> Iterator[Term]:
    if value is not None:
        yield Term(lambda row: row[column.key] == value, (column,))

"""Appending to the transition log, under the history policy and the cap per job (section 5)."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Text,
    Uuid,
    case,
    delete,
    func,
    insert,
    select,
)

from latchwork.decisions.states import HistoryPolicy, JobState
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG, Batch
from latchwork.store.schema import State, facts, transitions

KEPT_ROWS_PER_JOB = 64
HISTORY_POLICY = "history_policy"


class LogRow(NamedTuple):
    """One row of the transition log, without its position."""

    job_sequence: int
    ordinal: int
    job_id: UUID
    at: datetime
    state: JobState
    previous_state: JobState | None
    attempt: int
    queue: str
    wire_name: str
    worker: str | None
    due_at: datetime | None
    failure_detail: str | None


_COLUMNS: dict[str, Any] = {
    "job_sequence": BIG,
    "ordinal": Integer(),
    "job_id": Uuid(),
    "at": UtcTime(),
    "state": State,
    "previous_state": State,
    "attempt": Integer(),
    "queue": Text(),
    "wire_name": Text(),
    "worker": Text(),
    "due_at": UtcTime(),
    "failure_detail": Text(),
}


def append(connection: Connection, rows: Sequence[LogRow]) -> None:
    """Append ``rows`` in enqueue order, so that a parent's row stands before its children's."""
    ordered = sorted(rows, key=itemgetter(0, 1))
    batch, statement = _append_statement(connection.dialect.name)
    connection.execute(statement, batch.parameters(list(zip(*ordered, strict=True))))
    over = {row.job_sequence: row.ordinal for row in ordered if row.ordinal >= KEPT_ROWS_PER_JOB}
    if over:
        batch, statement = _drop_statement(connection.dialect.name)
        cut = [ordinal - KEPT_ROWS_PER_JOB for ordinal in over.values()]
        connection.execute(statement, batch.parameters([list(over), cut]))


def policy() -> Any:
    """The history policy in force, as a subquery: it belongs to the database."""
    stored = select(facts.c.value).where(facts.c.name == HISTORY_POLICY).scalar_subquery()
    return func.coalesce(stored, HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL.value)


@cache
def _append_statement(dialect: str) -> tuple[Batch, Any]:
    batch = Batch(dialect, "log", _COLUMNS)
    rows = batch.rows.c
    detailed = policy() == HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL.value
    values: list[ColumnElement[Any]] = [rows[name] for name in _COLUMNS if name != "failure_detail"]
    values.append(case((detailed, rows.failure_detail)))
    source = (
        select(*values)
        .where(policy() != HistoryPolicy.OFF.value)
        .order_by(rows.job_sequence, rows.ordinal)
    )
    return batch, insert(transitions).from_select(list(_COLUMNS), source, include_defaults=False)


@cache
def _drop_statement(dialect: str) -> tuple[Batch, Any]:
    batch = Batch(dialect, "over", {"job_sequence": BIG, "ordinal": Integer()})
    rows = batch.rows.c
    too_old = (
        select(transitions.c.position)
        .join(
            batch.rows,
            (transitions.c.job_sequence == rows.job_sequence)
            & (transitions.c.ordinal <= rows.ordinal),
        )
        .scalar_subquery()
    )
    return batch, delete(transitions).where(transitions.c.position.in_(too_old))

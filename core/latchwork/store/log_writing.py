"""Appending to the transition log, under the history policy and the cap per job (section 5)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Integer,
    Text,
    case,
    delete,
    func,
    insert,
    select,
)

from latchwork.decisions.observers import ACTIVE_FOR
from latchwork.decisions.states import HistoryPolicy, JobState
from latchwork.decisions.transitions import Event
from latchwork.store import counters
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG, BatchWrite, Values, write_together
from latchwork.store.observer_places import passed_by_all
from latchwork.store.schema import State, facts, jobs, transitions

KEPT_ROWS_PER_JOB = 64
HISTORY_POLICY = "history_policy"


class LogRow(NamedTuple):
    """One row of the transition log, without its position."""

    job_sequence: int
    ordinal: int
    at: datetime
    state: JobState
    previous_state: JobState | None
    event: Event
    attempt: int
    queue: str
    wire_name: str
    worker: str | None
    due_at: datetime | None
    failure_detail: str | None


_COLUMNS: dict[str, Any] = {
    "job_sequence": BIG,
    "ordinal": Integer(),
    "at": UtcTime(),
    "state": State,
    "previous_state": State,
    "event": transitions.c.event.type,
    "attempt": Integer(),
    "queue": Text(),
    "wire_name": Text(),
    "worker": Text(),
    "due_at": UtcTime(),
    "failure_detail": Text(),
}


def append(
    connection: Connection,
    rows: Sequence[LogRow],
    passages: Iterable[counters.Passage],
    update: tuple[BatchWrite, Values] | None = None,
) -> int:
    """Append ``rows`` to the log and ``passages`` to the ledger, together with ``update``.

    Log rows stand in enqueue order, so that a parent's comes before its children's. Returns how
    many rows ``update`` met.
    """
    ordered = sorted(rows, key=itemgetter(0, 1))
    detailed = any(row.failure_detail is not None for row in ordered)
    append_rows = _append_statement(connection.dialect.name, detailed=detailed)
    writes = [
        (append_rows, list(zip(*ordered, strict=True))),
        counters.entries(connection, passages),
    ]
    met = write_together(connection, writes if update is None else [update, *writes])
    over = {row.job_sequence: row.ordinal for row in ordered if row.ordinal >= KEPT_ROWS_PER_JOB}
    if over:
        drop_beyond_cap(connection, over, now=ordered[-1].at)
    return met


def drop_beyond_cap(connection: Connection, last: Mapping[int, int], *, now: datetime) -> None:
    """Drop the oldest rows of jobs beyond the cap, up to what an active observer has not passed.

    ``last`` maps jobs, whose rows this transaction has locked, to their last ordinals.
    """
    cut = [ordinal - KEPT_ROWS_PER_JOB for ordinal in last.values()]
    seen_after = [now - ACTIVE_FOR] * len(cut)
    _drop_statement(connection.dialect.name).execute(connection, [list(last), cut, seen_after])


def policy() -> Any:
    """The history policy in force, as a subquery: it belongs to the database."""
    stored = select(facts.c.value).where(facts.c.name == HISTORY_POLICY).scalar_subquery()
    return func.coalesce(stored, HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL.value)


@cache
def _append_statement(dialect: str, *, detailed: bool) -> BatchWrite:
    def build(row: Any) -> Any:
        values = {name: getattr(row, name) for name in _COLUMNS}
        of_job = select(jobs.c.id).where(jobs.c.sequence == row.job_sequence)
        values["job_id"] = of_job.scalar_subquery()
        if detailed:
            kept = policy() == HistoryPolicy.TRANSITIONS_AND_FAILURE_DETAIL.value
            values["failure_detail"] = case((kept, row.failure_detail))
        source = select(*values.values()).where(policy() != HistoryPolicy.OFF.value)
        return insert(transitions).from_select(list(values), source, include_defaults=False)

    return BatchWrite(dialect, _COLUMNS, build, name="logged")


@cache
def _drop_statement(dialect: str) -> BatchWrite:
    def build(row: Any) -> Any:
        return delete(transitions).where(
            transitions.c.job_sequence == row.job_sequence,
            transitions.c.ordinal <= row.ordinal,
            transitions.c.position <= passed_by_all(row.seen_after),
        )

    columns: dict[str, Any] = {
        "job_sequence": BIG, "ordinal": Integer(), "seen_after": UtcTime(),
    }  # fmt: skip
    return BatchWrite(dialect, columns, build)

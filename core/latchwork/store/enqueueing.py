"""Enqueueing: births B1 to B3 of contract section 2, one job or a whole graph, all or nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Integer, Text, Uuid, insert, select, true

from latchwork.decisions.dependencies import Birth, Parent, birth
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.errors import DuplicateJob, UnknownParent
from latchwork.store import log_writing, names
from latchwork.store.column_types import UtcTime, Word
from latchwork.store.dialects import (
    Batch,
    BatchWrite,
    array,
    due_hint,
    in_array,
    insert_ignoring,
    locking_shared,
)
from latchwork.store.latches import PARENT_FAILED
from latchwork.store.policies import encode_policy
from latchwork.store.schema import State, edges, in_state, jobs, queues, wire_names
from latchwork.store.tags import encode_tags, index_tags
from latchwork.views import Tag

UUID_TYPE: Uuid[UUID] = Uuid()


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to enqueue, its values checked already. Parents may stand earlier in the same batch."""

    id: UUID
    wire_name: str
    queue: str
    payload: str
    retry: RetryPolicy
    due_at: datetime
    tags: tuple[Tag, ...] = ()
    parents: tuple[UUID, ...] = ()
    mode: DependencyMode = DependencyMode.ON_SUCCESS
    workflow_id: UUID | None = None
    step: str | None = None
    trace_context: str | None = None


class _KnownParent(NamedTuple):
    """A parent that is stored, or born in this batch (then without a sequence yet)."""

    id: UUID
    sequence: int
    state: JobState
    root_id: UUID | None


def insert_jobs(
    connection: Connection,
    new_jobs: Sequence[NewJob],
    *,
    now: datetime,
    ids_are_new: bool = False,
) -> None:
    """Enqueue ``new_jobs`` in order; parents come before their children.

    Raises DuplicateJob or UnknownParent before anything is written. ``ids_are_new`` leaves out the
    look-up of ids that were just made. A duplicate that another transaction commits in the same
    instant is found by the insert: the transaction or savepoint must then be rolled back.
    """
    if not ids_are_new:
        for job_id in stored_ids(connection, [job.id for job in new_jobs]):
            raise DuplicateJob(job_id)
    births = _decide(connection, new_jobs)
    sequences = _insert_rows(connection, births, now)
    for born in births:
        if born.job.id not in sequences:
            raise DuplicateJob(born.job.id)
    _insert_edges(connection, births, sequences)
    index_tags(connection, {sequences[born.job.id]: born.job.tags for born in births})
    log_writing.append(
        connection,
        [_log_row(born, sequences, now) for born in births],
        [(b.job.queue, b.job.wire_name, None, b.birth.edge.target, now, now) for b in births],
    )
    used = {
        queues: [job.queue for job in new_jobs],
        wire_names: [job.wire_name for job in new_jobs],
    }
    names.introduce(connection, names.unknown(connection, used), now)


def stored_ids(connection: Connection, ids: Collection[UUID]) -> set[UUID]:
    """Which of ``ids`` are stored."""
    found = in_array(connection.dialect.name, jobs.c.id, "ids", UUID_TYPE)
    parameters = {"ids": array(connection, ids, UUID_TYPE)}
    return set(connection.scalars(select(jobs.c.id).where(found), parameters))


def enqueued_at(connection: Connection, job_id: UUID) -> datetime | None:
    """When a job was enqueued; None if it is not stored."""
    return connection.scalar(select(jobs.c.enqueued_at).where(jobs.c.id == job_id))


@dataclass(frozen=True, slots=True)
class _Born:
    """A job about to be inserted: how it enters, and which parent cancels it at once."""

    job: NewJob
    birth: Birth
    parents: tuple[_KnownParent, ...]

    @property
    def failed_parent(self) -> _KnownParent | None:
        """The parent that has already ended otherwise."""
        failed = self.birth.failed_parent
        return next((parent for parent in self.parents if parent.sequence == failed), None)

    @property
    def root_id(self) -> UUID | None:
        """The root of the cascade that cancels this job."""
        failed = self.failed_parent
        return None if failed is None else failed.root_id or failed.id


def _decide(connection: Connection, new_jobs: Sequence[NewJob]) -> list[_Born]:
    in_batch = {job.id for job in new_jobs}
    outside = {parent for job in new_jobs for parent in job.parents} - in_batch
    known = _hold_parents(connection, outside)
    births: list[_Born] = []
    for place, job in enumerate(new_jobs):
        parents = []
        for parent_id in dict.fromkeys(job.parents):
            if parent_id not in known:
                raise UnknownParent(parent_id)
            parents.append(known[parent_id])
        decided = birth([Parent(p.sequence, p.state) for p in parents], job.mode)
        born = _Born(job, decided, tuple(parents))
        births.append(born)
        # A number above every stored one, in batch order: the true one comes with the insert.
        known[job.id] = _KnownParent(job.id, 2**62 + place, decided.edge.target, born.root_id)
    return births


def _hold_parents(connection: Connection, ids: Collection[UUID]) -> dict[UUID, _KnownParent]:
    """Read parents and keep them as they are until this transaction ends."""
    if not ids:
        return {}
    found = in_array(connection.dialect.name, jobs.c.id, "ids", UUID_TYPE)
    columns = (jobs.c.id, jobs.c.sequence, jobs.c.state, jobs.c.cause_root_id)
    statement = select(*columns).where(found).order_by(jobs.c.sequence)
    rows = connection.execute(
        locking_shared(connection, statement, jobs),
        {"ids": array(connection, ids, UUID_TYPE)},
    )
    return {row.id: _KnownParent(*row) for row in rows}


_JOB_COLUMNS: dict[str, Any] = {
    "id": UUID_TYPE, "wire_name": Text(), "queue": Text(), "payload": Text(), "tags": Text(),
    "retry_policy": Text(), "state": State, "state_since": UtcTime(), "enqueued_at": UtcTime(),
    "due_at": UtcTime(), "terminal_at": UtcTime(), "mode": Word(DependencyMode),
    "parents_remaining": Integer(), "cause_code": Text(), "cause_parent_id": UUID_TYPE,
    "cause_parent_state": State, "cause_root_id": UUID_TYPE, "workflow_id": UUID_TYPE,
    "step": Text(), "trace_context": Text(),
}  # fmt: skip


@cache
def _insert_statement(dialect: str) -> tuple[Batch, Any]:
    batch = Batch(dialect, "born", {"place": Integer(), **_JOB_COLUMNS})
    rows = batch.rows.c
    source = select(*(rows[name] for name in _JOB_COLUMNS)).order_by(rows.place)
    # Also of what is due later: an idle node then wakes at that time.
    hint = due_hint(dialect, jobs.c.queue, in_state(JobState.SCHEDULED))
    statement = (
        insert_ignoring(dialect, jobs)
        # SQLite's parser needs a WHERE between a SELECT and ON CONFLICT.
        .from_select(list(_JOB_COLUMNS), source.where(true()), include_defaults=False)
        .on_conflict_do_nothing(index_elements=[jobs.c.id])
        .returning(jobs.c.id, jobs.c.sequence, hint)
    )
    return batch, statement


def _insert_rows(connection: Connection, births: Sequence[_Born], now: datetime) -> dict[UUID, int]:
    batch, statement = _insert_statement(connection.dialect.name)
    rows = [_job_row(place, born, now) for place, born in enumerate(births)]
    inserted = connection.execute(statement, batch.parameters(list(zip(*rows, strict=True))))
    return {row.id: row.sequence for row in inserted.all()}


def _job_row(place: int, born: _Born, now: datetime) -> tuple[Any, ...]:
    job, state, failed = born.job, born.birth.edge.target, born.failed_parent
    return (
        place, job.id, job.wire_name, job.queue, job.payload, encode_tags(job.tags),
        encode_policy(job.retry), state, now, now, job.due_at, now if state.terminal else None,
        job.mode, born.birth.latch, None if failed is None else PARENT_FAILED,
        None if failed is None else failed.id, None if failed is None else failed.state,
        born.root_id, job.workflow_id, job.step, job.trace_context,
    )  # fmt: skip


def _insert_edges(
    connection: Connection, births: Sequence[_Born], sequences: Mapping[UUID, int]
) -> None:
    rows = [
        (
            sequences[born.job.id],
            sequences.get(parent.id, parent.sequence),
            parent.sequence in born.birth.open_parents,
        )
        for born in births
        for parent in born.parents
    ]
    if rows:
        columns = list(zip(*rows, strict=True))
        _edges_statement(connection.dialect.name).execute(connection, columns)


@cache
def _edges_statement(dialect: str) -> BatchWrite:
    columns = {
        name: edges.c[name].type for name in ("child_sequence", "parent_sequence", "is_open")
    }

    def build(row: Any) -> Any:
        return insert(edges).from_select(list(columns), select(*(getattr(row, c) for c in columns)))

    return BatchWrite(dialect, columns, build)


def _log_row(born: _Born, sequences: Mapping[UUID, int], now: datetime) -> log_writing.LogRow:
    job, edge = born.job, born.birth.edge
    return log_writing.LogRow(
        sequences[job.id], 0, now, edge.target, None, edge.events[0], 0, job.queue,
        job.wire_name, None, job.due_at if edge.target is JobState.SCHEDULED else None, None,
    )  # fmt: skip

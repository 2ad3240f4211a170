"""The only writer of a job's state: row, log and counters change together or not at all.

An operation locks the rows it needs, decides, and hands over a list of moves. ``apply_moves``
writes one update per kind of edge, one log insert in enqueue order and one ledger insert, however
many moves there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Integer, Text, Uuid, false, literal, null, select, update

from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import LAPSED, LAPSED_AT_CEILING, Edge, Event
from latchwork.errors import StoreError
from latchwork.store import counters, log_writing
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import BIG, BatchWrite, Values, array, guard, in_array
from latchwork.store.schema import State, jobs


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a job ended: ``code`` and ``type`` are public, ``text`` is sensitive (section 2).

    A cascaded cancel names the direct parent that ended otherwise, its state and the root job.
    """

    code: str
    type: str | None = None
    text: str | None = None
    parent_id: UUID | None = None
    parent_state: JobState | None = None
    root_id: UUID | None = None


class LockedJob(NamedTuple):
    """What a decision needs of a job whose row this transaction has locked."""

    sequence: int
    queue: str
    wire_name: str
    state: JobState
    state_since: datetime
    next_ordinal: int
    attempt: int
    claim_number: int
    owner: str | None
    lease_expires_at: datetime | None
    due_at: datetime
    mode: DependencyMode
    parents_remaining: int
    cancel_pending: bool
    cancel_requested_by: str | None
    applied_claim: int | None
    applied_worker: str | None
    applied_outcome: JobState | None


@dataclass(frozen=True, slots=True)
class Move:
    """One job taking one edge.

    ``due_at`` is for edges to Scheduled, ``cause`` for edges to an end, ``latch`` for those to
    Awaiting Parent.
    """

    job: LockedJob
    edge: Edge
    at: datetime
    due_at: datetime | None = None
    cause: Cause | None = None
    failure_detail: str | None = None
    latch: int = 0

    @property
    def event(self) -> Event:
        """What makes the job move: a job that waits is cancelled by either of two events."""
        if len(self.edge.events) > 1 and self.cause is not None:
            return Event(self.cause.code)
        return self.edge.events[0]

    @classmethod
    def of(
        cls, job: LockedJob, edge: Edge, now: datetime, *, due_at: datetime | None = None,
        cause: Cause | None = None, failure_detail: str | None = None, latch: int = 0,
    ) -> "Move":  # fmt: skip
        """A move at ``now``, but never before the job's previous log row."""
        return cls(job, edge, max(now, job.state_since), due_at, cause, failure_detail, latch)


@cache
def _lock_statement(dialect: str, *, wait: bool) -> Any:
    columns = [jobs.c[name] for name in LockedJob._fields]
    found = in_array(dialect, jobs.c.sequence, "sequences", BIG)
    statement = select(*columns).where(found).order_by(jobs.c.sequence)
    # SQLite needs no locks and leaves it out.
    return statement.with_for_update(of=jobs, skip_locked=not wait)


def lock_jobs(
    connection: Connection, sequences: Iterable[int], *, wait: bool = True
) -> list[LockedJob]:
    """Lock the rows of ``sequences`` in enqueue order and read them.

    Without ``wait``, rows that somebody else has locked are passed over.
    """
    wanted = sorted(set(sequences))
    if not wanted:
        return []
    statement = _lock_statement(connection.dialect.name, wait=wait)
    rows = connection.execute(statement, {"sequences": array(connection, wanted, BIG)})
    return [LockedJob(*row) for row in rows.all()]


def apply_moves(connection: Connection, moves: Sequence[Move]) -> None:
    """Write ``moves``: rows, log rows and counters.

    The rows are locked by this transaction. A job may appear twice (a retry that is cancelled at
    the same instant): its moves are then given in order.
    """
    if not moves:
        return
    ordinals: dict[int, int] = {}
    rounds: dict[int, list[Move]] = {}
    rows: list[log_writing.LogRow] = []
    entries: list[counters.Passage] = []
    for move in moves:
        job = move.job
        nth = ordinals.get(job.sequence, 0)
        ordinals[job.sequence] = nth + 1
        rounds.setdefault(nth, []).append(move)
        since = job.state_since if nth == 0 else move.at
        rows.append(log_row(move, job.next_ordinal + nth))
        entries.append(
            (job.queue, job.wire_name, move.edge.source, move.edge.target, move.at, since)
        )
    groups = [
        list(group)
        for nth in sorted(rounds)
        for _, group in groupby(sorted(rounds[nth], key=_place), key=lambda move: move.edge)
    ]
    for group in groups[:-1]:
        statement, values = _update(connection, group)
        _check(group, statement.execute(connection, values))
    last = groups[-1]
    _check(last, log_writing.append(connection, rows, entries, _update(connection, last)))


def _place(move: Move) -> tuple[str, str, str]:
    """Brings the moves along one edge together: one number may stand for several edges."""
    return move.edge.number, move.edge.source or "", move.edge.target


def log_row(move: Move, ordinal: int) -> log_writing.LogRow:
    """The log row of a move."""
    job, edge = move.job, move.edge
    return log_writing.LogRow(
        job_sequence=job.sequence,
        ordinal=ordinal,
        at=move.at,
        state=edge.target,
        previous_state=edge.source,
        event=move.event,
        attempt=0 if edge.events[0] in _NEW_LIVES else job.attempt,
        queue=job.queue,
        wire_name=job.wire_name,
        worker=job.owner if edge.source is JobState.LEASED else None,
        due_at=move.due_at,
        failure_detail=move.failure_detail if edge.detail else None,
    )


_NEW_LIVES = {Event.REQUEUE, Event.WORKFLOW_RETRY}
_CAUSE_COLUMNS = {
    "cause_code": Text(),
    "cause_type": Text(),
    "cause_text": Text(),
    "cause_parent_id": Uuid(),
    "cause_parent_state": State,
    "cause_root_id": Uuid(),
}


@cache
def _update_statement(dialect: str, edge: Edge) -> BatchWrite:
    columns: dict[str, Any] = {"sequence": BIG, "at": UtcTime()}
    if edge.target is JobState.SCHEDULED:
        columns["due_at"] = UtcTime()
    elif edge.target is JobState.AWAITING_PARENT:
        columns["latch"] = Integer()
    elif edge.target is not JobState.SUCCEEDED:
        columns |= _CAUSE_COLUMNS

    def build(row: Any) -> Any:
        return (
            update(jobs)
            .where(
                jobs.c.sequence == row.sequence,
                guard(dialect, jobs.c.state) == literal(edge.source, State),
            )
            .values(_assignments(edge, row))
        )

    return BatchWrite(dialect, columns, build)


def _assignments(edge: Edge, row: Any) -> dict[str, Any]:
    """What an edge writes besides the state; ``row`` has the columns that differ by job."""
    values: dict[str, Any] = {
        "state": literal(edge.target, State),
        "state_since": row.at,
        "next_ordinal": jobs.c.next_ordinal + 1,
        "parents_remaining": row.latch if edge.target is JobState.AWAITING_PARENT else 0,
    }
    if edge.source is JobState.LEASED:
        values |= {"owner": null(), "lease_expires_at": null(), "cancel_pending": false()}
        if edge in (LAPSED, LAPSED_AT_CEILING):
            values["lapses"] = jobs.c.lapses + 1
        else:
            values |= {
                "lapses": 0,
                "applied_claim": jobs.c.claim_number,
                "applied_worker": jobs.c.owner,
                "applied_outcome": literal(edge.target, State),
            }
    if edge.target is JobState.SCHEDULED:
        values["due_at"] = row.due_at
    if edge.target.terminal:
        values["terminal_at"] = row.at
    if edge.target.terminal and edge.target is not JobState.SUCCEEDED:
        values |= {name: getattr(row, name) for name in _CAUSE_COLUMNS}
    if edge.events[0] in _NEW_LIVES:
        values |= dict.fromkeys(_FACTS_OF_AN_END, null()) | {"attempt": 0}
    return values


_FACTS_OF_AN_END = (
    "terminal_at", *_CAUSE_COLUMNS, "cause_group",
    "cancel_requested_at", "cancel_requested_by", "cancel_delivered_at",
)  # fmt: skip


def _update(connection: Connection, moves: Sequence[Move]) -> tuple[BatchWrite, Values]:
    """The update of the rows of ``moves``, which take the same edge."""
    edge = moves[0].edge
    values: list[list[Any]] = [[m.job.sequence for m in moves], [m.at for m in moves]]
    if edge.target is JobState.SCHEDULED:
        values.append([move.due_at or move.job.due_at for move in moves])
    elif edge.target is JobState.AWAITING_PARENT:
        values.append([move.latch for move in moves])
    elif edge.target is not JobState.SUCCEEDED:
        causes = [move.cause or _NO_CAUSE for move in moves]
        values += [[c.code for c in causes], [c.type for c in causes], [c.text for c in causes]]
        values += [[c.parent_id for c in causes], [c.parent_state for c in causes]]
        values.append([c.root_id for c in causes])
    return _update_statement(connection.dialect.name, edge), values


def _check(moves: Sequence[Move], moved: int) -> None:
    if moved != len(moves):
        edge = moves[0].edge
        raise StoreError(
            f"edge {edge.number} met {moved} of {len(moves)} jobs in state {edge.source}; "
            "nothing was written"
        )


_NO_CAUSE = Cause("unknown")

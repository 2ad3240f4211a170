"""Outcomes: what a worker reports of its attempts, each applied under the fence or not at all."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection, insert, select

from latchwork.decisions.leases import Fence, Hold, check_fence
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import (
    CANCELLED_RUNNING,
    CANCELLED_SCHEDULED,
    DEAD_LETTERED,
    QUARANTINED,
    RETRIED,
    SUCCEEDED,
)
from latchwork.store import ending
from latchwork.store.dialects import BIG, array, in_array
from latchwork.store.latches import read_reach
from latchwork.store.moves import Cause, LockedJob, Move, lock_jobs
from latchwork.store.schema import jobs, outputs
from latchwork.store.tags import replace_tags
from latchwork.views import Tag

OPERATOR_CANCEL = "operator_cancel"


class OutcomeKind(StrEnum):
    """How an attempt ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    UNROUTABLE = "unroutable"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of one attempt.

    A failure with ``next_due_at`` retries, without it dead-letters. ``tags`` are the job's whole
    set when the handler added some, else None.
    """

    hold: Hold
    kind: OutcomeKind
    next_due_at: datetime | None = None
    cause: Cause | None = None
    failure_detail: str | None = None
    output: str | None = None
    tags: tuple[Tag, ...] | None = None


class AnswerStatus(StrEnum):
    """What became of a report."""

    APPLIED = "applied"
    ALREADY_APPLIED = "already applied"
    STALE = "stale"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Answer:
    """The store's answer to one report, with the state that stands when it was applied."""

    status: AnswerStatus
    state: JobState | None = None


_STALE = Answer(AnswerStatus.STALE)
_BUSY = Answer(AnswerStatus.BUSY)


def report_outcomes(
    connection: Connection,
    worker_id: str,
    reports: Sequence[Report],
    *,
    now: datetime,
    wait: bool = False,
) -> list[Answer]:
    """Apply ``reports`` of one worker, each fenced on its own; answers in input order.

    Without ``wait`` a job whose row, or whose child's row, is locked by somebody else is answered
    BUSY: report it again later, singly (contract section 4).
    """
    by_hold: dict[Hold, Report] = {}
    for report in reports:
        by_hold.setdefault(report.hold, report)
    sequences = {hold.sequence for hold in by_hold}
    if wait:
        held = ending.lock_roots(connection, sequences)
    else:
        held = {job.sequence: job for job in lock_jobs(connection, sequences, wait=False)}
    locked_elsewhere = stored(connection, sequences - held.keys())
    answers: dict[Hold, Answer] = {}
    moves: list[Move] = []
    applied: dict[int, Report] = {}
    for hold, report in by_hold.items():
        job = held.get(hold.sequence)
        if job is None:
            answers[hold] = _BUSY if hold.sequence in locked_elsewhere else _STALE
            continue
        match check_fence(job, worker_id, hold, now):
            case Fence.HELD:
                of_job = outcome_moves(job, report, now)
                answers[hold] = Answer(AnswerStatus.APPLIED, of_job[-1].edge.target)
                moves += of_job
                applied[hold.sequence] = report
            case Fence.ALREADY_APPLIED:
                answers[hold] = Answer(AnswerStatus.ALREADY_APPLIED, job.applied_outcome)
            case Fence.STALE:
                answers[hold] = _STALE
    for sequence in _write(connection, moves, held, now, wait=wait):
        answers[applied.pop(sequence).hold] = _BUSY
    _store_outputs(connection, applied.values())
    added = {sequence: report.tags for sequence, report in applied.items() if report.tags}
    replace_tags(connection, added)
    return [answers[report.hold] for report in reports]


def stored(connection: Connection, sequences: Collection[int]) -> set[int]:
    """Which of ``sequences`` are stored: a row that could not be locked may have been purged."""
    if not sequences:
        return set()
    found = in_array(connection.dialect.name, jobs.c.sequence, "sequences", BIG)
    statement = select(jobs.c.sequence).where(found)
    return set(connection.scalars(statement, {"sequences": array(connection, sequences, BIG)}))


def _write(
    connection: Connection,
    moves: Sequence[Move],
    held: dict[int, LockedJob],
    now: datetime,
    *,
    wait: bool,
) -> set[int]:
    """Write the moves; returns the jobs set aside because a child of theirs is locked."""
    if ending.write(connection, moves, held, now, wait=wait):
        return set()
    sequences = {move.job.sequence for move in moves}
    parents = {edge.parent for edge in read_reach(connection, sequences, sequences)} & sequences
    free = [move for move in moves if move.job.sequence not in parents]
    ending.write(connection, free, held, now, wait=wait)
    return parents


def outcome_moves(job: LockedJob, report: Report, now: datetime) -> list[Move]:
    """The edges that an accepted outcome takes: one, or two when a cancel was asked for."""
    match report.kind:
        case OutcomeKind.SUCCESS:
            return [Move.of(job, SUCCEEDED, now)]
        case OutcomeKind.CANCELLED:
            return [Move.of(job, CANCELLED_RUNNING, now, cause=asked_cancel(job))]
        case OutcomeKind.UNROUTABLE:
            return [Move.of(job, QUARANTINED, now, cause=report.cause)]
        case OutcomeKind.FAILURE if report.next_due_at is None:
            return [
                Move.of(
                    job,
                    DEAD_LETTERED,
                    now,
                    cause=report.cause,
                    failure_detail=report.failure_detail,
                )
            ]
        case OutcomeKind.FAILURE:
            retry = Move.of(
                job, RETRIED, now, due_at=report.next_due_at, failure_detail=report.failure_detail
            )
            return [retry, *pending_cancel(job, now)]


def pending_cancel(job: LockedJob, now: datetime) -> list[Move]:
    """The cancel that follows a retry at the same instant: a cancel is never forgotten."""
    if not job.cancel_pending:
        return []
    return [Move.of(job, CANCELLED_SCHEDULED, now, cause=asked_cancel(job))]


def asked_cancel(job: LockedJob) -> Cause:
    """The cause of a cancel that an operator asked for."""
    return Cause(OPERATOR_CANCEL, text=job.cancel_requested_by)


def _store_outputs(connection: Connection, reports: Iterable[Report]) -> None:
    rows = [
        {"job_sequence": report.hold.sequence, "output": report.output}
        for report in reports
        if report.output is not None and report.kind is OutcomeKind.SUCCESS
    ]
    if rows:
        connection.execute(insert(outputs), rows)

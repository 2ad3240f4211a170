"""Requeueing and cancelling a batch of an operation's members, each with its own audit row.

A batch waits for no row, so it can deadlock with nobody; members whose rows, or whose children's
rows, somebody holds are left out and tried again one by one.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import Connection, Uuid, select

from latchwork.bulk_views import BulkAction
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import cancel_edge, requeue_edge
from latchwork.store import audit, ending, operator_actions
from latchwork.store.dialects import array, in_array
from latchwork.store.moves import Cause, LockedJob, Move, lock_jobs
from latchwork.store.outcomes import OPERATOR_CANCEL
from latchwork.store.schema import jobs

UUID_TYPE: Uuid[UUID] = Uuid()

NOT_FOUND = "not_found"
REQUESTED = "requested"
DONE = {BulkAction.REQUEUE: "requeued", BulkAction.CANCEL: "cancelled"}


def act_on_free(
    connection: Connection,
    action: BulkAction,
    operation_id: UUID,
    job_ids: Sequence[UUID],
    *,
    actor: str,
    now: datetime,
) -> dict[UUID, str]:
    """Act on the jobs whose rows are free; what became of each. Those left out are held by others.

    A job that is in another state than the action needs is skipped: ``refused-STATE``.
    """
    sequences = _sequences(connection, job_ids)
    outcomes = dict.fromkeys(set(job_ids) - sequences.keys(), NOT_FOUND)
    held = {job.sequence: job for job in lock_jobs(connection, sequences.values(), wait=False)}
    moves: dict[UUID, Move] = {}
    asked: dict[UUID, LockedJob] = {}
    for job_id, sequence in sequences.items():
        job = held.get(sequence)
        if job is None:
            continue
        move = _move(action, job, actor, now)
        if move is not None:
            moves[job_id] = move
        elif action is BulkAction.CANCEL and job.state is JobState.LEASED:
            outcomes[job_id] = REQUESTED
            if not job.cancel_pending:
                asked[job_id] = job
        else:
            outcomes[job_id] = f"refused-{job.state.value}"
    operator_actions.request_cancels(
        connection, [job.sequence for job in asked.values()], actor, now
    )
    states = {job_id: job.state for job_id, job in asked.items()}
    if moves and ending.write(connection, list(moves.values()), held, now, wait=False):
        outcomes |= dict.fromkeys(moves, DONE[action])
        states |= {job_id: move.job.state for job_id, move in moves.items()}
    if not states:
        return outcomes
    audit.append_many(
        connection,
        [
            audit.Action(
                action.value,
                "job",
                str(job_id),
                {
                    "outcome": outcomes[job_id],
                    "from": state.value,
                    "operation": str(operation_id),
                },
                member_request(operation_id, job_id),
            )
            for job_id, state in states.items()
        ],
        at=now,
        actor=actor,
    )
    return outcomes


def act_on_one(
    connection: Connection,
    action: BulkAction,
    operation_id: UUID,
    job_id: UUID,
    *,
    actor: str,
    now: datetime,
) -> str:
    """Act on one job as an operator does, waiting for its row; what became of it."""
    act: Any = operator_actions.requeue if action is BulkAction.REQUEUE else operator_actions.cancel
    request_id = member_request(operation_id, job_id)
    result = act(connection, job_id, actor=actor, now=now, request_id=request_id)
    word: str = result.outcome.value
    return f"{word}-{result.state.value}" if word == "refused" else word


def member_request(operation_id: UUID, job_id: UUID) -> UUID:
    """The request id of acting on one member: the same however often it is tried."""
    return uuid5(operation_id, str(job_id))


def _move(action: BulkAction, job: LockedJob, actor: str, now: datetime) -> Move | None:
    if action is BulkAction.REQUEUE:
        edge = requeue_edge(job.state)
        return None if edge is None else Move.of(job, edge, now, due_at=now)
    edge = cancel_edge(job.state)
    cause = Cause(OPERATOR_CANCEL, text=actor)
    return None if edge is None else Move.of(job, edge, now, cause=cause)


def _sequences(connection: Connection, job_ids: Collection[UUID]) -> dict[UUID, int]:
    found = in_array(connection.dialect.name, jobs.c.id, "ids", UUID_TYPE)
    rows = connection.execute(
        select(jobs.c.id, jobs.c.sequence).where(found),
        {"ids": array(connection, job_ids, UUID_TYPE)},
    )
    return {row.id: row.sequence for row in rows}

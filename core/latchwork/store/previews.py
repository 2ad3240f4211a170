"""Previews: what an operator action would do now, counted up to a bound, without locks."""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, func, select

from latchwork.decisions.dependencies import settle
from latchwork.decisions.states import DependencyMode, JobState
from latchwork.decisions.transitions import requeue_edge
from latchwork.store.dialects import BIG, array, in_array
from latchwork.store.latches import read_reach
from latchwork.store.schema import edges, jobs
from latchwork.views import ActionPreview, BoundedCount

BOUND = 1_000


def preview_cancel(connection: Connection, job_id: UUID) -> ActionPreview | None:
    """What a cancel would do now; None for an unknown job.

    Beyond the bound only that there are more is told, and nothing of what would be released.
    """
    row = _state_of(connection, job_id)
    if row is None:
        return None
    state: JobState = row.state
    if state.terminal:
        return ActionPreview(
            allowed=False, state=state, reason=f"The job has ended: it is {state.label}."
        )
    cascade, released = would_cancel(connection, [row.sequence]), BoundedCount(0)
    if not cascade.capped:
        reach = read_reach(connection, [row.sequence], [row.sequence])
        counted_down = settle({row.sequence: JobState.CANCELLED}, reach).counted_down
        released = _bounded(_released(connection, counted_down)) if counted_down else released
    return ActionPreview(
        allowed=True,
        state=state,
        reason=_CANCEL_REASONS[state],
        cascade=cascade,
        released=released,
    )


_CANCEL_REASONS = {
    JobState.SCHEDULED: "The job has not started: it is cancelled at once.",
    JobState.AWAITING_PARENT: "The job waits for its parents: it is cancelled at once.",
    JobState.LEASED: "The job runs: its worker is asked to stop it, and says when it has.",
}


def preview_requeue(connection: Connection, job_id: UUID) -> ActionPreview | None:
    """What a requeue would do now; None for an unknown job. Takes no locks."""
    row = _state_of(connection, job_id)
    if row is None:
        return None
    state: JobState = row.state
    if requeue_edge(state) is None:
        reason = (
            f"Only Dead-Lettered and Quarantined jobs can be requeued; this one is {state.label}."
        )
        return ActionPreview(allowed=False, state=state, reason=reason)
    return ActionPreview(
        allowed=True,
        state=state,
        reason="The job becomes due now, with attempt 0 and its whole retry budget.",
        stays_cancelled=cancelled_below(connection, [row.sequence]),
    )


def _state_of(connection: Connection, job_id: UUID) -> Any:
    columns = select(jobs.c.sequence, jobs.c.state)
    return connection.execute(columns.where(jobs.c.id == job_id)).one_or_none()


def would_cancel(connection: Connection, sequences: Collection[int]) -> BoundedCount:
    """How many jobs below jobs that are cancelled go with them, counted up to the bound."""
    step = _children().where(edges.c.is_open, jobs.c.mode == DependencyMode.ON_SUCCESS)
    return _count_below(connection, step, sequences)


def cancelled_below(connection: Connection, sequences: Collection[int]) -> BoundedCount:
    """How many descendants were cancelled through these jobs, counted up to the bound."""
    step = _children().where(jobs.c.state == JobState.CANCELLED)
    return _count_below(connection, step, sequences)


def _children() -> Any:
    return select(edges.c.child_sequence.label("sequence")).join(
        jobs, jobs.c.sequence == edges.c.child_sequence
    )


def _count_below(connection: Connection, step: Any, sequences: Collection[int]) -> BoundedCount:
    of_roots = in_array(connection.dialect.name, edges.c.parent_sequence, "roots", BIG)
    below = step.where(of_roots).cte("below", recursive=True)
    below = below.union(step.join(below, below.c.sequence == edges.c.parent_sequence))
    bounded = select(below.c.sequence).limit(BOUND + 1).subquery()
    statement = select(func.count()).select_from(bounded)
    return _bounded(connection.scalar(statement, {"roots": array(connection, sequences, BIG)}) or 0)


def _released(connection: Connection, counted_down: Mapping[int, int]) -> int:
    some = sorted(counted_down)[: BOUND + 1]
    latches = select(jobs.c.sequence, jobs.c.parents_remaining).where(jobs.c.sequence.in_(some))
    return sum(
        1
        for row in connection.execute(latches)
        if row.parents_remaining == counted_down[row.sequence]
    )


def _bounded(count: int) -> BoundedCount:
    return BoundedCount(min(count, BOUND), count > BOUND)

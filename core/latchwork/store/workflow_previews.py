"""What acting on a workflow would do now, counted up to a bound, without locks."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    false,
    func,
    or_,
    select,
)  # fmt: skip

from latchwork.decisions.states import LIVE_STATES, TERMINAL_STATES, DependencyMode, JobState
from latchwork.decisions.workflows import RetryScope, status_of
from latchwork.store.queue_queries import COUNT_BOUND, bounded
from latchwork.store.schema import edges, jobs
from latchwork.store.workflow_queries import count_members
from latchwork.views import BoundedCount, RelatedJob
from latchwork.workflow_views import WorkflowMember, WorkflowPreview

MAX_NAMED = 20
"""Jobs that a preview names; of more it says that there are more."""

UNFINISHED_STATES = TERMINAL_STATES - {JobState.SUCCEEDED}

Counts = dict[JobState, BoundedCount]


def preview_cancel(connection: Connection, workflow_id: UUID) -> WorkflowPreview | None:
    """What cancelling the workflow would do now; None for an unknown one."""
    counts = _counts(connection, workflow_id)
    if counts is None:
        return None
    told = WorkflowPreview(
        allowed=True, reason="Every step that has not ended is cancelled.", status=status_of(counts)
    )
    waiting = _sum(counts, LIVE_STATES - {JobState.LEASED})
    running = _sum(counts, {JobState.LEASED})
    if not waiting.value and not running.value:
        return replace(told, allowed=False, reason="Every step of the workflow has ended.")
    return replace(
        told,
        members=waiting,
        requested=running,
        cascade=_count_outside(connection, workflow_id, _cancelled_below(workflow_id)),
    )


def preview_retry(
    connection: Connection, workflow_id: UUID, scope: RetryScope
) -> WorkflowPreview | None:
    """What retrying the workflow in ``scope`` would do now; None for an unknown one."""
    counts = _counts(connection, workflow_id)
    if counts is None:
        return None
    told = WorkflowPreview(allowed=False, reason="", status=status_of(counts), scope=scope)
    if not LIVE_STATES.isdisjoint(counts):
        reason = "Only a workflow that has ended can be retried: some of its steps have not."
        return replace(told, reason=reason, live=_live_members(connection, workflow_id))
    moved = _sum(counts, TERMINAL_STATES if scope is RetryScope.ALL else UNFINISHED_STATES)
    if not moved.value:
        return replace(told, reason="Every step has succeeded: there is nothing to retry.")
    below = None
    if scope is RetryScope.DOWNSTREAM:
        below = _succeeded_below(workflow_id)
        again = bounded(_count(connection, select(below.c.sequence)))
        moved = BoundedCount(moved.value + again.value, moved.capped or again.capped)
    outside = _dependents_outside(connection, workflow_id, scope, below)
    return replace(
        told,
        allowed=True,
        reason=_RETRY_REASONS[scope],
        members=moved,
        outside=outside[:MAX_NAMED],
        more_outside=len(outside) > MAX_NAMED,
    )


_RETRY_REASONS = {
    RetryScope.UNFINISHED: "Every step that has not succeeded runs again.",
    RetryScope.DOWNSTREAM: "Every step that has not succeeded runs again, and all that follow it.",
    RetryScope.ALL: "Every step runs again.",
}


def preview_restart(connection: Connection, workflow_id: UUID) -> WorkflowPreview | None:
    """What restarting the workflow would do now; None for an unknown one."""
    counts = _counts(connection, workflow_id)
    if counts is None:
        return None
    return WorkflowPreview(
        allowed=True,
        reason="A new workflow with the same steps starts now; this one stays as it is.",
        status=status_of(counts),
        members=_sum(counts, counts),
    )


def _counts(connection: Connection, workflow_id: UUID) -> Counts | None:
    return count_members(connection, [workflow_id]).get(workflow_id)


def _sum(counts: Counts, states: Collection[JobState]) -> BoundedCount:
    met = [counts[state] for state in states if state in counts]
    return BoundedCount(sum(one.value for one in met), any(one.capped for one in met))


def _live_members(connection: Connection, workflow_id: UUID) -> tuple[WorkflowMember, ...]:
    live = select(jobs.c.id, jobs.c.step, jobs.c.state).where(
        jobs.c.workflow_id == workflow_id, jobs.c.state.in_(sorted(LIVE_STATES))
    )
    return tuple(WorkflowMember(*row) for row in connection.execute(live.limit(MAX_NAMED)))


def _members(workflow_id: UUID, states: Collection[JobState]) -> Select[int]:
    return select(jobs.c.sequence).where(
        jobs.c.workflow_id == workflow_id, jobs.c.state.in_(sorted(states))
    )


def _cancelled_below(workflow_id: UUID) -> CTE:
    """The jobs that go with the live members of a workflow, members themselves among them."""
    child = jobs.alias("child")
    goes_along = (edges.c.is_open, child.c.mode == DependencyMode.ON_SUCCESS)
    return _below(child, _members(workflow_id, LIVE_STATES), *goes_along)


def _succeeded_below(workflow_id: UUID) -> CTE:
    """The succeeded members below those that have not."""
    child = jobs.alias("child")
    runs_again = (child.c.workflow_id == workflow_id, child.c.state == JobState.SUCCEEDED)
    return _below(child, _members(workflow_id, UNFINISHED_STATES), *runs_again)


def _below(child: FromClause, roots: Select[int], *tests: ColumnElement[bool]) -> CTE:
    """The jobs below ``roots``, through any ``child`` that passes the tests: ids, never paths."""
    step = (
        select(edges.c.child_sequence.label("sequence"))
        .join(child, child.c.sequence == edges.c.child_sequence)
        .where(*tests)
    )
    first = roots.cte("roots")
    below = step.join(first, first.c.sequence == edges.c.parent_sequence)
    below_all: CTE = below.cte("below", recursive=True)
    return below_all.union(step.join(below_all, below_all.c.sequence == edges.c.parent_sequence))


def _count_outside(connection: Connection, workflow_id: UUID, below: CTE) -> BoundedCount:
    outside = jobs.c.workflow_id.is_distinct_from(workflow_id)
    found = select(below.c.sequence).join(jobs, jobs.c.sequence == below.c.sequence).where(outside)
    return bounded(_count(connection, found))


def _count(connection: Connection, rows: Any) -> int:
    some = rows.limit(COUNT_BOUND + 1).subquery()
    return connection.scalar(select(func.count()).select_from(some)) or 0


def _dependents_outside(
    connection: Connection, workflow_id: UUID, scope: RetryScope, below: CTE | None
) -> tuple[RelatedJob, ...]:
    """Children of the moved members that are not of the workflow: those stay as they are."""
    states = TERMINAL_STATES if scope is RetryScope.ALL else UNFINISHED_STATES
    moved = edges.c.parent_sequence.in_(_members(workflow_id, states))
    again = false() if below is None else edges.c.parent_sequence.in_(select(below.c.sequence))
    child = jobs.alias("child")
    found = (
        select(child.c.id, child.c.wire_name, child.c.step, child.c.state, edges.c.is_open)
        .join(edges, edges.c.child_sequence == child.c.sequence)
        .where(or_(moved, again), child.c.workflow_id.is_distinct_from(workflow_id))
        .distinct()
        .limit(MAX_NAMED + 1)
    )
    return tuple(RelatedJob(*row) for row in connection.execute(found))

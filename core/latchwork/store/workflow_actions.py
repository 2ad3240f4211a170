"""What an operator does to whole workflows: cancel and restart, each with its audit rows.

Each holds the workflow's row first, so that no step is appended meanwhile, then its members' rows
in enqueue order (contract section 3). Retry is a file of its own.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, select
from uuid_utils.compat import uuid7

from latchwork.action_results import CancelOutcome
from latchwork.decisions.transitions import cancel_edge
from latchwork.store import audit, ending
from latchwork.store.dialects import limit_lock_seconds
from latchwork.store.enqueueing import NewJob, insert_jobs
from latchwork.store.moves import Cause, Move
from latchwork.store.operator_actions import LOCK_SECONDS, request_cancels
from latchwork.store.outcomes import OPERATOR_CANCEL
from latchwork.store.policies import decode_policy
from latchwork.store.schema import jobs, workflows
from latchwork.store.tags import decode_tags
from latchwork.store.workflow_rows import (
    Member,
    insert_workflow,
    lock_workflow,
    read_member_edges,
    read_members,
)
from latchwork.workflow_views import (
    CancelWorkflowResult,
    RestartWorkflowResult,
    WorkflowOutcome,
)


def cancel_workflow(
    connection: Connection,
    workflow_id: UUID,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> CancelWorkflowResult:
    """Cancel every live member: those that wait at once, those that run by request.

    ``request_id`` makes a repeat after a lost answer return the first answer.
    """
    limit_lock_seconds(connection, LOCK_SECONDS)
    if not lock_workflow(connection, workflow_id):
        return CancelWorkflowResult(WorkflowOutcome.NOT_FOUND)
    if earlier := audit.detail_of_request(connection, request_id):
        outcome = WorkflowOutcome(earlier["outcome"])
        return CancelWorkflowResult(outcome, earlier["cancelled"], earlier["requested"])
    found = [one for one in read_members(connection, workflow_id) if not one.state.terminal]
    held = ending.lock_roots(connection, [one.sequence for one in found])
    members = [one._replace(state=held[one.sequence].state) for one in found]
    live = [one for one in members if not one.state.terminal]
    if not live:
        return CancelWorkflowResult(WorkflowOutcome.REFUSED)
    edges_taken = {one: edge for one in live if (edge := cancel_edge(one.state))}
    cause = Cause(OPERATOR_CANCEL, text=actor)
    moves = [
        Move.of(held[one.sequence], edge, now, cause=cause) for one, edge in edges_taken.items()
    ]
    running = [one for one in live if one not in edges_taken]
    asked = [one for one in running if not held[one.sequence].cancel_pending]
    ending.write(connection, moves, held, now, wait=True)
    request_cancels(connection, [one.sequence for one in asked], actor, now)
    outcome = WorkflowOutcome.REQUESTED if running else WorkflowOutcome.CANCELLED
    if moves or asked:
        outcomes = dict.fromkeys(edges_taken, CancelOutcome.CANCELLED)
        outcomes |= dict.fromkeys(asked, CancelOutcome.REQUESTED)
        audit_members(connection, "cancel", workflow_id, outcomes, actor=actor, now=now)
        audit_workflow(
            connection, "cancel_workflow", workflow_id,
            {"outcome": outcome.value, "cancelled": len(moves), "requested": len(running)},
            actor=actor, now=now, request_id=request_id,
        )  # fmt: skip
    return CancelWorkflowResult(outcome, len(moves), len(running))


def restart_workflow(
    connection: Connection,
    workflow_id: UUID,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> RestartWorkflowResult:
    """Enqueue a new workflow from the stored steps, all due now; the old one stays as it is.

    The steps need not be of types that anybody here knows.
    """
    limit_lock_seconds(connection, LOCK_SECONDS)
    if not lock_workflow(connection, workflow_id):
        return RestartWorkflowResult(WorkflowOutcome.NOT_FOUND)
    if earlier := audit.detail_of_request(connection, request_id):
        return RestartWorkflowResult(WorkflowOutcome.RESTARTED, UUID(earlier["new_workflow"]))
    old = connection.execute(
        select(workflows.c.name, workflows.c.input).where(workflows.c.id == workflow_id)
    ).one()
    new_id = uuid7()
    insert_workflow(
        connection, new_id, name=old.name, now=now, input_json=old.input,
        restarted_from=workflow_id,
    )  # fmt: skip
    new = _copies(connection, workflow_id, new_id, now)
    insert_jobs(connection, new, now=now, ids_are_new=True)
    detail = {
        "outcome": WorkflowOutcome.RESTARTED.value,
        "new_workflow": str(new_id),
        "jobs": len(new),
    }
    audit_workflow(
        connection, "restart_workflow", workflow_id, detail,
        actor=actor, now=now, request_id=request_id,
    )  # fmt: skip
    return RestartWorkflowResult(WorkflowOutcome.RESTARTED, new_id)


def _copies(connection: Connection, workflow_id: UUID, new_id: UUID, now: datetime) -> list[NewJob]:
    """The members of a workflow as new jobs of another, parents first."""
    columns = (
        jobs.c.sequence, jobs.c.wire_name, jobs.c.queue, jobs.c.payload, jobs.c.retry_policy,
        jobs.c.tags, jobs.c.mode, jobs.c.step,
    )  # fmt: skip
    stored = connection.execute(
        select(*columns).where(jobs.c.workflow_id == workflow_id).order_by(jobs.c.sequence)
    ).all()
    ids = {row.sequence: uuid7() for row in stored}
    parents: dict[int, list[UUID]] = {row.sequence: [] for row in stored}
    for parent, child in read_member_edges(connection, workflow_id):
        parents[child].append(ids[parent])
    return [
        NewJob(
            id=ids[row.sequence],
            wire_name=row.wire_name,
            queue=row.queue,
            payload=row.payload,
            retry=decode_policy(row.retry_policy),
            due_at=now,
            tags=decode_tags(row.tags),
            parents=tuple(parents[row.sequence]),
            mode=row.mode,
            workflow_id=new_id,
            step=row.step,
        )
        for row in stored
    ]


def audit_members(
    connection: Connection,
    action: str,
    workflow_id: UUID,
    outcomes: Mapping[Member, str],
    *,
    actor: str,
    now: datetime,
) -> None:
    """One audit row for each member that was acted on, in enqueue order."""
    audit.append_many(
        connection,
        [
            audit.Action(
                action,
                "job",
                str(member.id),
                {"outcome": outcomes[member], "from": member.state, "workflow": str(workflow_id)},
            )
            for member in sorted(outcomes)
        ],
        at=now,
        actor=actor,
    )


def audit_workflow(
    connection: Connection,
    action: str,
    workflow_id: UUID,
    detail: dict[str, Any],
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None,
) -> None:
    """The audit row of the whole action, by which a repeat of the request is recognised."""
    audit.append(
        connection, at=now, actor=actor, action=action, subject_kind="workflow",
        subject=str(workflow_id), detail=detail, request_id=request_id,
    )  # fmt: skip

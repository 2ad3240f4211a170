"""What the monitor tells of workflows, and what acting on one would do and did."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import RetryScope, WorkflowStatus, status_of
from latchwork.views import BoundedCount, RelatedJob


@dataclass(frozen=True, slots=True)
class WorkflowView:
    """One workflow: how many of its members are in each state they are in at all."""

    id: UUID
    name: str
    created_at: datetime
    restarted_from: UUID | None
    counts: dict[JobState, BoundedCount]

    @property
    def status(self) -> WorkflowStatus:
        """What its members make of it."""
        return status_of(self.counts.keys())

    @property
    def size(self) -> BoundedCount:
        """How many members it has."""
        counts = self.counts.values()
        return BoundedCount(sum(one.value for one in counts), any(one.capped for one in counts))


@dataclass(frozen=True, slots=True)
class WorkflowDetail:
    """One workflow with what its page shows beside its graph; ``input`` is JSON text."""

    workflow: WorkflowView
    input: str | None
    restarted_as: tuple[UUID, ...]


@dataclass(frozen=True, slots=True)
class WorkflowPage:
    """One page of workflows, newest first; ``next`` and ``previous`` are cursors or None.

    ``partial`` says that the search stopped at its bound before the page was full: further matches,
    if any, are found by following the cursor.
    """

    workflows: tuple[WorkflowView, ...]
    next: str | None
    previous: str | None
    partial: bool = False


@dataclass(frozen=True, slots=True)
class WorkflowMember:
    """One step of a workflow, and the state its job was met in."""

    id: UUID
    step: str
    state: JobState


class WorkflowOutcome(StrEnum):
    """What became of an action on a workflow; UNCHANGED when there was nothing to do."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    RETRIED = "retried"
    RESTARTED = "restarted"
    UNCHANGED = "unchanged"
    REFUSED = "refused"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class CancelWorkflowResult:
    """The answer to cancelling a workflow.

    CANCELLED when every live member ended at once; REQUESTED when ``requested`` members run and
    their workers were asked to stop them; REFUSED when no member is live.
    """

    outcome: WorkflowOutcome
    cancelled: int = 0
    requested: int = 0


@dataclass(frozen=True, slots=True)
class RetryWorkflowResult:
    """The answer to retrying a workflow: how many members moved, or which are live."""

    outcome: WorkflowOutcome
    moved: int = 0
    live: tuple[WorkflowMember, ...] = ()


@dataclass(frozen=True, slots=True)
class RestartWorkflowResult:
    """The answer to restarting a workflow: the id of the new one."""

    outcome: WorkflowOutcome
    workflow_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class WorkflowPreview:
    """What an action on a workflow would do, before it is done.

    ``members`` would be moved (or, at a restart, enqueued anew), ``requested`` are running members
    that would be asked to stop. ``outside`` are dependents in no or another workflow: a cancel
    takes ``cascade`` jobs outside with it, a retry moves none of them, and names the first.
    """

    allowed: bool
    reason: str
    status: WorkflowStatus
    scope: RetryScope | None = None
    members: BoundedCount = BoundedCount(0)
    requested: BoundedCount = BoundedCount(0)
    cascade: BoundedCount = BoundedCount(0)
    live: tuple[WorkflowMember, ...] = ()
    outside: tuple[RelatedJob, ...] = ()
    more_outside: bool = False

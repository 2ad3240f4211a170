"""What acting on many jobs at once would do and does: operations, their members, their previews."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from latchwork.views import BoundedCount, JobFilter, JobView


class BulkAction(StrEnum):
    """What is done to every member."""

    REQUEUE = "requeue"
    CANCEL = "cancel"


class BulkState(StrEnum):
    """Where an operation is."""

    LISTING = "listing"
    """Its members are being listed; none was touched yet."""
    WORKING = "working"
    WAITING = "waiting"
    """The canary was tried; the rest waits for the operator's word."""
    FINISHED = "finished"
    STOPPED = "stopped"


class BulkOutcome(StrEnum):
    """What became of an operator's word on an operation."""

    CONTINUED = "continued"
    STOPPED = "stopped"
    REFUSED = "refused"
    NOT_FOUND = "not_found"


BULK_DONE = frozenset({"requeued", "cancelled", "requested"})
"""The outcomes of members that were acted on; every other one says why a member was skipped:
``refused-STATE``, ``not_found`` or ``busy``."""


@dataclass(frozen=True, slots=True)
class BulkOperation:
    """One requeue or cancel of many jobs, worked off in small transactions.

    ``job_filter`` found the members; ``listed`` of them are stored so far, ``total`` is known when
    all are. ``outcomes`` says how often each answer was given. ``worker`` is who works on it now,
    None when nobody does. Members beyond ``allowed`` wait for the operator's word.
    """

    id: UUID
    action: BulkAction
    actor: str
    job_filter: JobFilter
    created_at: datetime
    listed: int
    total: int | None
    done: int
    skipped: int
    outcomes: dict[str, int]
    allowed: int | None
    worker: str | None
    finished_at: datetime | None
    stopped_by: str | None

    @property
    def tried(self) -> int:
        """Members that were acted on or skipped."""
        return self.done + self.skipped

    @property
    def state(self) -> BulkState:
        """Where the operation is."""
        if self.stopped_by is not None:
            return BulkState.STOPPED
        if self.finished_at is not None:
            return BulkState.FINISHED
        if self.total is None:
            return BulkState.LISTING
        if self.allowed is not None and self.tried >= self.allowed:
            return BulkState.WAITING
        return BulkState.WORKING


@dataclass(frozen=True, slots=True)
class BulkMember:
    """One job of an operation: what was answered, None while it was not tried; and the job now."""

    number: int
    job_id: UUID
    outcome: str | None
    job: JobView | None


@dataclass(frozen=True, slots=True)
class BulkPreview:
    """What acting on all jobs of a filter would do now.

    ``job_filter`` is narrowed to the states that the action is legal in; None when none is left.
    ``cascade`` counts the waiting jobs that could be cancelled with them, ``stays_cancelled`` the
    cancelled ones that a requeue does not bring back: both of the first thousand members, at most.
    """

    action: BulkAction
    job_filter: JobFilter | None
    count: BoundedCount
    cascade: BoundedCount = BoundedCount(0)
    stays_cancelled: BoundedCount = BoundedCount(0)

"""The answers to operator actions on one job."""

from dataclasses import dataclass
from enum import StrEnum

from latchwork.decisions.states import JobState


class CancelOutcome(StrEnum):
    """What became of a cancel."""

    CANCELLED = "cancelled"
    REQUESTED = "requested"
    REFUSED = "refused"
    NOT_FOUND = "not_found"


class RequeueOutcome(StrEnum):
    """What became of a requeue."""

    REQUEUED = "requeued"
    REFUSED = "refused"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class CancelResult:
    """The answer to a cancel; ``state`` is the state the job was met in, None when not found."""

    outcome: CancelOutcome
    state: JobState | None


@dataclass(frozen=True, slots=True)
class RequeueResult:
    """The answer to a requeue; ``state`` is the state the job was met in, None when not found."""

    outcome: RequeueOutcome
    state: JobState | None

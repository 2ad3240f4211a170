"""What the pages of operations on many jobs show: progress, reasons, the canary, the members."""

from dataclasses import dataclass

from latchwork.bulk_views import (
    BULK_DONE,
    BulkAction,
    BulkMember,
    BulkOperation,
    BulkPreview,
    BulkState,
)
from latchwork.decisions.states import JobState
from latchwork.views import JobFilter, JobView
from latchwork_console.actions.results import skip_reason
from latchwork_console.console import Permission
from latchwork_console.formatting import plural
from latchwork_console.job_filters import FilterChip, job_chips

PERMISSIONS = {
    BulkAction.REQUEUE: Permission.REQUEUE,
    BulkAction.CANCEL: Permission.CANCEL,
}
"""What an action on many jobs asks of whoever begins, continues or stops it."""

_DONE = {
    "requeued": "requeued",
    "cancelled": "cancelled",
    "requested": "asked to stop",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """How many members were answered alike."""

    count: int
    words: str
    done: bool


@dataclass(frozen=True, slots=True)
class Canary:
    """The member that went first: its job as it is now, and how it fares."""

    job: JobView | None
    sentence: str
    mood: str


@dataclass(frozen=True, slots=True)
class OperationProgress:
    """The part of an operation's page that changes."""

    operation: BulkOperation
    sentence: str
    reasons: tuple[Reason, ...]
    canary: Canary | None
    permitted: bool


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member and what became of it, in words."""

    member: BulkMember
    words: str


@dataclass(frozen=True, slots=True)
class OperationContext(OperationProgress):
    """The page of one operation."""

    chips: tuple[FilterChip, ...]
    members: tuple[MemberRow, ...]
    after: int
    next_after: int | None


@dataclass(frozen=True, slots=True)
class OperationRow:
    """An operation in the list of them."""

    operation: BulkOperation
    sentence: str
    filter_words: str


@dataclass(frozen=True, slots=True)
class OperationsContext:
    """The newest operations."""

    rows: tuple[OperationRow, ...]


@dataclass(frozen=True, slots=True)
class MatchingContext:
    """The page that asks once more before all jobs of a filter are acted on."""

    preview: BulkPreview
    chips: tuple[FilterChip, ...]
    route: str
    back: str


def progress_of(
    operation: BulkOperation, canary: BulkMember | None, *, permitted: bool
) -> OperationProgress:
    """How far an operation is; ``canary`` is its first member, if that went alone."""
    return OperationProgress(
        operation=operation,
        sentence=sentence_of(operation),
        reasons=reasons_of(operation),
        canary=None if canary is None else _canary(canary),
        permitted=permitted,
    )


def sentence_of(operation: BulkOperation) -> str:
    """Where an operation is, in a sentence that is true also when nobody works on it."""
    if operation.state is BulkState.STOPPED:
        return f"Stopped by {operation.stopped_by}. {_left(operation)} not tried."
    if operation.state is BulkState.FINISHED:
        return "Finished: no job matched." if operation.total == 0 else "Finished."
    if operation.state is BulkState.WAITING:
        return f"One went first. {_left(operation)} waiting for your word."
    doing = "Listing its jobs" if operation.state is BulkState.LISTING else "Under way"
    if operation.worker is None:
        return f"{doing}: nobody is at it this moment; the next node or console takes it up."
    return f"{doing}, by {operation.worker}."


def reasons_of(operation: BulkOperation) -> tuple[Reason, ...]:
    """What became of the members tried so far, the done ones first."""
    reasons = [
        Reason(count, words_of(operation.action, outcome), outcome in BULK_DONE)
        for outcome, count in operation.outcomes.items()
    ]
    return tuple(sorted(reasons, key=lambda one: (not one.done, -one.count)))


def words_of(action: BulkAction, outcome: str | None) -> str:
    """What became of a member, in words."""
    if outcome is None:
        return "not tried yet"
    if outcome in _DONE:
        return _DONE[outcome]
    if outcome == "busy":
        return "skipped: another transaction held it for too long"
    _, _, state = outcome.partition("-")
    met = JobState(state) if state in set(JobState) else None
    return f"skipped: {skip_reason(action.value, met)}"


def words_of_filter(job_filter: JobFilter) -> str:
    """Which jobs, in a line: ``Dead-Lettered, queue emails``."""
    parts = [" or ".join(state.label for state in job_filter.states)]
    parts += [f"{chip.label} {chip.value}" for chip in job_chips(job_filter)]
    return ", ".join(part for part in parts if part)


def _left(operation: BulkOperation) -> str:
    known = operation.listed if operation.total is None else operation.total
    left = known - operation.tried
    return f"{plural(left, 'job')} {'is' if left == 1 else 'are'}"


def _canary(member: BulkMember) -> Canary:
    job = member.job
    if member.outcome is None:
        return Canary(job, "It was not tried yet.", "calm")
    if member.outcome not in BULK_DONE:
        return Canary(job, "It was skipped, so it says nothing about the others.", "warn")
    if job is None:
        return Canary(job, "It is no longer stored, so how it ended is not known.", "warn")
    return Canary(job, *_FARES[job.state])


_FARES = {
    JobState.SCHEDULED: ("It is due and no node has taken it yet, or it waits to retry.", "calm"),
    JobState.AWAITING_PARENT: ("It waits for its parents.", "calm"),
    JobState.LEASED: ("It runs.", "calm"),
    JobState.SUCCEEDED: ("It succeeded: the cause seems mended.", "good"),
    JobState.CANCELLED: ("It was cancelled, so it says nothing about the others.", "warn"),
    JobState.DEAD_LETTERED: ("It failed again: the others would too.", "bad"),
    JobState.QUARANTINED: ("No node could route it: the others would end there too.", "bad"),
}

"""Latchwork: a job scheduler with leases, latches and an append-only transition log."""

from latchwork.application import Latchwork
from latchwork.context import Cancellation, DependencyOutput, JobContext
from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import CancelReason, DependencyMode, HistoryPolicy, JobState
from latchwork.decisions.workflows import RetryScope, WorkflowStatus
from latchwork.errors import (
    AmbiguousAncestor,
    DuplicateJob,
    GiveUp,
    HistoryOff,
    InvalidConnection,
    InvalidValue,
    InvalidWorkflow,
    JobCancelled,
    LatchworkError,
    OutcomeUnknown,
    OutputTooLarge,
    Retry,
    RetryTransaction,
    SchemaOutdated,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    TooManyParents,
    UnknownParent,
    ValueTooLarge,
)
from latchwork.jobs import JobCall, JobType
from latchwork.log_tail import LogTail
from latchwork.observers import ObserverContext
from latchwork.settings import Settings
from latchwork.views import JobFilter, TransitionView
from latchwork.workflows import StartedWorkflow, Steps, Workflow

__all__ = [
    "AmbiguousAncestor",
    "CancelReason",
    "Cancellation",
    "DependencyMode",
    "DependencyOutput",
    "DuplicateJob",
    "GiveUp",
    "HistoryOff",
    "HistoryPolicy",
    "InvalidConnection",
    "InvalidValue",
    "InvalidWorkflow",
    "JobCall",
    "JobCancelled",
    "JobContext",
    "JobFilter",
    "JobState",
    "JobType",
    "Latchwork",
    "LatchworkError",
    "LogTail",
    "ObserverContext",
    "OutcomeUnknown",
    "OutputTooLarge",
    "Retry",
    "RetryPolicy",
    "RetryScope",
    "RetryTransaction",
    "SchemaOutdated",
    "Settings",
    "StartedWorkflow",
    "Steps",
    "StoreBusy",
    "StoreError",
    "StoreUnavailable",
    "TooManyParents",
    "TransitionView",
    "UnknownParent",
    "ValueTooLarge",
    "Workflow",
    "WorkflowStatus",
]

"""Every error Latchwork raises: the whole tree, each with its data and what to do next.

LatchworkError
├── InvalidValue              a value no store may hold
│   ├── InvalidSchedule       a cron expression, zone or policy that no schedule can have
│   └── ValueTooLarge         a value over its bound (contract section 9)
│       └── OutputTooLarge
├── DuplicateJob  UnknownParent  TooManyParents  InvalidWorkflow
├── AmbiguousAncestor
├── HistoryOff
├── StoreError
│   ├── StoreBusy  StoreUnavailable  OutcomeUnknown
│   ├── SchemaOutdated  InvalidConnection  RetryTransaction
└── AppNotFound  MissingExtra
Retry  GiveUp  JobCancelled   what a handler raises
"""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from latchwork.decisions.states import CancelReason


class LatchworkError(Exception):
    """The base of every error raised by Latchwork."""


class InvalidValue(LatchworkError, ValueError):
    """A value that must not be stored; ``field`` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class InvalidSchedule(InvalidValue):
    """A cron expression, a zone or a policy that no schedule can have; ``field`` says which."""


class ValueTooLarge(InvalidValue):
    """A value over its bound; ``field``, ``size`` and ``bound`` say which, how large, how much."""

    def __init__(self, field: str, size: int, bound: int, unit: str) -> None:
        super().__init__(field, f"is {size:,} {unit}; at most {bound:,} are allowed")
        self.size = size
        self.bound = bound


class OutputTooLarge(ValueTooLarge):
    """An output over 65,536 bytes: keep the data elsewhere and set a reference as the output."""


class DuplicateJob(LatchworkError):
    """A job with this id is stored already; it was not touched."""

    def __init__(self, job_id: UUID) -> None:
        super().__init__(
            f"job {job_id} exists already; pass exist_ok=True to accept that, or use a new id"
        )
        self.job_id = job_id


class UnknownParent(LatchworkError):
    """A parent that is not stored (never was, was purged, or is the job itself)."""

    def __init__(self, parent_id: UUID) -> None:
        super().__init__(f"parent job {parent_id} does not exist; nothing was enqueued")
        self.parent_id = parent_id


class TooManyParents(LatchworkError):
    """More distinct parents than one job may wait on."""

    def __init__(self, count: int, bound: int) -> None:
        super().__init__(
            f"{count} parents given, at most {bound} are allowed; join them through a job between"
        )
        self.count = count
        self.bound = bound


class InvalidWorkflow(LatchworkError):
    """A workflow that cannot be enqueued: nothing was written."""


class AmbiguousAncestor(LatchworkError):
    """Two ancestors answer to the name that was asked for: ask by job id instead."""

    def __init__(self, name: str) -> None:
        super().__init__(f"more than one ancestor is named {name!r}; ask by job id")
        self.name = name


class HistoryOff(LatchworkError):
    """An observer cannot be registered while nothing is logged: set another history policy."""

    def __init__(self, observer: str) -> None:
        super().__init__(
            f"observer {observer!r} has nothing to observe while the history policy is off; "
            "set it to transitions first"
        )
        self.observer = observer


class StoreError(LatchworkError):
    """The database did not do what was asked."""


class StoreBusy(StoreError):
    """Deadlocks, serialization failures or a held lock outlasted the retries: try again."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, or the connection broke; nothing is known to be written."""


class OutcomeUnknown(StoreError):
    """The answer to a write was lost, the database stayed away: look up ``ids`` and then repeat."""

    def __init__(self, ids: Sequence[UUID]) -> None:
        names = ", ".join(str(one) for one in ids[:5]) + (", ..." if len(ids) > 5 else "")
        super().__init__(f"the database went away; unknown whether this was written: {names}")
        self.ids = tuple(ids)


class SchemaOutdated(StoreError):
    """The database's schema is older or newer than this version: run ``latchwork migrate``."""


class InvalidConnection(StoreError):
    """A caller's connection that cannot carry a transactional enqueue."""


class RetryTransaction(StoreError):
    """The caller's own transaction lost a race: roll it back and run it again from its start."""


class AppNotFound(LatchworkError):
    """``MODULE:APP`` does not name a Latchwork application."""


class MissingExtra(LatchworkError):
    """Something was asked for whose optional packages are not installed; ``extra`` names them."""

    def __init__(self, extra: str, package: str) -> None:
        super().__init__(f'{package} is not installed: pip install "latchwork[{extra}]"')
        self.extra = extra


class Retry(Exception):
    """Raised by a handler: this attempt failed, try again after the given delay.

    ``after`` is seconds or a timedelta; None leaves the delay to the job's retry policy. At the
    attempt ceiling the job is dead-lettered all the same.
    """

    def __init__(self, after: float | timedelta | None = None, reason: str = "") -> None:
        super().__init__(reason or "the handler asked for a retry")
        seconds = after.total_seconds() if isinstance(after, timedelta) else after
        if seconds is not None and not 0 <= seconds <= 10**9:
            raise ValueError("Retry(after=...) must be from 0 to 1,000,000,000 seconds")
        self.after_seconds = seconds


class GiveUp(Exception):
    """Raised by a handler: dead-letter this job now, whatever attempts are left."""


class JobCancelled(Exception):
    """Raised in a handler that stops because its cancellation token fired."""

    def __init__(self, reason: CancelReason | None = None) -> None:
        super().__init__(f"the job was asked to stop: {reason.value if reason else 'cancelled'}")
        self.reason = reason

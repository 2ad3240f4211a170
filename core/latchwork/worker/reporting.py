"""From the way an attempt ended to what the store is told of it (contract section 2)."""

import asyncio
import random
import traceback
from dataclasses import dataclass

from latchwork.clock import Clock
from latchwork.context import JobContext
from latchwork.decisions.retries import next_due
from latchwork.decisions.states import CancelReason
from latchwork.errors import GiveUp, JobCancelled, Retry
from latchwork.store.claiming import ClaimedJob
from latchwork.store.moves import Cause
from latchwork.store.outcomes import OutcomeKind, Report
from latchwork.values import (
    MAX_CAUSE_TEXT_BYTES,
    MAX_FAILURE_DETAIL_BYTES,
    MAX_NAME_CHARACTERS,
    cut_text,
    storable_text,
)

ATTEMPTS_EXHAUSTED = "attempts_exhausted"
GAVE_UP = "gave_up"
UNKNOWN_WIRE_NAME = "unknown_wire_name"
PAYLOAD_REFUSED = "payload_refused"


@dataclass(frozen=True, slots=True)
class Reporter:
    """Makes reports. ``keep_detail`` is False where no failure text may be stored."""

    clock: Clock
    keep_detail: bool

    def success(self, job: ClaimedJob, context: JobContext) -> Report:
        """The handler returned: that is a success, also after its token fired."""
        return Report(job.hold, OutcomeKind.SUCCESS, output=context.output, tags=context.added_tags)

    def unroutable(self, job: ClaimedJob, code: str, problem: str) -> Report:
        """The job could not be handed to a handler."""
        return Report(job.hold, OutcomeKind.UNROUTABLE, cause=self._cause(code, None, problem))

    def timed_out(self, job: ClaimedJob, context: JobContext, timeout_seconds: float) -> Report:
        """The attempt ended, but only after its timeout had fired the token."""
        problem = f"the attempt took longer than its timeout of {timeout_seconds:g} s"
        return self.failure(job, context, TimeoutError(problem))

    def failure(self, job: ClaimedJob, context: JobContext, error: BaseException) -> Report:
        """The attempt failed: due again under its job's own retry policy, or dead-lettered."""
        after_seconds = error.after_seconds if isinstance(error, Retry) else None
        next_due_at = None
        if not isinstance(error, GiveUp):
            next_due_at = next_due(
                job.retry, job.attempt, self.clock.now(),
                chance=random.random(), after_seconds=after_seconds,  # noqa: S311 - jitter
            )  # fmt: skip
        kind, message = type_name(error), message_of(error)
        code = GAVE_UP if isinstance(error, GiveUp) else ATTEMPTS_EXHAUSTED
        return Report(
            job.hold,
            OutcomeKind.FAILURE,
            next_due_at=next_due_at,
            cause=self._cause(code, kind, message) if next_due_at is None else None,
            failure_detail=failure_detail(kind, message, error) if self.keep_detail else None,
            tags=context.added_tags,
        )

    def stopped(
        self, job: ClaimedJob, context: JobContext, timeout_seconds: float | None
    ) -> Report | None:
        """The handler stopped because its token fired; None if that is nothing to report."""
        reasons = context.cancellation.reasons
        if CancelReason.OPERATOR_CANCEL in reasons:
            return Report(job.hold, OutcomeKind.CANCELLED, tags=context.added_tags)
        if reasons[0] is CancelReason.TIMEOUT and timeout_seconds is not None:
            return self.timed_out(job, context, timeout_seconds)
        return None

    def _cause(self, code: str, kind: str | None, problem: str) -> Cause:
        text = cut_text(storable_text(problem), MAX_CAUSE_TEXT_BYTES) if self.keep_detail else None
        return Cause(code, kind, text)


def stops_when_asked(error: BaseException, *, is_async: bool) -> bool:
    """Whether ``error`` is how a handler ends that heeds its cancellation token."""
    return isinstance(error, JobCancelled) or (
        is_async and isinstance(error, asyncio.CancelledError)
    )


def type_name(error: BaseException) -> str:
    """The exception's type as tracebacks name it."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    return storable_text(name)[:MAX_NAME_CHARACTERS]


def message_of(error: BaseException) -> str:
    """What the exception says; one that cannot even be told is described."""
    try:
        return str(error)
    except Exception as failure:  # noqa: BLE001 - a handler's exception may do anything
        return f"(its message cannot be shown: str() raised {type(failure).__name__})"


def failure_detail(kind: str, message: str, error: BaseException) -> str:
    """Type, message and traceback, at most 8,192 bytes; the message first, so that it survives."""
    # The first frame is ours: where the handler was called.
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
    try:
        lines = traceback.format_exception(type(error), error, frames)
    except Exception as failure:  # noqa: BLE001
        lines = [f"(no traceback: {type(failure).__name__})"]
    head = f"{kind}: {message}" if message else kind
    return cut_text(storable_text("\n\n".join([head, "".join(lines)])), MAX_FAILURE_DETAIL_BYTES)

"""Running handlers: one attempt of one job, from its claim to the report of its end."""

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    suppress,
)
from functools import partial
from typing import Any

from pydantic import ValidationError

from latchwork.context import JobContext
from latchwork.decisions.leases import Hold
from latchwork.decisions.states import CancelReason
from latchwork.jobs import JobType, explain
from latchwork.store.claiming import ClaimedJob
from latchwork.store.database import Database
from latchwork.store.outcomes import Report
from latchwork.tracing import AttemptSpan
from latchwork.worker.reporting import (
    PAYLOAD_REFUSED,
    UNKNOWN_WIRE_NAME,
    Reporter,
    message_of,
    stops_when_asked,
)
from latchwork.worker.threads import DaemonThreads

Handler = JobType[..., Any]
Scope = AbstractAsyncContextManager[Any] | AbstractContextManager[Any]
AttemptScope = Callable[[JobContext], Scope]
"""Opens what one attempt needs, such as a database session: entered before the handler is called,
left before the outcome is reported."""


class Attempt:
    """One claimed job on this node."""

    __slots__ = ("begun", "context", "ended", "hold", "job", "report", "span", "task", "timer")

    def __init__(self, job: ClaimedJob, hold: Hold, context: JobContext) -> None:
        self.job = job
        self.hold = hold
        self.context = context
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.span: AttemptSpan | None = None
        self.begun = False
        """Whether it is an interruptible handler that has been entered."""
        self.ended = False
        """Whether none of its code runs any more."""
        self.report: Report | None = None
        """What is to be reported, once it has ended; None for an end that is not reported."""


class Execution:
    """Starts attempts on the running loop and in threads; ``on_end`` hears of each end.

    ``on_end`` is called on the loop's thread.
    """

    def __init__(
        self,
        job_types: Mapping[str, Handler],
        database: Database,
        *,
        slots: int,
        attempt_scope: AttemptScope | None,
        on_end: Callable[[Attempt], None],
    ) -> None:
        self._job_types = job_types
        self._database = database
        self._scope = attempt_scope
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._threads = DaemonThreads("latchwork-handler", slots)
        self._reporter = Reporter(database.clock, not database.settings.disable_failure_detail)

    def start(self, job: ClaimedJob, hold: Hold) -> Attempt:
        """Begin one attempt. A job that cannot be routed has ended when this returns."""
        attempt = Attempt(job, hold, JobContext(job, self._database))
        if self._database.tracing is not None:
            attempt.span = self._database.tracing.begin_attempt(job)
        job_type = self._job_types.get(job.wire_name)
        if job_type is None:
            problem = f"no handler is registered for {job.wire_name}"
            self._end(attempt, self._reporter.unroutable(job, UNKNOWN_WIRE_NAME, problem))
            return attempt
        try:
            arguments = job_type.arguments(job.payload)
        except Exception as error:  # noqa: BLE001 - a validator of the user's may raise anything
            problem = explain(error) if isinstance(error, ValidationError) else message_of(error)
            self._end(attempt, self._reporter.unroutable(job, PAYLOAD_REFUSED, problem))
            return attempt
        if job_type.timeout_seconds is not None:
            attempt.timer = self._loop.call_later(
                job_type.timeout_seconds, self.fire, attempt, CancelReason.TIMEOUT
            )
        within = contextvars.copy_context() if attempt.span is None else attempt.span.context()
        if job_type.is_async:
            running = self._run_async(attempt, job_type, arguments)
            attempt.task = self._loop.create_task(running, context=within)
        elif self._scope is None:
            self._threads.submit(partial(within.run, self._run_plain, attempt, job_type, arguments))
        else:
            running = self._run_plain_scoped(attempt, job_type, arguments, self._scope)
            attempt.task = self._loop.create_task(running, context=within)
        return attempt

    def fire(self, attempt: Attempt, reason: CancelReason) -> None:
        """Fire the attempt's token; an interruptible ``async`` handler is cancelled with it."""
        if attempt.ended or not attempt.context.cancellation.fire(reason):
            return
        # A task cancelled before its first step would end without ever running our code.
        if attempt.begun and attempt.task is not None:
            attempt.task.cancel()

    def close(self) -> None:
        """Let idle handler threads end."""
        self._threads.close()

    async def _run_async(
        self, attempt: Attempt, job_type: Handler, arguments: dict[str, Any]
    ) -> None:
        context = attempt.context
        try:
            if job_type.interrupt:
                if context.cancellation.requested:
                    raise asyncio.CancelledError
                attempt.begun = True
            if self._scope is None:
                await job_type.function(context, **arguments)
            else:
                async with _opened(self._scope(context), context):
                    await job_type.function(context, **arguments)
        except GeneratorExit:
            raise  # the loop is gone, and with it whoever would report
        except BaseException as error:  # noqa: BLE001 - whatever it raises is the attempt's end
            self._end(attempt, self._after_error(attempt, job_type, error))
        else:
            self._end(attempt, self._after_return(attempt, job_type))

    def _run_plain(self, attempt: Attempt, job_type: Handler, arguments: dict[str, Any]) -> None:
        error = _call_plain(job_type, attempt.context, arguments)
        report = (
            self._after_return(attempt, job_type)
            if error is None
            else self._after_error(attempt, job_type, error)
        )
        with suppress(RuntimeError):  # the loop is closed: the node has stopped without this thread
            self._loop.call_soon_threadsafe(self._end, attempt, report)

    async def _run_plain_scoped(
        self, attempt: Attempt, job_type: Handler, arguments: dict[str, Any], opening: AttemptScope
    ) -> None:
        context = attempt.context
        try:
            scope = opening(context)
            if isinstance(scope, AbstractAsyncContextManager):
                async with _opened(scope, context):
                    await self._in_thread(partial(_call_plain, job_type, context, arguments))
            else:
                await self._in_thread(
                    partial(_call_plain_scoped, job_type, context, arguments, scope)
                )
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001
            self._end(attempt, self._after_error(attempt, job_type, error))
        else:
            self._end(attempt, self._after_return(attempt, job_type))

    async def _in_thread(self, work: Callable[[], BaseException | None]) -> None:
        """Run ``work`` in a handler thread and raise the exception it returns."""
        done: asyncio.Future[BaseException | None] = self._loop.create_future()
        in_context = contextvars.copy_context()

        def run() -> None:
            error = in_context.run(work)
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done.set_result, error)

        self._threads.submit(run)
        error = await done
        if error is not None:
            raise error

    def _after_return(self, attempt: Attempt, job_type: Handler) -> Report:
        context = attempt.context
        limit = job_type.timeout_seconds
        if limit is not None and CancelReason.TIMEOUT in context.cancellation.reasons:
            return self._reporter.timed_out(attempt.job, context, limit)
        return self._reporter.success(attempt.job, context)

    def _after_error(
        self, attempt: Attempt, job_type: Handler, error: BaseException
    ) -> Report | None:
        context = attempt.context
        if context.cancellation.requested and stops_when_asked(error, is_async=job_type.is_async):
            return self._reporter.stopped(attempt.job, context, job_type.timeout_seconds)
        if attempt.span is not None:
            attempt.span.failed(error)
        return self._reporter.failure(attempt.job, context, error)

    def _end(self, attempt: Attempt, report: Report | None) -> None:
        attempt.report = report
        attempt.ended = True
        if attempt.timer is not None:
            attempt.timer.cancel()
        if attempt.span is not None:
            attempt.span.end(None if report is None else report.kind.value)
        self._on_end(attempt)


def _call_plain(
    job_type: Handler, context: JobContext, arguments: dict[str, Any]
) -> BaseException | None:
    """Call a plain handler; returns what it raised, so that nothing it raises ends the thread."""
    try:
        result = job_type.function(context, **arguments)
    except BaseException as error:  # noqa: BLE001
        return error
    if inspect.iscoroutine(result):
        result.close()
        return TypeError(f"the handler of {job_type.wire_name} returned a coroutine: use async def")
    return None


def _call_plain_scoped(
    job_type: Handler,
    context: JobContext,
    arguments: dict[str, Any],
    scope: AbstractContextManager[Any],
) -> BaseException | None:
    try:
        with scope as context.scope:
            error = _call_plain(job_type, context, arguments)
            if error is not None:
                raise error
    except BaseException as error:  # noqa: BLE001
        return error
    return None


@asynccontextmanager
async def _opened(scope: Scope, context: JobContext) -> AsyncIterator[None]:
    """Enter a scope of either kind around an ``async`` handler."""
    if isinstance(scope, AbstractAsyncContextManager):
        async with scope as context.scope:
            yield
    else:
        with scope as context.scope:
            yield

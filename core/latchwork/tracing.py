"""OpenTelemetry spans, on messaging conventions: one for each enqueue and for each attempt.

Nothing of OpenTelemetry is imported before ``Tracing`` is made, which happens only where the
setting ``tracing`` is on. An attempt's span links to the span that enqueued its job, through the
W3C ``traceparent`` stored with the job: they may be days and processes apart.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

P = ParamSpec("P")
R = TypeVar("R")

SYSTEM = "latchwork"


class TracedJob(Protocol):
    """What a span says of a claimed job."""

    @property
    def id(self) -> UUID:
        """Its id."""

    @property
    def wire_name(self) -> str:
        """Its type."""

    @property
    def queue(self) -> str:
        """Where it was claimed from."""

    @property
    def attempt(self) -> int:
        """Which attempt this is."""

    @property
    def trace_context(self) -> str | None:
        """The traceparent of its enqueuer."""


class Tracing:
    """Makes the spans of one application; the tracer provider is the process's own.

    Raises:
        ImportError: opentelemetry-api is not installed.
    """

    def __init__(self) -> None:
        from opentelemetry import trace
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._trace = trace
        self._tracer: Tracer = trace.get_tracer("latchwork")
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def sending(self) -> Iterator[None]:
        """A producer span around an enqueue; what is enqueued inside names it."""
        kind = self._trace.SpanKind.PRODUCER
        with self._tracer.start_as_current_span("send", kind=kind) as span:
            span.set_attribute("messaging.system", SYSTEM)
            span.set_attribute("messaging.operation.name", "enqueue")
            span.set_attribute("messaging.operation.type", "send")
            yield

    def sent(self, job_id: UUID, wire_name: str, queue: str) -> str | None:
        """Describe the current span by a job it enqueues; the traceparent to store with it."""
        span = self._trace.get_current_span()
        span.update_name(f"send {queue}")
        span.set_attribute("messaging.destination.name", queue)
        span.set_attribute("messaging.message.id", str(job_id))
        span.set_attribute("latchwork.wire_name", wire_name)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent")

    def begin_attempt(self, job: TracedJob) -> "AttemptSpan":
        """A consumer span for one attempt, linked to the span that enqueued its job."""
        links = []
        if job.trace_context is not None:
            sender = self._propagator.extract({"traceparent": job.trace_context})
            links = [self._trace.Link(self._trace.get_current_span(sender).get_span_context())]
        span = self._tracer.start_span(
            f"process {job.queue}",
            kind=self._trace.SpanKind.CONSUMER,
            links=links,
            attributes={
                "messaging.system": SYSTEM,
                "messaging.operation.name": "attempt",
                "messaging.operation.type": "process",
                "messaging.destination.name": job.queue,
                "messaging.message.id": str(job.id),
                "latchwork.wire_name": job.wire_name,
                "latchwork.attempt": job.attempt,
            },
        )
        return AttemptSpan(self._trace, span)


class AttemptSpan:
    """The span of an attempt that runs."""

    def __init__(self, trace: Any, span: "Span") -> None:
        self._trace = trace
        self._span = span

    def context(self) -> Context:
        """A context for the handler to run in: spans it makes are children of this one."""
        context = copy_context()
        context.run(self._enter)
        return context

    def _enter(self) -> None:
        from opentelemetry import context

        context.attach(self._trace.set_span_in_context(self._span))

    def failed(self, error: BaseException) -> None:
        """Say that the handler raised: by type, since messages may hold data of its own."""
        self._span.set_attribute("error.type", type(error).__qualname__)
        self._span.set_status(self._trace.StatusCode.ERROR)

    def end(self, outcome: str | None) -> None:
        """The attempt is over; ``outcome`` is what is reported, None when nothing is."""
        if outcome is not None:
            self._span.set_attribute("latchwork.outcome", outcome)
        self._span.end()


def traced(method: Callable[P, R]) -> Callable[P, R]:
    """Run an enqueueing method of a client inside a producer span, where tracing is on."""

    @wraps(method)
    def sending(*args: P.args, **kwargs: P.kwargs) -> R:
        client: Any = args[0]
        tracing: Tracing | None = client._database.tracing
        if tracing is None:
            return method(*args, **kwargs)
        with tracing.sending():
            return method(*args, **kwargs)

    return sending

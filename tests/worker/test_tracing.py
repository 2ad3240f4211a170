"""Spans of enqueues and attempts, linked through the stored job; nothing of it where it is off."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from latchwork import JobContext, Latchwork, RetryPolicy, Workflow
from latchwork.errors import MissingExtra
from latchwork.settings import Settings
from tests.worker.conftest import Start, settled

ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[ReadableSpan]]:
    """The spans that have ended, oldest first."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return lambda: list(exporter.get_finished_spans())


@pytest.fixture
def traced(sqlite_url: str, spans: object) -> Iterator[Latchwork]:
    app = Latchwork(sqlite_url, settings=Settings(tracing=True))
    yield app
    app.database.dispose()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("is_async", [True, False])
def test_an_attempt_links_to_the_span_that_enqueued_it(
    traced: Latchwork, spans: Callable[[], list[ReadableSpan]], start: Start, is_async: bool
) -> None:
    inside: list[int] = []

    if is_async:

        @traced.job("greet", queue="hello")
        async def greet(context: JobContext) -> None:
            inside.append(trace.get_current_span().get_span_context().span_id)

    else:

        @traced.job("greet", queue="hello")
        def greet(context: JobContext) -> None:
            inside.append(trace.get_current_span().get_span_context().span_id)

    job_id = traced.client.enqueue(greet.bind())
    settled(start(traced), job_id)
    sent, processed = spans()
    assert (sent.name, sent.kind) == ("send hello", SpanKind.PRODUCER)
    assert (processed.name, processed.kind) == ("process hello", SpanKind.CONSUMER)
    (link,) = processed.links
    assert sent.context is not None
    assert (link.context.trace_id, link.context.span_id) == (
        sent.context.trace_id,
        sent.context.span_id,
    )
    assert processed.context is not None
    assert inside == [processed.context.span_id]
    for span in (sent, processed):
        assert attributes(span)["messaging.system"] == "latchwork"
        assert attributes(span)["messaging.destination.name"] == "hello"
        assert attributes(span)["messaging.message.id"] == str(job_id)
    assert attributes(sent)["messaging.operation.type"] == "send"
    assert attributes(processed)["messaging.operation.type"] == "process"
    assert attributes(processed)["latchwork.outcome"] == "success"
    assert processed.status.status_code is StatusCode.UNSET


def test_a_failed_attempt_says_so_by_type_and_without_its_message(
    traced: Latchwork, spans: Callable[[], list[ReadableSpan]], start: Start
) -> None:
    @traced.job("break", retry=ONCE)
    def broken(context: JobContext) -> None:
        raise ValueError("a secret")

    settled(start(traced), traced.client.enqueue(broken.bind()))
    failed = spans()[-1]
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(failed)["error.type"] == "ValueError"
    assert attributes(failed)["latchwork.outcome"] == "failure"
    assert "a secret" not in failed.to_json()


def test_every_job_of_a_batch_and_a_workflow_carries_its_senders_span(
    traced: Latchwork, spans: Callable[[], list[ReadableSpan]]
) -> None:
    @traced.job("step")
    def step(context: JobContext) -> None: ...

    many = traced.client.enqueue_many([step.bind(), step.bind()])
    flow = Workflow("flow").add("a", step.bind()).add("b", step.bind(), after=["a"])
    started = traced.client.start_workflow(flow)
    assert [span.kind for span in spans()] == [SpanKind.PRODUCER] * 2
    stored = dict(_stored(traced))
    assert len({stored[str(job)] for job in many}) == 1
    assert len(set(stored.values())) == 2
    assert {str(job) for job in started.jobs.values()} < stored.keys()


def test_where_tracing_is_off_nothing_of_it_is_imported_or_stored(app: Latchwork) -> None:
    @app.job("plain")
    def plain(context: JobContext) -> None: ...

    app.client.enqueue(plain.bind())
    assert [context for _, context in _stored(app)] == [None]
    code = (
        "import sys; from latchwork import Latchwork; Latchwork('sqlite://');"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"latchwork\[tracing\]"):
        Latchwork("sqlite://", settings=Settings(tracing=True))


def _stored(app: Latchwork) -> list[tuple[str, str | None]]:
    with app.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT id, trace_context FROM latchwork_jobs")
        return [(_dashed(row[0]), row[1]) for row in rows]


def _dashed(stored: Any) -> str:
    return str(UUID(str(stored)))

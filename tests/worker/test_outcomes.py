"""What becomes of a job by the way its handler ends (contract section 2)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from sqlalchemy import text

from latchwork import GiveUp, JobCancelled, JobContext, JobState, Latchwork, Retry, RetryPolicy
from latchwork.errors import OutputTooLarge, ValueTooLarge
from latchwork.worker.reporting import (
    ATTEMPTS_EXHAUSTED,
    GAVE_UP,
    PAYLOAD_REFUSED,
    UNKNOWN_WIRE_NAME,
)
from tests.worker.conftest import Start, settled, states, view

S = JobState
AT_ONCE = RetryPolicy(max_attempts=2, base_seconds=0)
ONCE = RetryPolicy(max_attempts=1)


def test_async_and_plain_handlers_succeed_with_their_outputs(app: Latchwork, start: Start) -> None:
    @app.job("async")
    async def on_loop(context: JobContext, n: int) -> None:
        await asyncio.sleep(0)
        context.set_output({"n": n})

    @app.job("plain")
    def in_thread(context: JobContext, n: int) -> None:
        context.set_output(n)

    jobs = [app.client.enqueue(on_loop.bind(n=1)), app.client.enqueue(in_thread.bind(n=2))]
    worker = start(app)
    for job in jobs:
        settled(worker, job)
        assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SUCCEEDED]
    assert [app.monitor.output(job).output for job in jobs] == ['{"n":1}', "2"]


def test_a_failing_job_is_retried_and_dead_lettered_at_its_ceiling(
    app: Latchwork, start: Start
) -> None:
    seen: list[int] = []

    @app.job("fail", retry=AT_ONCE)
    async def fail(context: JobContext) -> None:
        seen.append(context.attempt)
        context.set_output("never kept")
        raise ValueError("no such order")

    job = app.client.enqueue(fail.bind())
    settled(start(app), job, times=2)
    assert seen == [1, 2]
    assert states(app, job) == [S.SCHEDULED, S.LEASED, S.SCHEDULED, S.LEASED, S.DEAD_LETTERED]
    cause = view(app, job).cause
    assert cause is not None
    assert (cause.code, cause.type, cause.text) == (
        ATTEMPTS_EXHAUSTED, "ValueError", "no such order",
    )  # fmt: skip
    details = [row.failure_detail for row in app.monitor.history(job).transitions]
    assert [detail is not None for detail in details] == [False, False, True, False, True]
    assert details[-1] is not None
    assert details[-1].startswith("ValueError: no such order\n\nTraceback")
    assert app.monitor.output(job).output is None


def test_the_policy_stored_at_enqueue_decides_not_the_workers(app: Latchwork, start: Start) -> None:
    @app.job("fail", retry=AT_ONCE)
    async def fail(context: JobContext) -> None:
        raise ValueError

    job = app.client.enqueue(fail.bind())
    fail.retry = RetryPolicy(max_attempts=9)
    settled(start(app), job, times=2)
    assert view(app, job).state is S.DEAD_LETTERED


def test_retry_waits_as_long_as_the_handler_asks(app: Latchwork, start: Start) -> None:
    @app.job("later")
    def later(context: JobContext) -> None:
        raise Retry(after=3600)

    job = app.client.enqueue(later.bind())
    settled(start(app), job)
    stored = view(app, job)
    assert stored.state is S.SCHEDULED
    assert 3590 < (stored.due_at - stored.state_since).total_seconds() < 3610


def test_retry_at_the_ceiling_dead_letters(app: Latchwork, start: Start) -> None:
    @app.job("later", retry=ONCE)
    def later(context: JobContext) -> None:
        raise Retry(after=1)

    job = app.client.enqueue(later.bind())
    settled(start(app), job)
    assert view(app, job).state is S.DEAD_LETTERED


def test_giving_up_dead_letters_at_once(app: Latchwork, start: Start) -> None:
    @app.job("hopeless")
    async def hopeless(context: JobContext) -> None:
        raise GiveUp("the card is stolen")

    job = app.client.enqueue(hopeless.bind())
    settled(start(app), job)
    cause = view(app, job).cause
    assert cause is not None
    assert (cause.code, cause.text) == (GAVE_UP, "the card is stolen")


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        StopIteration(1),
        asyncio.CancelledError(),
        JobCancelled(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_handler_raises_is_an_ordinary_failure_and_stops_nothing_else(
    app: Latchwork, start: Start, error: BaseException, *, is_async: bool
) -> None:
    if is_async:

        @app.job("odd", retry=ONCE)
        async def odd(context: JobContext) -> None:
            raise error

    else:

        @app.job("odd", retry=ONCE)
        def odd(context: JobContext) -> None:
            raise error

    @app.job("fine")
    async def fine(context: JobContext) -> None:
        pass

    worker = start(app)
    job = app.client.enqueue(odd.bind())
    settled(worker, job)
    assert view(app, job).state is S.DEAD_LETTERED
    after = app.client.enqueue(fine.bind())
    settled(worker, after)
    assert view(app, after).state is S.SUCCEEDED


def test_a_handler_that_cancels_itself_has_failed(app: Latchwork, start: Start) -> None:
    @app.job("self", retry=ONCE)
    async def cancels_itself(context: JobContext) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(10)

    job = app.client.enqueue(cancels_itself.bind())
    settled(start(app), job)
    cause = view(app, job).cause
    assert cause is not None
    assert (view(app, job).state, cause.type) == (
        S.DEAD_LETTERED,
        "asyncio.exceptions.CancelledError",
    )


def test_an_exception_that_cannot_be_shown_is_described(app: Latchwork, start: Start) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    @app.job("broken", retry=ONCE)
    async def broken(context: JobContext) -> None:
        raise Broken

    job = app.client.enqueue(broken.bind())
    settled(start(app), job)
    cause = view(app, job).cause
    assert cause is not None
    assert cause.text == "(its message cannot be shown: str() raised RuntimeError)"


def test_failure_texts_are_cut_and_cleaned_for_any_database(app: Latchwork, start: Start) -> None:
    @app.job("long", retry=ONCE)
    async def long(context: JobContext) -> None:
        raise ValueError("a\0b\ud800c" + "é" * 20_000)

    job = app.client.enqueue(long.bind())
    settled(start(app), job)
    detail = app.monitor.history(job).transitions[-1].failure_detail
    cause = view(app, job).cause
    assert detail is not None
    assert cause is not None
    assert cause.text is not None
    assert cause.text.startswith("a\ufffdb\ufffdcé")
    assert 8_190 <= len(detail.encode()) <= 8_192
    assert 510 <= len(cause.text.encode()) <= 512


def test_an_unknown_wire_name_is_quarantined_and_its_attempt_counted(
    app: Latchwork, start: Start
) -> None:
    @app.job("known")
    async def known(context: JobContext) -> None:
        pass

    job = app.client.enqueue(known.bind())
    del app.job_types["known"]
    settled(start(app), job)
    stored = view(app, job)
    assert stored.cause is not None
    assert (stored.state, stored.attempt, stored.cause.code) == (
        S.QUARANTINED, 1, UNKNOWN_WIRE_NAME,
    )  # fmt: skip


def test_a_payload_its_type_refuses_is_quarantined_and_the_handler_never_called(
    app: Latchwork, start: Start
) -> None:
    called = []

    @app.job("typed")
    async def typed(context: JobContext, n: int) -> None:
        called.append(n)

    job = app.client.enqueue(typed.bind(n=1))
    with app.engine.begin() as connection:
        connection.execute(text("""UPDATE latchwork_jobs SET payload = '{"n":"x"}'"""))
    settled(start(app), job)
    stored = view(app, job)
    assert stored.cause is not None
    assert (stored.state, stored.cause.code, called) == (S.QUARANTINED, PAYLOAD_REFUSED, [])
    assert stored.cause.text is not None
    assert stored.cause.text.startswith("n: ")


@pytest.mark.parametrize("interrupt", [True, False])
def test_an_attempt_over_its_timeout_fails_when_the_handler_ends(
    app: Latchwork, start: Start, *, interrupt: bool
) -> None:
    @app.job("slow", retry=ONCE, timeout_seconds=0.1, interrupt=interrupt)
    async def slow(context: JobContext) -> None:
        if interrupt:
            await asyncio.sleep(60)
        else:
            await context.cancellation.wait()

    job = app.client.enqueue(slow.bind())
    settled(start(app), job)
    cause = view(app, job).cause
    assert cause is not None
    assert (cause.type, cause.text) == (
        "TimeoutError", "the attempt took longer than its timeout of 0.1 s",
    )  # fmt: skip


def test_a_plain_handler_hears_of_its_timeout(app: Latchwork, start: Start) -> None:
    @app.job("slow", retry=ONCE, timeout_seconds=0.1)
    def slow(context: JobContext) -> None:
        assert context.cancellation.wait_blocking(20)
        context.cancellation.raise_if_requested()

    job = app.client.enqueue(slow.bind())
    settled(start(app), job)
    assert view(app, job).state is S.DEAD_LETTERED


def test_a_plain_handler_that_returns_a_coroutine_has_failed(app: Latchwork, start: Start) -> None:
    async def inner() -> None:
        pass

    @app.job("lost", retry=ONCE)
    def lost(context: JobContext) -> object:
        return inner()

    job = app.client.enqueue(lost.bind())
    settled(start(app), job)
    assert view(app, job).state is S.DEAD_LETTERED


def test_added_tags_are_stored_whatever_the_outcome(app: Latchwork, start: Start) -> None:
    @app.job("tagging", retry=ONCE, tags=["typed"])
    async def tagging(context: JobContext) -> None:
        context.add_tags("seen", ("card", "visa"), "typed")
        with pytest.raises(ValueTooLarge):
            context.add_tags(*(f"tag-{number}" for number in range(40)))
        raise ValueError

    job = app.client.enqueue(tagging.bind(), tags=["given"])
    settled(start(app), job)
    assert set(view(app, job).tags) == {"typed", "given", "seen", ("card", "visa")}


def test_the_last_output_wins_and_one_too_large_is_refused_at_the_call(
    app: Latchwork, start: Start
) -> None:
    @app.job("output")
    async def output(context: JobContext) -> None:
        context.set_output("first")
        context.set_output("x" * 65_534)
        with pytest.raises(OutputTooLarge):
            context.set_output("x" * 65_535)

    job = app.client.enqueue(output.bind())
    settled(start(app), job)
    stored = app.monitor.output(job).output
    assert stored is not None
    assert len(stored) == 65_536


def test_a_dependent_reads_the_outputs_of_its_ancestors(app: Latchwork, start: Start) -> None:
    @app.job("charge")
    async def charge(context: JobContext) -> None:
        context.set_output({"transaction": 7})

    @app.job("receipt")
    async def receipt(context: JobContext) -> None:
        by_type = await context.dependency_output_async(charge)
        by_id = await context.dependency_output_async(first, dict[str, int])
        stranger = await context.dependency_output_async("elsewhere")
        context.set_output([by_type.output, by_id.output, stranger.has_output, by_id.state])

    first = app.client.enqueue(charge.bind())
    middle = app.client.enqueue_dependency(receipt.bind(), parent=first)
    settled(start(app), middle)
    expected = '[{"transaction":7},{"transaction":7},false,"succeeded"]'
    assert app.monitor.output(middle).output == expected


@contextmanager
def plain_scope(events: list[str]) -> Iterator[str]:
    events.append("open")
    try:
        yield "scope"
    finally:
        events.append("close")


@asynccontextmanager
async def async_scope(events: list[str]) -> AsyncIterator[str]:
    with plain_scope(events) as scope:
        yield scope


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("make_scope", [plain_scope, async_scope])
def test_each_attempt_gets_a_scope_of_its_own_closed_before_its_outcome(
    database_url: str, start: Start, make_scope: Callable[[list[str]], object], *, is_async: bool
) -> None:
    events: list[str] = []
    app = Latchwork(database_url, attempt_scope=lambda _: make_scope(events))  # type: ignore[arg-type,return-value]

    def handle(context: JobContext) -> None:
        events.append(context.scope)
        if context.attempt == 1:
            raise ValueError

    if is_async:

        @app.job("scoped", retry=AT_ONCE)
        async def scoped(context: JobContext) -> None:
            handle(context)

    else:

        @app.job("scoped", retry=AT_ONCE)
        def scoped(context: JobContext) -> None:
            handle(context)

    job = app.client.enqueue(scoped.bind())
    settled(start(app), job, times=2)
    assert events == ["open", "scope", "close"] * 2
    assert view(app, job).state is S.SUCCEEDED


def test_a_scope_that_cannot_be_opened_is_a_failure(database_url: str, start: Start) -> None:
    def refuse(_: JobContext) -> None:
        raise OSError("no session")

    app = Latchwork(database_url, attempt_scope=refuse)  # type: ignore[arg-type]

    @app.job("async", retry=ONCE)
    async def on_loop(context: JobContext) -> None:
        pass

    @app.job("plain", retry=ONCE)
    def in_thread(context: JobContext) -> None:
        pass

    worker = start(app)
    for job in app.client.enqueue_many([on_loop.bind(), in_thread.bind()]):
        settled(worker, job)
        assert view(app, job).state is S.DEAD_LETTERED

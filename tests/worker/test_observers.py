"""Observers of a node at work: beside its jobs, never in their way (section 7)."""

import threading
import time

import pytest

from latchwork import (
    HistoryOff,
    HistoryPolicy,
    JobContext,
    JobState,
    Latchwork,
    ObserverContext,
    TransitionView,
)
from latchwork.maintenance.observer_dispatcher import ObserverDispatcher
from tests.worker.conftest import PATIENCE_SECONDS, Start, settled, states

S = JobState


def test_an_observer_that_hangs_slows_neither_jobs_nor_another_observer(
    app: Latchwork, start: Start
) -> None:
    hangs, release, met = threading.Event(), threading.Event(), threading.Event()

    @app.job("greet")
    def greet(context: JobContext) -> None:
        """Nothing more."""

    @app.observer("hangs", states=[S.SCHEDULED], start="beginning")
    def hang(transition: TransitionView, context: ObserverContext) -> None:
        hangs.set()
        release.wait(PATIENCE_SECONDS)

    @app.observer("quick", states=[S.SUCCEEDED])
    async def note(transition: TransitionView, context: ObserverContext) -> None:
        met.set()

    app.client.enqueue(greet.bind())
    worker = start(app)
    assert hangs.wait(PATIENCE_SECONDS)
    job = app.client.enqueue(greet.bind())
    settled(worker, job)
    assert met.wait(PATIENCE_SECONDS)
    assert not release.is_set()
    release.set()


def test_an_observer_sees_the_state_it_is_told_of_or_a_later_one(
    app: Latchwork, start: Start
) -> None:
    """Reading the job by another connection never shows the state before (bug log, B61)."""
    seen: list[tuple[TransitionView, list[JobState]]] = []
    ended = threading.Event()

    @app.job("greet")
    def greet(context: JobContext) -> None:
        """Nothing more."""

    @app.observer("reader", states=list(S), start="beginning")
    def read(transition: TransitionView, context: ObserverContext) -> None:
        seen.append((transition, states(app, transition.job_id)))
        if transition.state is S.SUCCEEDED:
            ended.set()

    job = app.client.enqueue(greet.bind())
    start(app)
    assert ended.wait(PATIENCE_SECONDS)
    assert [transition.state for transition, _ in seen] == states(app, job)
    for transition, log in seen:
        assert log[transition.ordinal] is transition.state


def test_a_node_that_stops_lets_another_go_on_at_once(app: Latchwork, start: Start) -> None:
    met: list[str] = []
    first, second = threading.Event(), threading.Event()

    @app.job("greet")
    def greet(context: JobContext) -> None:
        """Nothing more."""

    @app.observer("bell", states=[S.SUCCEEDED])
    def note(transition: TransitionView, context: ObserverContext) -> None:
        met.append(context.key)
        (second if first.is_set() else first).set()

    worker = start(app)
    app.client.enqueue(greet.bind())
    assert first.wait(PATIENCE_SECONDS)
    worker.stop()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (bell := app.monitor.observer("bell")) and bell.owner:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    app.client.enqueue(greet.bind())
    start(app)
    assert second.wait(PATIENCE_SECONDS)
    assert len(set(met)) == 2


def test_a_node_with_a_new_observer_does_not_start_while_nothing_is_logged(
    app: Latchwork,
) -> None:
    app.operator.set_history_policy(HistoryPolicy.OFF, actor="ann")

    @app.observer("bell", states=[S.SUCCEEDED])
    def note(transition: TransitionView, context: ObserverContext) -> None:
        """Nothing more."""

    with pytest.raises(HistoryOff, match="bell"):
        app.worker().run()


def test_a_dispatcher_without_observers_does_nothing(app: Latchwork) -> None:
    dispatcher = ObserverDispatcher(app.database, app.observers)
    dispatcher.register()
    dispatcher.start()
    dispatcher.stop()
    dispatcher.join(1)
    assert app.monitor.observers() == ()

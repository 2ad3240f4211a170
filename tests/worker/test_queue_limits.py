"""Limits and pauses over several nodes: judged from the log and the audit trail, in their order."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from latchwork import JobContext, JobState, Latchwork
from latchwork.store import audit, schema
from tests.worker.conftest import PATIENCE_SECONDS, Start, settled, view

NODES = 4
LIMIT = 3
JOBS = 2_000


def read(app: Latchwork, statement: Any) -> Sequence[Any]:
    return app.database.read(lambda connection: connection.execute(statement).all())


@pytest.mark.timeout(400)
def test_four_nodes_never_go_beyond_the_limit_in_force_while_it_changes(
    database_url: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[tuple[int, str, dict[str, Any]]] = []
    monkeypatch.setattr(audit, "append", place_in_the_log(acts))
    apps = [Latchwork(database_url) for _ in range(NODES)]
    for app in apps:

        @app.job("touch", queue="limited")
        def touch(_context: JobContext) -> None:
            return

    call = apps[0].job_types["touch"].bind()
    operator = apps[0].operator
    operator.set_limit("limited", LIMIT, actor="ann")
    jobs = apps[0].client.enqueue_many([call] * JOBS)
    nodes = [start(app, queues=["limited"], slots=8) for app in apps]
    for done, limit in ((100, 5), (300, 1), (400, 7), (800, 2), (1_000, None), (1_300, 4)):
        until_ended(apps[0], done)
        operator.set_limit("limited", limit, actor="ann")
    until_ended(apps[0], 1_500)
    operator.pause_queue("limited", actor="ben")
    operator.set_limit("limited", LIMIT, actor="ann")
    operator.resume_queue("limited", actor="ben")
    until_ended(apps[0], JOBS)
    assert len(jobs) == JOBS
    assert len(nodes) == NODES
    assert len(read(apps[0], select(schema.audit))) == len(acts)
    judge(apps[0], acts)


def until_ended(app: Latchwork, count: int) -> None:
    waiting = threading.Event()
    for _ in range(6_000):
        if app.monitor.counts().by_state[JobState.SUCCEEDED] >= count:
            return
        waiting.wait(0.05)
    raise AssertionError(f"{count} jobs did not end: {app.monitor.counts().by_state}")


def place_in_the_log(
    acts: list[tuple[int, str, dict[str, Any]]],
) -> Callable[..., None]:
    """Writes audit rows as ever, and notes after which row of the log each action stands.

    An action holds the lock that claims need, so every claim is either in the log by then or
    comes after it.
    """
    append = audit.append

    def noting(connection: Connection, **row: Any) -> None:
        last = connection.scalar(select(func.max(schema.transitions.c.position)))
        acts.append((last or 0, row["action"], row["detail"]))
        append(connection, **row)

    return noting


def judge(app: Latchwork, acts: Sequence[tuple[int, str, dict[str, Any]]]) -> None:
    """At each claim no more jobs hold slots than the limit in force allows, and none if paused."""
    log = schema.transitions
    columns = (log.c.position, log.c.previous_state, log.c.state)
    moves = read(app, select(*columns).order_by(log.c.position))
    limit: int | None = None
    paused, leased, claims, most = False, 0, 0, 0
    ahead = deque(acts)
    for row in moves:
        while ahead and ahead[0][0] < row.position:
            _, action, detail = ahead.popleft()
            if action == "set_limit":
                limit = detail["limit"]
            else:
                paused = action == "pause_queue"
        if row.state is JobState.LEASED:
            claims, leased = claims + 1, leased + 1
            most = max(most, leased)
            assert not paused, row
            assert limit is None or leased <= limit, (row, leased, limit)
        elif row.previous_state is JobState.LEASED:
            leased -= 1
    assert claims == JOBS
    assert most > LIMIT, "the nodes never ran as many as they might"


def test_a_freed_slot_is_taken_without_waiting_for_a_poll(app: Latchwork, start: Start) -> None:
    @app.job("short", queue="limited")
    def short(_context: JobContext) -> None:
        return

    app.operator.set_limit("limited", 1, actor="ann")
    jobs = app.client.enqueue_many([short.bind()] * 12)
    # Were each slot found by polling only, this would take longer than anybody waits.
    node = start(app, queues=["limited"], poll_seconds=60)
    for job_id in jobs:
        settled(node, job_id)


def test_a_resumed_queue_is_served_without_waiting_for_a_poll(app: Latchwork, start: Start) -> None:
    @app.job("short", queue="mail")
    def short(_context: JobContext) -> None:
        return

    app.operator.pause_queue("mail", actor="ann")
    job_id = app.client.enqueue(short.bind())
    other = app.client.enqueue(short.bind(), queue="default")
    node = start(app, poll_seconds=60)
    settled(node, other)
    assert view(app, job_id).state is JobState.SCHEDULED
    explained = app.monitor.explain(job_id)
    assert explained is not None
    assert explained.sentence.startswith("Queue mail is paused by ann since ")
    app.operator.resume_queue("mail", actor="ann")
    settled(node, job_id)


def test_a_job_behind_a_full_limit_says_who_holds_it(app: Latchwork, start: Start) -> None:
    let_go = threading.Event()

    @app.job("long", queue="mail")
    def long(_context: JobContext) -> None:
        let_go.wait(PATIENCE_SECONDS)

    app.operator.set_limit("mail", 1, actor="ann")
    first, second = app.client.enqueue_many([long.bind()] * 2)
    node = start(app, queues=["mail"])
    node.signals.claimed.wait_blocking(first, timeout_seconds=PATIENCE_SECONDS)
    explained = app.monitor.explain(second)
    assert explained is not None
    assert explained.sentence == "Limit 1 of queue mail is full, held by 1 job."
    assert explained.jobs == (first,)
    let_go.set()
    settled(node, second)


def test_shares_follow_the_weights_on_a_real_node(app: Latchwork, start: Start) -> None:
    order: list[str] = []

    @app.job("touch")
    def touch(context: JobContext) -> None:
        order.append(context.queue)

    jobs = {q: [app.client.enqueue(touch.bind(), queue=q) for _ in range(200)] for q in ("a", "b")}
    node = start(app, queues={"a": 3, "b": 1}, slots=4)
    for job_id in (*jobs["a"], *jobs["b"]):
        settled(node, job_id)
    # Both have due work all this time.
    both = Counter(order[:200])
    assert abs(both["a"] - 150) <= 15

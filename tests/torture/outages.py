"""PostgreSQL stops, back-ends are terminated, answers are lost: aimed at each operation in turn."""

import time
from collections.abc import Callable
from itertools import cycle

from sqlalchemy import make_url

from latchwork import StoreBusy, StoreUnavailable
from tests.postgres_server import PostgresInstance, run_outside_transaction
from tests.torture.node import CANARY_QUEUE
from tests.torture.proxy import OPERATIONS, Proxy, Session, Strike
from tests.torture.runs import Batch, Scene, run_batch, text_of

MEET_SECONDS = 20.0
BACK_SECONDS = 10.0
"""How soon after the database's return work must go on."""

AWAY_SECONDS = (0.3, 1.5)


def restart_batch(server: PostgresInstance, database_url: str, stops: int, seed: int) -> Batch:
    """Immediate stops of the server, each in the middle of an operation."""

    def stop(_session: Session) -> None:
        server.stop_immediate()

    def afterwards(scene: Scene) -> None:
        time.sleep(scene.chance.uniform(*AWAY_SECONDS))
        server.start()
        goes_on(scene)

    return strikes(database_url, stops, seed, stop, afterwards)


def backend_batch(database_url: str, count: int, seed: int) -> Batch:
    """Back-ends terminated in the middle of an operation."""
    url = make_url(database_url)

    def terminate(session: Session) -> None:
        run_outside_transaction(url, f"SELECT pg_terminate_backend({session.backend})")

    def afterwards(scene: Scene) -> None:
        if scene.batch.faults % 10 == 0:
            goes_on(scene)

    return strikes(database_url, count, seed, terminate, afterwards)


def cut_batch(database_url: str, count: int, seed: int) -> Batch:
    """Connections cut after COMMIT was sent and before its answer comes back."""

    def cut(session: Session) -> None:
        session.hold_back_answers()
        session.send_commit()
        session.wait_for_answer(MEET_SECONDS)
        session.cut()

    def afterwards(scene: Scene) -> None:
        if scene.batch.faults % 10 == 0:
            goes_on(scene)

    return strikes(database_url, count, seed, cut, afterwards, at_commit=True)


def strikes(
    database_url: str,
    count: int,
    seed: int,
    act: Callable[[Session], None],
    afterwards: Callable[[Scene], None],
    *,
    at_commit: bool | None = None,
) -> Batch:
    """Strike ``count`` times, at each operation in turn, with nodes and callers behind a proxy."""
    url = make_url(database_url)
    proxy = Proxy(url)
    hits = dict.fromkeys(OPERATIONS, 0)

    def faults(scene: Scene) -> int:
        operations = cycle(OPERATIONS)
        idle_since = time.monotonic()
        while scene.batch.faults < count and not scene.batch.findings:
            operation = next(operations)
            when = scene.chance.random() < 0.5 if at_commit is None else at_commit
            if operation == "expire":
                scene.cluster.kill(scene.chance.choice(scene.cluster.pids()))
            proxy.arm(Strike(operation, when, act))
            if not proxy.struck.wait(MEET_SECONDS / 4):
                proxy.disarm()
                if time.monotonic() - idle_since > MEET_SECONDS:
                    scene.batch.findings.append(f"no operation was met in {MEET_SECONDS:.0f} s")
                continue
            idle_since = time.monotonic()
            hits[operation] += 1
            scene.batch.faults += 1
            afterwards(scene)
        return scene.batch.faults

    try:
        batch = run_batch(database_url, faults, seed, nodes_url=text_of(proxy.url))
    finally:
        proxy.close()
    batch.hits = hits
    return batch


def goes_on(scene: Scene) -> None:
    """A job enqueued now must be done soon, by the nodes that were there before."""
    back_at = time.monotonic()
    canary = scene.load.app.job_types["work"].bind(milliseconds=0)
    job_id = scene.load.enqueue_surely(canary, CANARY_QUEUE)
    while time.monotonic() - back_at < BACK_SECONDS:
        try:
            job = scene.load.app.monitor.job(job_id)
        except (StoreBusy, StoreUnavailable):
            job = None
        if job is not None and job.state.terminal:
            return
        time.sleep(0.05)
    scene.batch.findings.append(f"work did not go on within {BACK_SECONDS:.0f} s")

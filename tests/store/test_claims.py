"""Claims: ordered, bounded, exclusive, and closed by pause and limit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from sqlalchemy import update

from latchwork.decisions.states import JobState
from latchwork.store import schema
from latchwork.store.claiming import ClaimedJob, claim
from tests.store.builders import LEASE_SECONDS, START, WORKER, Store

S = JobState


def set_queue(store: Store, queue: str, **columns: Any) -> None:
    """Write a queue's pause or limit by hand."""
    statement = update(schema.queues).where(schema.queues.c.name == queue).values(columns)
    assert store.database.write(lambda connection: connection.execute(statement).rowcount) == 1


def together(count: int, work: Callable[[int], list[ClaimedJob]]) -> list[list[ClaimedJob]]:
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, range(count)))


def test_a_claim_takes_due_jobs_by_due_time_then_enqueue_number(store: Store) -> None:
    seconds = (5, 0, 5, -3, 0, 1)
    jobs = [
        store.new_job(queue="mail", due_at=START + timedelta(seconds=due_in)) for due_in in seconds
    ]
    store.enqueue_all(jobs)
    store.enqueue(queue="other", due_at=START - timedelta(days=1))
    assert [job.id for job in store.claim("mail", limit=2)] == [jobs[3].id, jobs[1].id]
    store.wait(4.999999)
    assert [job.id for job in store.claim("mail", limit=9)] == [jobs[4].id, jobs[5].id]
    store.now = START + timedelta(seconds=5)  # due exactly now is due
    assert [job.id for job in store.claim("mail", limit=9)] == [jobs[0].id, jobs[2].id]
    assert store.claim("mail", limit=9) == []


def test_a_claimed_job_carries_what_its_worker_needs(store: Store) -> None:
    new = store.new_job(queue="mail", payload='{"a": [1, "ü"]}', tags=("x", ("k", "v")))
    store.enqueue_all([new])
    (job,) = store.claim("mail")
    row = store.row(new.id)
    assert job == ClaimedJob(
        row.sequence, new.id, "pack", "mail", new.payload, 1, 1, new.retry, new.tags,
        START + timedelta(seconds=LEASE_SECONDS), START, START, None, None, 0,
    )  # fmt: skip
    assert job.hold == store.hold(new.id)


def test_a_claim_never_takes_more_than_the_free_slots(store: Store) -> None:
    store.enqueue_all([store.new_job(queue="mail") for _ in range(5)])
    assert store.claim("mail", limit=0) == []
    assert len(store.claim("mail", limit=3)) == 3
    assert store.claim("nobody enqueued here", limit=3) == []


def test_two_claimers_never_get_the_same_job(store: Store) -> None:
    store.enqueue_all([store.new_job(queue="mail") for _ in range(60)])

    def drain(number: int) -> list[ClaimedJob]:
        mine: list[ClaimedJob] = []
        while claimed := store.claim("mail", limit=3, worker=f"node-{number}"):
            mine += claimed
        return mine

    shares = together(4, drain)
    numbers = [job.sequence for share in shares for job in share]
    assert len(numbers) == len(set(numbers)) == 60


def test_a_paused_queue_gives_nothing_until_it_is_resumed(store: Store) -> None:
    store.enqueue(queue="mail")
    set_queue(store, "mail", paused_at=START, paused_by="anna")
    before = store.dump()
    assert store.claim("mail", limit=5) == []
    assert store.dump() == before
    set_queue(store, "mail", paused_at=None, paused_by=None)
    assert len(store.claim("mail", limit=5)) == 1


def test_a_limit_counts_the_leased_jobs_of_all_workers(store: Store) -> None:
    ids = store.enqueue_all([store.new_job(queue="mail") for _ in range(6)])
    set_queue(store, "mail", concurrency_limit=3)
    assert len(store.claim("mail", limit=2)) == 2
    assert len(store.claim("mail", limit=5, worker="node-2")) == 1
    assert store.claim("mail", limit=5) == []
    store.finish(store.hold(ids[0]))
    assert len(store.claim("mail", limit=5)) == 1
    # Jobs above a lowered limit run on.
    set_queue(store, "mail", concurrency_limit=1)
    assert store.claim("mail", limit=5) == []
    assert store.count(S.LEASED) == 3


def test_a_lapsed_lease_holds_its_slot_until_it_is_swept(store: Store) -> None:
    store.enqueue_all([store.new_job(queue="mail") for _ in range(2)])
    set_queue(store, "mail", concurrency_limit=1)
    store.claim("mail")
    store.wait(LEASE_SECONDS + 1)
    assert store.claim("mail") == []
    store.sweep(store.now + timedelta(hours=1))
    assert len(store.claim("mail")) == 1


def test_a_limit_of_one_lets_one_job_run_whoever_claims_at_once(store: Store) -> None:
    store.enqueue_all([store.new_job(queue="mail") for _ in range(20)])
    set_queue(store, "mail", concurrency_limit=1)
    for _ in range(5):
        shares = together(4, lambda number: store.claim("mail", limit=5, worker=f"node-{number}"))
        (job,) = [job for share in shares for job in share]
        assert store.count(S.LEASED) == 1
        store.finish(job.hold, worker=store.row(job.id).owner)


def test_a_claim_and_its_log_row_are_one_transaction(store: Store) -> None:
    store.enqueue(queue="mail")
    before = store.dump()

    class Stopped(Exception):
        pass

    def claim_and_stop(connection: Any) -> None:
        claim(connection, worker_id=WORKER, queue="mail", limit=1, lease_seconds=60, now=store.now)
        raise Stopped

    try:
        store.database.write(claim_and_stop)
    except Stopped:
        assert store.dump() == before

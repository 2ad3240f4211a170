"""Lease expiry, edges 6' and 7', and the suspects it makes."""

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import select

from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import Event
from latchwork.maintenance.expiry_sweeper import BATCH, ExpirySweeper
from latchwork.store import expiry, heartbeats
from latchwork.store.database import Database
from latchwork.store.expiry import LapseVerdict
from latchwork.store.schema import nodes
from tests.clocks import SetClock
from tests.store.builders import (
    FAILURE,
    LEASE_SECONDS,
    ON_ANY_TERMINAL,
    WORKER,
    Store,
)

S = JobState


def test_a_lapsed_lease_with_attempts_left_is_scheduled_again(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    child = store.enqueue(job_id)
    assert store.lapsed() == []
    store.wait(LEASE_SECONDS)  # at the instant of expiry it has lapsed
    due_at = store.now + timedelta(seconds=2)
    assert store.sweep(due_at) == 1
    row = store.row(job_id)
    assert (row.state, row.attempt, row.claim_number, row.due_at) == (S.SCHEDULED, 1, 1, due_at)
    assert (row.owner, row.lease_expires_at, row.lapses) == (None, None, 1)
    assert (row.applied_claim, row.applied_outcome) == (None, None)
    last = store.log(job_id)[-1]
    assert (last.previous_state, last.state, last.attempt) == (S.LEASED, S.SCHEDULED, 1)
    assert (last.worker, last.due_at, last.failure_detail) == (WORKER, due_at, None)
    assert last.event is Event.LEASE_EXPIRED
    assert store.state(child) is S.AWAITING_PARENT


def test_a_lapsed_lease_at_the_ceiling_dead_letters_and_says_whose_it_was(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    child, cleanup = store.enqueue(job_id), store.enqueue(job_id, mode=ON_ANY_TERMINAL)
    expired_at = store.row(job_id).lease_expires_at
    store.wait(LEASE_SECONDS + 7)
    assert store.sweep() == 1
    row = store.row(job_id)
    assert (row.state, row.terminal_at, row.attempt) == (S.DEAD_LETTERED, store.now, 1)
    assert row.cause_code == "lease_lapsed"
    assert WORKER in row.cause_text
    assert expired_at.isoformat(timespec="milliseconds") in row.cause_text
    assert store.states(child, cleanup) == [S.CANCELLED, S.SCHEDULED]


def test_the_sweep_reads_the_policy_and_longest_lapsed_first(store: Store) -> None:
    first, second = store.in_state(S.LEASED), None
    store.wait(1)
    second = store.in_state(S.LEASED)
    store.wait(LEASE_SECONDS)
    lapsed = store.lapsed()
    assert [job.sequence for job in lapsed] == [store.row(j).sequence for j in (first, second)]
    assert (lapsed[0].owner, lapsed[0].attempt, lapsed[0].retry.max_attempts) == (WORKER, 1, 10)
    limited = store.database.read(expiry.read_lapsed, now=store.now, limit=1)
    assert limited == lapsed[:1]


def test_a_sweep_writes_only_where_claim_and_expiry_are_as_it_read_them(store: Store) -> None:
    renewed, finished, again = (store.in_state(S.LEASED) for _ in range(3))
    store.wait(LEASE_SECONDS)
    verdicts = [LapseVerdict(job, store.now) for job in store.lapsed()]
    assert len(verdicts) == 3
    store.now -= timedelta(seconds=1)
    store.renew(store.hold(renewed))
    store.finish(store.hold(finished))
    store.wait(1)
    (other,) = [v for v in verdicts if v.lapsed.sequence == store.row(again).sequence]
    store.database.write(expiry.expire, [other], now=store.now)
    store.lease(again)
    before = store.dump()
    assert store.database.write(expiry.expire, verdicts, now=store.now) == 0
    early = replace(other, lapsed=other.lapsed._replace(
        claim_number=2, lease_expires_at=store.row(again).lease_expires_at))  # fmt: skip
    assert store.database.write(expiry.expire, [early], now=store.now) == 0
    assert store.database.write(expiry.expire, [], now=store.now) == 0
    assert store.dump() == before


def test_lapses_count_in_a_row_and_an_outcome_resets_them(store: Store) -> None:
    job_id = store.enqueue()
    for expected in (1, 2, 3):
        store.lease(job_id)
        store.wait(LEASE_SECONDS)
        store.sweep(store.now)
        assert store.row(job_id).lapses == expected
    store.finish(store.lease(job_id), FAILURE, next_due_at=store.now)
    assert store.row(job_id).lapses == 0


def suspect(store: Store, queue: str) -> None:
    """Put a job that lapsed twice in a row into ``queue``."""
    store.enqueue(queue=queue)
    for _ in range(2):
        store.claim(queue, limit=100)
        store.wait(LEASE_SECONDS)
        store.sweep(store.now)


def test_a_claim_takes_at_most_one_suspect_and_none_when_not_allowed(store: Store) -> None:
    store.enqueue_all([store.new_job(queue="poison") for _ in range(3)])
    suspect(store, "poison")  # all four lapse together
    healthy = store.enqueue_all([store.new_job(queue="poison") for _ in range(2)])
    claimed = store.claim("poison", limit=10, allow_suspect=False)
    assert [job.id for job in claimed] == healthy
    assert not any(job.suspect for job in claimed)
    for _ in range(4):
        (one,) = store.claim("poison", limit=10)
        assert one.suspect
        assert one.lapses == 2
    assert store.claim("poison", limit=10) == []


def test_released_leases_lapse_at_once_and_are_swept(store: Store) -> None:
    mine, others = store.in_state(S.LEASED), store.enqueue()
    store.lease(others, worker="node-2")
    cancelled = store.in_state(S.LEASED)
    store.cancel(cancelled)
    holds = [store.hold(job_id) for job_id in (mine, others, cancelled)]
    store.wait(1)
    store.database.write(heartbeats.release, WORKER, holds, now=store.now)
    assert [job.sequence for job in store.lapsed()] == [holds[0].sequence, holds[2].sequence]
    # Letting go delivers nothing to the handler.
    assert store.row(cancelled).cancel_delivered_at is None
    assert store.sweep(store.now) == 2
    assert store.states(mine, others, cancelled) == [S.SCHEDULED, S.LEASED, S.CANCELLED]


def test_releasing_a_lapsed_lease_does_not_move_its_expiry(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    store.wait(LEASE_SECONDS + 5)
    before = store.dump()
    store.database.write(heartbeats.release, WORKER, [store.hold(job_id)], now=store.now)
    assert store.dump() == before


def test_a_sweep_reaches_what_has_lapsed_behind_any_number_of_long_live_leases(
    store: Store,
) -> None:
    store.enqueue_all([store.new_job(queue="long") for _ in range(BATCH + 50)])
    long = [job.hold for job in store.claim("long", limit=BATCH + 50)]
    lapsing = [store.in_state(S.LEASED) for _ in range(5)]
    store.wait(LEASE_SECONDS / 2)
    store.renew(*long)
    store.wait(LEASE_SECONDS / 2)
    assert [job.sequence for job in store.lapsed()] == [
        store.row(job_id).sequence for job_id in lapsing
    ]
    ExpirySweeper(at_the_time_of(store), pause_seconds=1).run_once()
    assert store.states(*lapsing) == [S.SCHEDULED] * 5
    assert store.count(S.LEASED) == BATCH + 50


def test_a_sweep_goes_by_the_stored_policy_also_for_jobs_no_live_node_knows(store: Store) -> None:
    policy = RetryPolicy(max_attempts=2, base_seconds=7)
    job_id = store.enqueue(wire_name="nobody knows this", retry=policy)
    sweeper = ExpirySweeper(at_the_time_of(store), pause_seconds=1)
    store.lease(job_id)
    store.wait(LEASE_SECONDS)
    sweeper.run_once()
    row = store.row(job_id)
    assert (row.state, row.due_at) == (S.SCHEDULED, store.now + timedelta(seconds=7))
    store.wait(7)
    store.lease(job_id)
    store.wait(LEASE_SECONDS)
    sweeper.run_once()
    assert store.state(job_id) is S.DEAD_LETTERED


def test_a_lease_is_swept_although_its_node_was_never_registered(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    assert store.database.read(lambda connection: connection.execute(select(nodes)).all()) == []
    store.wait(LEASE_SECONDS)
    ExpirySweeper(at_the_time_of(store), pause_seconds=1).run_once()
    assert store.state(job_id) is S.SCHEDULED


def at_the_time_of(store: Store) -> Database:
    """The store's database, whose clock shows the store's time."""
    store.database.prepare()
    store.database.clock = SetClock(lambda: store.now)
    return store.database

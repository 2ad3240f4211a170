"""Heartbeats: what is renewed, what is lost, and what the operator's flag does on the way."""

from datetime import timedelta

from sqlalchemy import select

from latchwork.decisions.leases import Hold
from latchwork.decisions.states import JobState
from latchwork.store import heartbeats, schema
from latchwork.store.heartbeats import NodeRecord, Renewal, RenewalStatus
from tests.store.builders import LEASE_SECONDS, WORKER, Store

S = JobState


def lost(hold: Hold) -> Renewal:
    return Renewal(hold, RenewalStatus.LOST)


def test_a_heartbeat_extends_the_leases_it_holds_and_writes_no_log_row(store: Store) -> None:
    ids = store.enqueue_all([store.new_job(queue="batch") for _ in range(3)])
    holds = [job.hold for job in store.claim("batch", limit=3)]
    logs = [store.log(job_id) for job_id in ids]
    store.wait(LEASE_SECONDS - 0.000001)
    answers = store.renew(*reversed(holds))
    assert answers == [Renewal(hold, RenewalStatus.RENEWED) for hold in reversed(holds)]
    expires_at = store.now + timedelta(seconds=LEASE_SECONDS)
    assert {store.row(job_id).lease_expires_at for job_id in ids} == {expires_at}
    assert [store.log(job_id) for job_id in ids] == logs


def test_what_is_not_held_is_lost_and_stays_as_it_is(store: Store) -> None:
    leased = store.hold(store.in_state(S.LEASED))
    ended = store.hold(store.in_state(S.SUCCEEDED))
    others_id = store.enqueue()
    others = store.lease(others_id, worker="node-2")
    wrong = [
        leased._replace(attempt=2), leased._replace(claim_number=2), ended, others,
        Hold(10**9, 1, 1),
    ]  # fmt: skip
    before = store.dump()
    assert store.renew(*wrong) == [lost(hold) for hold in wrong]
    store.wait(LEASE_SECONDS)  # at the instant of expiry, swept or not
    assert store.renew(leased) == [lost(leased)]
    assert store.renew() == []
    assert store.dump() == before


def test_the_cancel_flag_is_carried_each_time_and_delivered_once(store: Store) -> None:
    asked, untouched = store.in_state(S.LEASED), store.in_state(S.LEASED)
    store.cancel(asked)
    store.wait(10)
    delivered_at = store.now
    holds = [store.hold(asked), store.hold(untouched)]
    for _ in range(2):
        answers = store.renew(*holds)
        assert [answer.cancel_requested for answer in answers] == [True, False]
        store.wait(10)
    assert store.row(asked).cancel_delivered_at == delivered_at
    assert store.row(untouched).cancel_delivered_at is None


def test_a_lost_lease_delivers_no_cancel(store: Store) -> None:
    job_id = store.in_state(S.LEASED)
    store.cancel(job_id)
    store.wait(LEASE_SECONDS)
    assert store.renew(store.hold(job_id)) == [lost(store.hold(job_id))]
    assert store.row(job_id).cancel_delivered_at is None


def test_a_node_is_registered_seen_and_stopped(store: Store) -> None:
    record = NodeRecord(
        WORKER, "host", 7, "1.0", store.now, 20.0, 4, ("default", "mail"), ("pack",)
    )
    store.database.write(heartbeats.register_node, record)
    store.wait(20)
    store.database.write(heartbeats.node_seen, WORKER, now=store.now, draining=True)
    seen_at = store.now
    store.wait(1)
    store.database.write(heartbeats.node_stopped, WORKER, now=store.now)
    row = store.database.read(lambda connection: connection.execute(select(schema.nodes)).one())
    assert (row.worker_id, row.slots, row.queues) == (WORKER, 4, '["default", "mail"]')
    assert (row.started_at, row.last_seen_at) == (record.started_at, store.now)
    assert (row.draining, row.stopped_at) == (True, store.now)
    assert seen_at < store.now

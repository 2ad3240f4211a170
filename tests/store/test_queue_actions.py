"""Pause, resume and limit: what they answer, what they write, and that claims obey at once."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue, StoreUnavailable, ValueTooLarge
from latchwork.monitor import Monitor
from latchwork.operations import Operator
from latchwork.queue_views import QueueOutcome
from latchwork.store import queue_actions, schema
from latchwork.store.claiming import claim
from latchwork.store.database import Database
from latchwork.store.engines import writing
from latchwork.views import QueueView
from tests.clocks import SetClock
from tests.store.builders import ACTOR, LEASE_SECONDS, Store
from tests.store.test_locking_postgres import until_waiting

O = QueueOutcome  # noqa: E741
PATIENCE_SECONDS = 30


@pytest.fixture
def operator(database: Database) -> Operator:
    return Operator(database)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def done(future: "Future[Any]") -> Any:
    return future.result(timeout=PATIENCE_SECONDS)


def until_held(store: Store, count: int = 1) -> None:
    """Return once ``count`` connections wait; on SQLite the one that writes holds all others."""
    if not store.database.is_sqlite:
        until_waiting(store, count)


def pause(store: Store, queue: str) -> QueueOutcome:
    return store.database.write(queue_actions.pause, queue, actor=ACTOR, now=store.now).outcome


def set_limit(store: Store, queue: str, limit: int | None) -> QueueOutcome:
    return store.database.write(
        queue_actions.set_limit, queue, limit, actor=ACTOR, now=store.now
    ).outcome


def claim_on(connection: Any, store: Store, queue: str, limit: int) -> list[Any]:
    return claim(
        connection, worker_id="node-2", queue=queue, limit=limit, lease_seconds=LEASE_SECONDS,
        now=store.now,
    ).jobs  # fmt: skip


def the_queue(store: Store, name: str) -> QueueView:
    (found,) = [one for one in Monitor(store.database).queues() if one.name == name]
    return found


def test_a_paused_queue_gives_out_nothing_until_it_is_resumed(
    store: Store, operator: Operator
) -> None:
    store.enqueue(queue="mail")
    result = operator.pause_queue("mail", actor="ann")
    assert (result.outcome, result.paused_by) == (O.PAUSED, "ann")
    assert store.claim("mail") == []
    assert operator.resume_queue("mail", actor="ben").outcome is O.RESUMED
    assert len(store.claim("mail")) == 1
    assert [(r.action, r.actor, r.subject_kind, r.subject) for r in store.audit_rows()] == [
        ("pause_queue", "ann", "queue", "mail"),
        ("resume_queue", "ben", "queue", "mail"),
    ]


def test_a_second_pause_changes_nothing_and_keeps_the_first_actor(
    store: Store, operator: Operator
) -> None:
    first = operator.pause_queue("mail", actor="ann")
    again = operator.pause_queue("mail", actor="ben")
    assert again.outcome is O.UNCHANGED
    assert (again.paused_at, again.paused_by) == (first.paused_at, "ann")
    assert len(store.audit_rows()) == 1


def test_actions_without_effect_leave_no_row_behind(store: Store, operator: Operator) -> None:
    assert operator.resume_queue("unknown", actor="ann").outcome is O.UNCHANGED
    assert operator.set_limit("unknown", None, actor="ann").outcome is O.UNCHANGED
    assert store.audit_rows() == []
    assert Monitor(store.database).queues() == ()


def test_a_queue_nobody_has_used_can_be_paused_and_limited_beforehand(
    store: Store, operator: Operator
) -> None:
    operator.pause_queue("later", actor="ann")
    assert operator.set_limit("later", 2, actor="ann").concurrency_limit == 2
    for _ in range(3):
        store.enqueue(queue="later")
    assert store.claim("later", 5) == []
    operator.resume_queue("later", actor="ann")
    assert len(store.claim("later", 5)) == 2


def test_a_limit_holds_over_all_nodes_and_lifting_it_frees_the_rest(
    store: Store, operator: Operator
) -> None:
    for _ in range(5):
        store.enqueue(queue="mail")
    assert operator.set_limit("mail", 3, actor="ann").outcome is O.LIMITED
    assert [len(store.claim("mail", 2, worker=f"node-{n}")) for n in range(3)] == [2, 1, 0]
    assert operator.set_limit("mail", None, actor="ann").outcome is O.UNLIMITED
    assert len(store.claim("mail", 5)) == 2
    details = [row.detail for row in store.audit_rows()]
    assert details == [
        '{"outcome":"limited","limit":3,"before":null}',
        '{"outcome":"unlimited","limit":null,"before":3}',
    ]


def test_jobs_above_a_lowered_limit_run_on(store: Store, operator: Operator) -> None:
    jobs = [store.enqueue(queue="mail") for _ in range(5)]
    holds = [one.hold for one in store.claim("mail", 3)]
    operator.set_limit("mail", 2, actor="ann")
    assert store.count(JobState.LEASED) == 3
    assert store.claim("mail", 5) == []
    store.finish(holds[0])
    assert store.claim("mail", 5) == []
    store.finish(holds[1])
    assert len(store.claim("mail", 5)) == 1
    assert store.states(*jobs[:2]) == [JobState.SUCCEEDED] * 2


def test_a_lapsed_lease_holds_its_slot_until_it_is_swept(store: Store, operator: Operator) -> None:
    for _ in range(2):
        store.enqueue(queue="mail")
    operator.set_limit("mail", 1, actor="ann")
    store.claim("mail")
    store.wait(LEASE_SECONDS + 1)
    assert store.claim("mail") == []
    store.sweep(next_due_at=store.now)
    assert len(store.claim("mail", 5)) == 1


@pytest.mark.parametrize("limit", [0, -1, 2**31, True, 1.5, "3"])
def test_a_limit_that_is_no_number_of_jobs_is_refused(
    store: Store, operator: Operator, limit: Any
) -> None:
    for act in (operator.preview_set_limit, lambda *a: operator.set_limit(*a, actor="ann")):
        with pytest.raises(InvalidValue) as refused:
            act("mail", limit)
        assert refused.value.field == "limit"
    assert store.audit_rows() == []


@pytest.mark.parametrize(
    ("queue", "actor", "error"),
    [("", "ann", InvalidValue), ("a\0b", "ann", InvalidValue), ("q" * 129, "a", ValueTooLarge),
     ("mail", "", InvalidValue), ("mail", "a" * 129, ValueTooLarge)],
)  # fmt: skip
def test_a_name_that_cannot_be_one_is_refused(
    store: Store, operator: Operator, queue: str, actor: str, error: type[Exception]
) -> None:
    for act in (
        operator.pause_queue,
        operator.resume_queue,
        lambda name, actor: operator.set_limit(name, 1, actor=actor),
    ):
        with pytest.raises(error):
            act(queue, actor=actor)
    assert store.audit_rows() == []


@pytest.mark.parametrize("action", ["pause_queue", "resume_queue", "set_limit"])
def test_an_action_whose_answer_was_lost_is_done_once_and_answered(
    store: Store, operator: Operator, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if action == "resume_queue":
        operator.pause_queue("mail", actor="ann")
    before = len(store.audit_rows())
    write = store.database.write
    lost: list[Any] = []

    def lose_the_first_answer(*args: Any, **given: Any) -> Any:
        answer = write(*args, **given)
        if not lost:
            lost.append(answer)
            raise StoreUnavailable("the connection broke")
        return answer

    monkeypatch.setattr(store.database, "write", lose_the_first_answer)
    given = (3,) if action == "set_limit" else ()
    answer = getattr(operator, action)("mail", *given, actor="ann")
    assert answer == lost[0]
    assert answer.outcome is not O.UNCHANGED
    assert len(store.audit_rows()) == before + 1


def test_previews_say_what_would_happen_and_change_nothing(
    store: Store, operator: Operator
) -> None:
    store.database.clock = SetClock(lambda: store.now)
    jobs = [store.enqueue(queue="mail") for _ in range(4)]
    store.claim("mail", 2)
    before = store.dump()
    paused = operator.preview_pause_queue("mail")
    assert paused.allowed
    assert paused.reason == (
        "None of its jobs is claimed any more: 2 jobs due will wait, 2 jobs running will run on."
    )
    assert [holder.id for holder in paused.holders] == jobs[:2]
    assert not operator.preview_resume_queue("mail").allowed
    lowered = operator.preview_set_limit("mail", 1)
    assert "Those above the limit run on" in lowered.reason
    assert not operator.preview_set_limit("mail", None).allowed
    assert store.dump() == before
    operator.pause_queue("mail", actor="ann")
    again = operator.preview_pause_queue("mail")
    assert not again.allowed
    assert again.reason.startswith("It is paused already, by ann since ")
    resumed = operator.preview_resume_queue("mail")
    assert resumed.reason == "Its jobs are claimed again: 2 jobs due. No live node serves it."


def test_a_pause_waits_for_the_claim_under_way_and_no_later_one_commits(
    store: Store, threads: ThreadPoolExecutor
) -> None:
    for _ in range(4):
        store.enqueue(queue="mail")
    with writing(store.database.engine) as connection:
        assert len(claim_on(connection, store, "mail", 1)) == 1
        pausing = threads.submit(pause, store, "mail")
        until_held(store)
        assert not pausing.done()
        later = threads.submit(store.claim, "mail", 5)
        until_held(store, 2)
    assert done(pausing) is O.PAUSED
    # A claim that came after the pause stands behind it on PostgreSQL. On SQLite writers take turns
    # in any order, so it may come first; but none comes once the pause has answered.
    first = done(later)
    assert first == [] or store.database.is_sqlite
    assert store.claim("mail", 5) == []
    assert store.count(JobState.LEASED) == 1 + len(first)


def test_a_claim_waits_for_the_pause_under_way_and_obeys_it(
    store: Store, threads: ThreadPoolExecutor
) -> None:
    store.enqueue(queue="mail")
    with writing(store.database.engine) as connection:
        queue_actions.pause(connection, "mail", actor=ACTOR, now=store.now)
        claiming = threads.submit(store.claim, "mail", 5)
        until_held(store)
    assert done(claiming) == []


@pytest.mark.parametrize("before", [None, 1, 5])
def test_a_claim_waits_for_the_limit_under_way_and_obeys_it(
    store: Store, threads: ThreadPoolExecutor, before: int | None
) -> None:
    for _ in range(9):
        store.enqueue(queue="mail")
    set_limit(store, "mail", before)
    store.claim("mail", 1)
    with writing(store.database.engine) as connection:
        queue_actions.set_limit(connection, "mail", 3, actor=ACTOR, now=store.now)
        claims = [threads.submit(store.claim, "mail", 5) for _ in range(3)]
        until_held(store, 3)
    assert sum(len(done(one)) for one in claims) == 2
    assert store.count(JobState.LEASED) == 3


def test_a_limit_waits_for_the_claim_under_way_and_counts_its_jobs(
    store: Store, threads: ThreadPoolExecutor
) -> None:
    for _ in range(9):
        store.enqueue(queue="mail")
    with writing(store.database.engine) as connection:
        assert len(claim_on(connection, store, "mail", 4)) == 4
        limiting = threads.submit(set_limit, store, "mail", 3)
        until_held(store)
    assert done(limiting) is O.LIMITED
    assert store.claim("mail", 5) == []


def test_pausing_never_makes_an_enqueue_wait_nor_the_other_way_round(
    postgres_store: Store, threads: ThreadPoolExecutor
) -> None:
    store = postgres_store
    with writing(store.database.engine) as connection:
        queue_actions.pause(connection, "new", actor=ACTOR, now=store.now)
        done(threads.submit(store.enqueue, queue="new"))
    assert the_queue(store, "new").paused_by == ACTOR


def test_two_operators_at_once_leave_one_audit_row_each_for_what_they_did(
    store: Store, threads: ThreadPoolExecutor
) -> None:
    outcomes = [done(one) for one in [threads.submit(pause, store, "mail") for _ in range(4)]]
    assert sorted(outcomes) == [O.PAUSED, O.UNCHANGED, O.UNCHANGED, O.UNCHANGED]
    assert len(store.audit_rows()) == 1


def test_a_paused_queue_is_shown_with_who_and_since(store: Store, operator: Operator) -> None:
    store.enqueue(queue="mail")
    operator.pause_queue("mail", actor="ann")
    operator.set_limit("mail", 7, actor="ben")
    found = the_queue(store, "mail")
    assert (found.paused_by, found.concurrency_limit) == ("ann", 7)
    row = select(schema.queues.c.paused_at).where(schema.queues.c.name == "mail")
    assert store.database.read(lambda c: c.scalar(row)) == found.paused_at

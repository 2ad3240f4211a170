"""What the monitor tells: explanations from stored facts, attention, queues, nodes, log pages."""

import random
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update

from latchwork.decisions.states import DependencyMode, JobState
from latchwork.errors import InvalidValue
from latchwork.store.database import Database
from latchwork.store.schema import queues
from latchwork.views import Explanation, LogFilter, TransitionView
from tests.store.scene import WORKER, Scene

S = JobState


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def explain(scene: Scene, job_id: UUID) -> Explanation:
    found = scene.monitor.explain(job_id)
    assert found is not None
    return found


def set_gate(scene: Scene, **values: object) -> None:
    scene.database.write(lambda connection: connection.execute(update(queues).values(values)))


def test_a_due_job_is_explained_by_the_gate_it_stands_at(scene: Scene) -> None:
    first, second = scene.enqueue(), scene.enqueue()
    stranger = scene.enqueue("stranger")
    assert explain(scene, first).code == "not_served"
    scene.start_node()
    assert explain(scene, stranger).code == "unknown_wire_name"
    assert explain(scene, first).code == "next"
    assert explain(scene, second).sentence == "1 job is due before it in default."
    scene.claim()
    set_gate(scene, concurrency_limit=1)
    full = explain(scene, second)
    assert (full.code, full.jobs) == ("limit_full", (first,))
    set_gate(scene, paused_at=scene.now, paused_by="ann")
    assert explain(scene, second).code == "paused"
    scene.wait(61)
    set_gate(scene, paused_at=None, paused_by=None, concurrency_limit=None)
    assert explain(scene, second).code == "not_served", "the node missed three heartbeats"


def test_more_than_a_thousand_jobs_before_it_are_not_counted_on(scene: Scene) -> None:
    scene.start_node()
    scene.enqueue_many(1_001)
    last = scene.enqueue()
    assert explain(scene, last).sentence == "1,000+ jobs are due before it in default."


def test_a_scheduled_job_is_explained_by_its_time(scene: Scene) -> None:
    assert explain(scene, scene.enqueue(due_in=240)).code == "not_due"
    job_id = scene.enqueue()
    scene.run(S.SCHEDULED, retry_in=40)
    assert explain(scene, job_id).code == "waiting_to_retry"


def test_a_waiting_job_names_the_parents_it_waits_for(scene: Scene) -> None:
    done, live = scene.enqueue(), scene.enqueue("pack", due_in=60)
    child = scene.enqueue(parents=(done, live))
    scene.run(S.SUCCEEDED)
    told = explain(scene, child)
    assert told.sentence == "Waiting for 1 of 2 parents: pack (Scheduled)."
    assert told.jobs == (live,)


def test_a_running_job_is_explained_from_claim_to_cancel_to_lapse(scene: Scene) -> None:
    scene.start_node()
    job_id = scene.enqueue()
    (claimed,) = scene.claim()
    scene.wait(3)
    told = explain(scene, job_id)
    assert told.node == WORKER
    assert told.sentence == (f"Leased by {WORKER}, heartbeat 3 s ago; the lease ends in 57 s.")
    scene.cancel(job_id)
    assert explain(scene, job_id).code == "cancel_asked"
    scene.beat(claimed)
    assert explain(scene, job_id).code == "cancel_delivered"
    scene.wait(60)
    assert explain(scene, job_id).code == "lapsed"


def test_a_cascade_is_explained_by_parent_and_root(scene: Scene) -> None:
    root = scene.enqueue("charge")
    middle = scene.enqueue("pack", parents=(root,), step="packing")
    leaf = scene.enqueue("ship", parents=(middle,))
    scene.run(S.DEAD_LETTERED)
    assert explain(scene, root).sentence == "Dead-Lettered at attempt 1 of 10: ValueError."
    told = explain(scene, leaf)
    assert told.sentence == (
        "Cancelled because its parent packing is Cancelled; it began with charge."
    )
    assert told.jobs == (middle, root)
    assert "secret" not in explain(scene, root).sentence


def test_a_cancelled_job_names_who_cancelled_it(scene: Scene) -> None:
    job_id = scene.enqueue()
    scene.cancel(job_id, actor="bob")
    assert explain(scene, job_id).sentence == "Cancelled by bob."
    (row,) = scene.monitor.audit_of_job(job_id)
    assert (row.actor, row.action) == ("bob", "cancel")


@pytest.mark.parametrize("seed", range(2))
def test_every_job_has_one_sentence_whatever_its_state(scene: Scene, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - repeatable
    scene.start_node()
    made: list[UUID] = []
    for _ in range(15):
        parents = tuple(chance.sample(made, min(len(made), chance.randint(0, 2))))
        mode = chance.choice(list(DependencyMode))
        made.append(scene.enqueue(parents=parents, mode=mode, due_in=chance.choice([0, 9])))
        for claimed in scene.claim(2):
            if chance.random() < 0.7:
                ends = [S.SUCCEEDED, S.DEAD_LETTERED, S.CANCELLED, S.QUARANTINED, S.SCHEDULED]
                scene.end(claimed, chance.choice(ends), retry_in=5)
    for job_id in made:
        told = explain(scene, job_id)
        assert told.code
        assert told.sentence.endswith(".")


def test_what_needs_attention_is_told(scene: Scene) -> None:
    assert scene.monitor.attention() == ()
    scene.start_node()
    scene.enqueue_many(2)
    scene.run(S.QUARANTINED)
    scene.run(S.DEAD_LETTERED)
    cancelled = scene.enqueue()
    (claimed,) = scene.claim()
    scene.cancel(cancelled)
    scene.beat(claimed)
    scene.enqueue(queue="orphan")
    scene.wait(31)
    told = {one.code: one for one in scene.monitor.attention()}
    assert set(told) == {"quarantined", "dead_lettered", "cancel_unanswered", "queue_not_served"}
    assert told["cancel_unanswered"].job_id == cancelled
    assert told["queue_not_served"].queue == "orphan"
    assert told["dead_lettered"].subject == "1 job Dead-Lettered"
    assert told["dead_lettered"].sentence.endswith("Requeue once the cause is mended.")
    assert "attempt" not in told["dead_lettered"].sentence
    scene.wait(40)
    scene.start_node("other", queues=("orphan",))
    codes = [one.code for one in scene.monitor.attention()]
    assert codes[0] == "lapsed_leases"
    assert "queue_late" in codes


def test_queues_show_depth_pace_gates_and_servers(scene: Scene) -> None:
    scene.start_node()
    scene.enqueue_many(4)
    oldest = scene.now
    scene.run(S.SUCCEEDED)
    scene.enqueue(due_in=60)
    set_gate(scene, concurrency_limit=3)
    scene.wait(5)
    (queue,) = scene.monitor.queues()
    assert queue.name == "default"
    assert queue.counts[S.SCHEDULED] == 4
    assert queue.counts[S.SUCCEEDED] == 1
    assert queue.counts[S.LEASED] == 0
    assert queue.due.value == 3
    assert queue.oldest_due_at == oldest
    assert queue.concurrency_limit == 3
    assert queue.served_by == (WORKER,)
    assert 0 < queue.outcomes_per_minute < queue.enqueued_per_minute


def test_nodes_show_what_they_execute(scene: Scene) -> None:
    scene.start_node()
    scene.start_node("idle")
    scene.enqueue_many(3)
    claimed = scene.claim(2)
    first, second = scene.monitor.nodes()
    assert {job.id for job in first.running} == {job.id for job in claimed}
    assert (second.worker_id, second.running) == ("idle", ())
    scene.wait(61)
    assert not any(node.live for node in scene.monitor.nodes())
    scene.wait(86_400)
    assert scene.monitor.nodes() == ()


def log_of(scene: Scene, log_filter: LogFilter, limit: int) -> list[TransitionView]:
    page = scene.monitor.transitions(log_filter, limit=limit)
    met = list(page.transitions)
    while page.older is not None:
        page = scene.monitor.transitions(log_filter, before_position=page.older, limit=limit)
        met += page.transitions
    return met


def test_every_filter_of_the_log_gives_exactly_its_rows(scene: Scene) -> None:
    job_id = scene.enqueue("pack")
    scene.enqueue_many(6)
    scene.enqueue(queue="slow")
    for end in (S.SCHEDULED, S.SUCCEEDED, S.DEAD_LETTERED, S.QUARANTINED, S.CANCELLED):
        scene.run(end)
    everything = scene.monitor.transitions(limit=200).transitions
    assert [row.position for row in everything] == sorted(
        (row.position for row in everything), reverse=True
    )
    for states in ((), (S.LEASED, S.DEAD_LETTERED)):
        for queue in (None, "slow"):
            for wire_name in (None, "pack"):
                for one in (None, job_id):
                    for failing in (False, True):
                        chosen = LogFilter(states, queue, wire_name, one, failing)
                        wanted = [row for row in everything if chosen.matches(row)]
                        assert log_of(scene, chosen, 3) == wanted, chosen


def test_a_log_page_names_the_place_to_follow_it_from(scene: Scene) -> None:
    scene.enqueue_many(3)
    page = scene.monitor.transitions(limit=2)
    assert page.token == "3"
    assert scene.monitor.log_token() == "3"
    assert (page.older, page.newer, page.kept_from) == (2, None, 1)
    older = scene.monitor.transitions(before_position=2)
    assert [row.position for row in older.transitions] == [1]
    assert older.newer == 1
    newer = scene.monitor.transitions(after_position=1)
    assert [row.position for row in newer.transitions] == [3, 2]
    assert newer.newer is None


def test_an_empty_log_is_an_empty_page(scene: Scene) -> None:
    page = scene.monitor.transitions()
    assert (page.transitions, page.token, page.kept_from) == ((), "0", None)
    assert scene.monitor.transitions_at(scene.now).transitions == ()


def test_the_log_can_be_opened_at_a_time(scene: Scene) -> None:
    begun = scene.now
    for _ in range(20):
        scene.enqueue()
        scene.wait(10)
    for passed in (-1, 0, 5, 10, 95, 190, 5000):
        page = scene.monitor.transitions_at(begun + timedelta(seconds=passed), limit=3)
        newest = max((n for n in range(20) if n * 10 <= passed), default=-1)
        assert [row.position for row in page.transitions] == [
            n for n in range(newest + 1, newest - 2, -1) if n > 0
        ]


def test_history_says_what_was_dropped(scene: Scene) -> None:
    job_id = scene.enqueue()
    for _ in range(35):
        scene.run(S.SCHEDULED, retry_in=0)
    history = scene.monitor.history(job_id)
    assert len(history.transitions) == 64
    assert history.dropped == 71 - 64
    ordinals = [row.ordinal for row in history.transitions]
    assert ordinals == list(range(7, 71))
    assert history.transitions[-1].failure_detail == "Traceback ..."


def test_the_names_in_use_are_known(scene: Scene) -> None:
    scene.enqueue("pack", queue="slow")
    scene.enqueue("charge")
    facets = scene.monitor.facets()
    assert facets.queues == ("default", "slow")
    assert facets.wire_names == ("charge", "pack")


def test_the_audit_trail_is_paged(scene: Scene) -> None:
    made = scene.enqueue_many(5)
    for job_id in made:
        scene.cancel(job_id)
    first = scene.monitor.audit(limit=3)
    assert [row.subject for row in first] == [str(one) for one in made[:1:-1]]
    rest = scene.monitor.audit(limit=3, before=first[-1].id)
    assert [row.subject for row in rest] == [str(made[1]), str(made[0])]
    with pytest.raises(InvalidValue):
        scene.monitor.audit(limit=0)

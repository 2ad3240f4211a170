"""Outputs, tags, texts, the log's cap and the statements of the hot paths."""

import json

from sqlalchemy import select

from latchwork.decisions.states import JobState
from latchwork.store import schema
from latchwork.store.moves import Cause
from latchwork.store.outcomes import Report
from latchwork.values import MAX_OUTPUT_BYTES, MAX_PAYLOAD_BYTES
from tests.store.builders import CANCELLED, FAILURE, SUCCESS, UNROUTABLE, Store, counted_statements

S = JobState
ODD_TEXTS = [
    "NULL", "null", "", " ", "{}", "{a,b}", '"', "\\", '\\"', "'", "a,b", "ünïcödé 🎉", "\u2028",
    "%s", ":name", "$1", "\t\n\r", "\\N", "\\u0000", "<b>&amp;</b>",
]  # fmt: skip


def found_by_tag(store: Store, key: str, value: str = "") -> set[int]:
    tag = schema.job_tags.c
    found = select(tag.job_sequence).where(tag.key == key, tag.value == value)
    return set(store.database.read(lambda connection: connection.scalars(found).all()))


def test_payloads_and_outputs_are_kept_byte_for_byte_up_to_their_bounds(store: Store) -> None:
    texts = [json.dumps(text) for text in ODD_TEXTS]
    texts += [json.dumps(text, ensure_ascii=False) for text in ODD_TEXTS]
    texts += ["1e3", "1.0", '{"b": 1, "a":1}', '{"a": 1, "a": 2}', " [1 , 2] "]
    texts.append('"' + "x" * (MAX_PAYLOAD_BYTES - 2) + '"')
    assert MAX_PAYLOAD_BYTES == MAX_OUTPUT_BYTES
    ids = store.enqueue_all([store.new_job(queue="texts", payload=text) for text in texts])
    claimed = store.claim("texts", limit=len(texts))
    assert [job.payload for job in claimed] == texts
    for job in claimed:
        store.finish(job.hold, output=job.payload)
    outputs = store.outputs()
    assert [outputs[job_id] for job_id in ids] == texts


def test_names_tags_causes_and_details_survive_any_character(store: Store) -> None:
    for text in filter(str.strip, ODD_TEXTS):
        tags = (text, ("key", text))
        job_id = store.enqueue(wire_name=text, queue=text, tags=tags)
        (job,) = store.claim(text, worker=text)
        assert (job.wire_name, job.queue, job.tags) == (text, text, tags)
        cause = Cause(text, text, text)
        store.finish(job.hold, FAILURE, worker=text, cause=cause, failure_detail=text)
        row = store.row(job_id)
        assert (row.cause_code, row.cause_type, row.cause_text) == (text, text, text)
        last = store.log(job_id)[-1]
        assert (last.failure_detail, last.worker, last.queue) == (text, text, text)
        assert found_by_tag(store, text) == found_by_tag(store, "key", text) == {row.sequence}


def test_an_output_is_kept_with_success_only(store: Store) -> None:
    for kind in (FAILURE, CANCELLED, UNROUTABLE):
        job_id = store.in_state(S.LEASED)
        if kind is CANCELLED:
            store.cancel(job_id)
        store.finish(store.hold(job_id), kind, output="1")
    retried = store.enqueue()
    store.finish(store.lease(retried), FAILURE, next_due_at=store.now, output='"first"')
    assert store.outputs() == {}
    store.finish(store.lease(retried), SUCCESS, output='"second"')
    silent = store.in_state(S.SUCCEEDED)
    assert store.outputs() == {retried: '"second"'}
    assert silent not in store.outputs()


def test_tags_added_by_the_handler_are_stored_with_every_accepted_outcome(store: Store) -> None:
    for kind in (SUCCESS, FAILURE, CANCELLED, UNROUTABLE):
        job_id = store.enqueue(tags=("given",))
        hold = store.lease(job_id)
        if kind is CANCELLED:
            store.cancel(job_id)
        whole = ("given", "added", ("order", "42"))
        stale = hold._replace(claim_number=9)
        store.finish(stale, kind, tags=("wrong",))
        assert store.tags(job_id) == ("given",)
        store.finish(hold, kind, tags=whole)
        assert store.tags(job_id) == whole
        assert store.row(job_id).sequence in found_by_tag(store, "order", "42")
    assert len(found_by_tag(store, "added")) == 4
    assert found_by_tag(store, "wrong") == set()


def test_a_jobs_log_keeps_its_last_64_rows_without_a_hole(store: Store) -> None:
    job_id, other = store.enqueue(), store.enqueue()
    for _ in range(40):
        store.finish(store.lease(job_id), FAILURE, next_due_at=store.now)
    log = store.log(job_id)
    assert len(log) == 64
    assert [row.ordinal for row in log] == list(range(17, 81))
    assert store.row(job_id).next_ordinal == 81
    # Two rows at one instant also leave 64.
    hold = store.lease(job_id)
    store.cancel(job_id)
    store.finish(hold, FAILURE, next_due_at=store.now)
    assert [row.ordinal for row in store.log(job_id)] == list(range(20, 84))
    assert len(store.log(other)) == 1


def test_the_hot_paths_send_few_statements_whatever_the_batch(store: Store) -> None:
    """Exact upper bounds: one more statement per batch is a change to be made on purpose."""
    sent: dict[str, set[int]] = {"enqueue": set(), "claim": set(), "report": set()}
    for _ in range(2):  # the queue's first job also writes its name, the second finds it
        store.enqueue(queue="hot")
    for size in (1, 10, 200):
        jobs = [store.new_job(queue="hot") for _ in range(size)]
        with counted_statements(store.database) as statements:
            store.enqueue_all(jobs)
        sent["enqueue"].add(len(statements))
        with counted_statements(store.database) as statements:
            claimed = store.claim("hot", limit=size)
        sent["claim"].add(len(statements))
        with counted_statements(store.database) as statements:
            store.report(*(Report(job.hold, SUCCESS) for job in claimed))
        sent["report"].add(len(statements))
    assert all(len(counts) == 1 for counts in sent.values()), sent
    sqlite = {"enqueue": {4}, "claim": {4}, "report": {5}}
    # Row, log row and ledger row in one; but a lock on the queue before its setting is read.
    postgres = {"enqueue": {3}, "claim": {3}, "report": {3}}
    assert sent == (sqlite if store.database.is_sqlite else postgres)

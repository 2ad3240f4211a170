"""The log's readers miss no committed row, whatever order the rows become visible in."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import Connection, delete, text
from uuid_utils.compat import uuid7

from latchwork.decisions.leases import Hold
from latchwork.decisions.retries import RetryPolicy
from latchwork.settings import Settings
from latchwork.store import claiming, enqueueing, outcomes
from latchwork.store.database import Database
from latchwork.store.engines import writing
from latchwork.store.enqueueing import NewJob
from latchwork.store.log_place import Place
from latchwork.store.names import Used, introduce
from latchwork.store.outcomes import OutcomeKind, Report
from latchwork.store.schema import queues, transitions, wire_names
from latchwork.store.transition_log import LogBatch, Reading, end_of_log, read_batch
from latchwork.views import TransitionView
from tests.store.scene import Scene

START = Reading(0)


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Database]:
    database = Database(postgres_url, Settings())
    # The first job of a queue waits for another first job of it: not what is tested here.
    names: Used = {queues: ["default"], wire_names: ["pack"]}
    database.write(introduce, names, datetime.now(UTC))
    yield database
    database.dispose()


def read(database: Database, reading: Reading, limit: int = 1000) -> LogBatch:
    return database.read(read_batch, reading, limit=limit)


def positions(batch: LogBatch) -> list[int]:
    return [row.position for row in batch]


def new_job() -> NewJob:
    return NewJob(uuid7(), "pack", "default", "{}", RetryPolicy(), datetime.now(UTC))


def enqueue(connection: Connection, count: int = 1) -> list[UUID]:
    made = [new_job() for _ in range(count)]
    enqueueing.insert_jobs(connection, made, now=datetime.now(UTC))
    return [job.id for job in made]


@contextmanager
def open_transaction(database: Database, rows: int = 1) -> Iterator[Connection]:
    """A transaction that has written ``rows`` log rows and is not over."""
    with database.engine.connect() as connection:
        enqueue(connection, rows)
        yield connection


def test_a_row_is_delivered_once_its_transaction_commits_and_stalls_nobody(
    postgres: Database,
) -> None:
    postgres.write(enqueue)
    with open_transaction(postgres) as slow:
        postgres.write(enqueue)
        first = read(postgres, START)
        assert positions(first) == [1, 3]
        assert str(first.reading.place) == "3~2"
        postgres.write(enqueue)
        second = read(postgres, first.reading)
        assert positions(second) == [4]
        slow.commit()
    third = read(postgres, second.reading)
    assert positions(third) == [2]
    assert str(third.reading.place) == "4"


def test_a_rolled_back_position_is_given_up(postgres: Database) -> None:
    with open_transaction(postgres, rows=3) as doomed:
        postgres.write(enqueue)
        first = read(postgres, START)
        assert str(first.reading.place) == "4~1-3"
        doomed.rollback()
    assert str(read(postgres, first.reading).reading.place) == "4"


def test_a_gap_is_not_given_up_while_its_writer_lives(postgres: Database) -> None:
    with open_transaction(postgres) as slow:
        postgres.write(enqueue)
        reading = read(postgres, START).reading
        for _ in range(5):
            reading = read(postgres, reading).reading
            assert str(reading.place) == "2~1"
        slow.commit()
    assert positions(read(postgres, reading)) == [1]


def test_an_unrelated_transaction_keeps_no_gap_open(postgres: Database) -> None:
    with postgres.engine.connect() as unrelated:
        unrelated.execute(text("UPDATE latchwork_facts SET value = value"))
        with open_transaction(postgres) as doomed:
            doomed.rollback()
        postgres.write(enqueue)
        reading = read(postgres, START).reading
        assert str(read(postgres, reading).reading.place) == "2"


def test_a_token_carries_the_gaps_to_another_reader(postgres: Database) -> None:
    with open_transaction(postgres) as slow:
        postgres.write(enqueue)
        token = str(read(postgres, START).reading.place)
        other = Reading.at(Place.parse(token))
        # Its first reading learns whom to wait for; it must not give the gap up.
        again = read(postgres, other)
        assert positions(again) == []
        assert str(again.reading.place) == token
        slow.commit()
    assert positions(read(postgres, again.reading)) == [1]


def test_a_reader_that_begins_at_the_end_still_gets_what_was_open_then(postgres: Database) -> None:
    postgres.write(enqueue)
    with open_transaction(postgres) as slow:
        postgres.write(enqueue)
        place = postgres.read(end_of_log)
        assert str(place) == "3~2"
        slow.commit()
    assert positions(read(postgres, Reading.at(place))) == [2]


def test_the_end_of_an_idle_log_is_its_last_position(database: Database) -> None:
    assert str(database.read(end_of_log)) == "0"
    database.write(enqueue, 3)
    assert str(database.read(end_of_log)) == "3"


def test_each_row_has_the_place_to_resume_after_it(postgres: Database) -> None:
    with open_transaction(postgres, rows=2) as slow:
        postgres.write(enqueue, 2)
        before = read(postgres, START).reading
        slow.commit()
    postgres.write(enqueue, 2)
    batch = read(postgres, before)
    assert positions(batch) == [1, 2, 5, 6]
    for count, (_, place) in enumerate(batch.places(before), start=1):
        resumed = read(postgres, Reading.at(Place.parse(str(place))))
        assert positions(resumed) == positions(batch)[count:]


def test_a_small_batch_gives_up_no_gap_it_has_not_looked_at(postgres: Database) -> None:
    with open_transaction(postgres, rows=4) as slow:
        postgres.write(enqueue)
        reading = read(postgres, START).reading
        slow.commit()
    met: list[int] = []
    for _ in range(6):
        batch = read(postgres, reading, limit=1)
        met += positions(batch)
        reading = batch.reading
    assert met == [1, 2, 3, 4]
    assert str(reading.place) == "5"


def test_hundreds_of_gaps_are_waited_for(postgres: Database) -> None:
    with open_transaction(postgres) as slow:
        for _ in range(150):
            with open_transaction(postgres) as doomed:
                doomed.rollback()
            postgres.write(enqueue)
        first = read(postgres, START)
        assert len(first) == 150
        assert len(first.reading.place.gaps) == 150
        assert str(first.reading.place) == "0"
        slow.commit()
    second = read(postgres, first.reading)
    assert positions(second) == [1]
    assert str(second.reading.place) == "301"


@pytest.mark.no_audit("log rows are deleted by hand")
def test_a_reader_older_than_what_is_kept_is_told(database: Database) -> None:
    database.write(enqueue, 5)
    database.write(lambda c: c.execute(delete(transitions).where(transitions.c.position < 4)))
    batch = read(database, START)
    told = batch.gone_before or read(database, batch.reading).gone_before
    assert positions(batch) == [4, 5]
    assert told == 4
    fresh = read(database, Reading(3))
    assert positions(fresh) == [4, 5]
    assert fresh.gone_before is None


def test_on_sqlite_a_token_is_a_plain_position(sqlite_url: str) -> None:
    database = Database(sqlite_url, Settings())
    scene = Scene(database)
    scene.enqueue_many(3)
    with writing(database.engine) as connection:
        enqueue(connection)
        connection.rollback()
    scene.enqueue()
    batch = read(database, START)
    assert positions(batch) == [1, 2, 3, 4]
    assert str(batch.reading.place) == "4"
    database.dispose()


def _churn(database: Database, seed: int, jobs_each: int, done: threading.Event) -> None:
    """Enqueue, claim and end jobs in transactions that dawdle, and sometimes roll back."""
    chance = random.Random(seed)  # noqa: S311 - repeatable churn
    worker = f"worker-{seed}"
    while jobs_each:
        with database.engine.connect() as connection:
            now = datetime.now(UTC)
            batch = min(jobs_each, chance.randint(1, 4))
            enqueue(connection, batch)
            for claimed in claiming.claim(
                connection, worker_id=worker, queue="default", limit=4, lease_seconds=60, now=now
            ).jobs:
                hold = Hold(claimed.sequence, claimed.attempt, claimed.claim_number)
                report = Report(hold, OutcomeKind.SUCCESS)
                outcomes.report_outcomes(connection, worker, [report], now=datetime.now(UTC))
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.02)
            if chance.random() < 0.05:
                connection.rollback()
                continue
            connection.commit()
            jobs_each -= batch
    done.set()


def test_no_committed_row_is_missed_and_nothing_stalls_under_load(postgres: Database) -> None:
    ends = [threading.Event() for _ in range(4)]
    writers = [
        threading.Thread(target=_churn, args=(postgres, seed, 170, ends[seed])) for seed in range(4)
    ]
    met: list[TransitionView] = []
    reading = START
    with open_transaction(postgres) as slow:
        for writer in writers:
            writer.start()
        while not all(end.is_set() for end in ends):
            batch = read(postgres, reading, limit=50)
            met += batch
            reading = batch.reading
        for writer in writers:
            writer.join()
        met, reading = _read_to_end(postgres, met, reading)
        assert len(met) >= 2_000, "rows behind an open transaction came all the same"
        assert reading.place.gaps, "the open transaction's position is remembered"
        slow.commit()
    met, reading = _read_to_end(postgres, met, reading)
    assert not reading.place.gaps
    with postgres.engine.connect() as connection:
        stored = connection.scalars(transitions.select().with_only_columns(transitions.c.position))
        assert sorted(row.position for row in met) == sorted(stored)
    ordinals = defaultdict(list)
    for row in met:
        ordinals[row.job_id].append(row.ordinal)
    assert all(found == list(range(len(found))) for found in ordinals.values())


def _read_to_end(
    database: Database, met: list[TransitionView], reading: Reading
) -> tuple[list[TransitionView], Reading]:
    while batch := read(database, reading):
        met = [*met, *batch]
        reading = batch.reading
    return met, read(database, batch.reading).reading

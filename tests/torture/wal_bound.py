"""The write-ahead log of a SQLite file stays bounded under steady writers and slow readers."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from sqlalchemy import func, select

from latchwork import RetryPolicy
from latchwork.settings import Settings
from latchwork.store import schema
from latchwork.store.claiming import claim
from latchwork.store.database import Database
from latchwork.store.engines import reading
from latchwork.store.enqueueing import NewJob, insert_jobs
from latchwork.store.outcomes import OutcomeKind, Report, report_outcomes

BOUND_BYTES = 64 * 1024 * 1024
WRITES_PER_SECOND = 200
READER_SECONDS = 5.0
READERS = 2
BACK_SECONDS = 10.0
WORKER = "writer"


@dataclass
class Samples:
    """The size of the log, once a second."""

    seconds: int = 0
    largest_bytes: int = 0
    writes: int = 0
    findings: list[str] = field(default_factory=list)


def watch_log(folder: Path, seconds: float, seed: int) -> Samples:
    """Write and read for so long and look at the log's size each second."""
    path = folder / "bounded.db"
    database = Database(f"sqlite:///{path}", Settings())
    database.prepare()
    log = Path(f"{path}-wal")
    samples, stopping = Samples(), threading.Event()
    routines: list[Callable[[], None]] = [lambda: write(database, samples, stopping)]
    routines += [
        lambda number=number: read(database, f"{seed}-{number}", stopping)  # type: ignore[misc]
        for number in range(READERS)
    ]
    threads = [threading.Thread(target=routine, daemon=True) for routine in routines]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(1)
        samples.seconds += 1
        size = log.stat().st_size
        samples.largest_bytes = max(samples.largest_bytes, size)
        if size > BOUND_BYTES:
            samples.findings.append(f"the log has {size:,} bytes after {samples.seconds} s")
    stopping.set()
    for thread in threads:
        thread.join(READER_SECONDS + 1)
    stays_small(database, log, samples)
    database.dispose()
    return samples


def write(database: Database, samples: Samples, stopping: threading.Event) -> None:
    """One job's whole life after another, three writes each, at a steady pace."""
    while not stopping.wait(3 / WRITES_PER_SECOND):
        now = database.now()
        new = NewJob(uuid4(), "pack", "wal", "{}", RetryPolicy(), now)
        database.write(insert_jobs, [new], now=now)
        claimed = database.write(
            claim, worker_id=WORKER, queue="wal", limit=1, lease_seconds=60, now=now
        ).jobs
        reports = [Report(job.hold, OutcomeKind.SUCCESS) for job in claimed]
        database.write(report_outcomes, WORKER, reports, now=now)
        samples.writes += 3


def read(database: Database, seed: str, stopping: threading.Event) -> None:
    """Hold a reading open, as a slow page does, and then the next."""
    chance = random.Random(seed)  # noqa: S311 - only says how long readers take
    while not stopping.is_set():
        with reading(database.engine) as connection:
            connection.execute(select(func.max(schema.transitions.c.position))).scalar()
            stopping.wait(chance.uniform(0, READER_SECONDS))


def stays_small(database: Database, log: Path, samples: Samples) -> None:
    """With nobody reading, the log is back below its bound at once."""
    deadline = time.monotonic() + BACK_SECONDS
    while log.stat().st_size > BOUND_BYTES:
        if time.monotonic() > deadline:
            samples.findings.append(f"the log is not back in bounds after {BACK_SECONDS:.0f} s")
            return
        time.sleep(0.2)
        write_one = NewJob(uuid4(), "pack", "wal", "{}", RetryPolicy(), database.now())
        database.write(insert_jobs, [write_one], now=database.now())

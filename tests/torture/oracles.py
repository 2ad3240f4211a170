"""What must be true when a run is over: healed, drained, and judged by tables and witness."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, func, select, text

from latchwork import JobState
from latchwork.monitor import Monitor
from latchwork.store import schema
from latchwork.store.database import Database
from tests.audit import CHECKS, Tables, read_tables
from tests.torture.witness import Line, Testimony

DRAIN_SECONDS = 300.0
STANDSTILL_SECONDS = 45.0
"""How long, with all nodes healed and due work left, nothing at all may happen."""

OBSERVER_SECONDS = 60.0
"""How long the observer may take to hear of the rest, on a machine that has other things to do."""

CLOCKS_AGREE = timedelta(seconds=0.25)
"""How well a node's measure of the database's clock is trusted."""

Key = tuple[UUID, int, int]
"""Job, attempt, process."""

OVERDUE_SECONDS = 15.0
"""How long a lease may have lapsed, with all nodes healed, before a sweep has taken it."""


def drain(database: Database) -> list[str]:
    """Wait until every stored job has ended; what is stuck, however slow the machine is."""
    began_at = moved_at = time.monotonic()
    healed_at = database.now()
    seen = 0
    while True:
        state = database.read(unfinished)
        if not state.live:
            return []
        overdue = database.now() - max(state.first_lapse or database.now(), healed_at)
        if overdue > timedelta(seconds=OVERDUE_SECONDS):
            return [f"a lease lapsed {overdue} ago and no sweep has taken it"]
        if state.last_position != seen:
            seen, moved_at = state.last_position, time.monotonic()
        for since, bound in ((moved_at, STANDSTILL_SECONDS), (began_at, DRAIN_SECONDS)):
            if time.monotonic() - since > bound:
                return [f"{state.live} jobs are live {bound:.0f} s after the last move or healing"]
        time.sleep(0.1)


def wait_for_observer(database: Database) -> list[str]:
    """Wait until the observer's place is the end of the log, its lease of a killed node over."""
    deadline = time.monotonic() + OBSERVER_SECONDS
    monitor = Monitor(database)
    while (seen := monitor.observer("witness")) is None or seen.lag.value or seen.pending.value:
        if time.monotonic() > deadline:
            return [f"the observer is behind after {OBSERVER_SECONDS:.0f} s: {seen}"]
        time.sleep(0.2)
    return []


class Unfinished(NamedTuple):
    """What a drain waits for: live jobs, the first lapse among them, the end of the log."""

    live: int
    first_lapse: datetime | None
    last_position: int


def unfinished(connection: Connection) -> Unfinished:
    """How far a drain has come."""
    jobs = schema.jobs
    waiting = select(func.count(), func.min(jobs.c.lease_expires_at))
    live, lapse = connection.execute(waiting.where(jobs.c.terminal_at.is_(None))).one()
    last = connection.scalar(select(func.max(schema.transitions.c.position)))
    return Unfinished(live, lapse, last or 0)


def judge(database: Database, testimony: Testimony, accepted: Sequence[UUID]) -> list[str]:
    """Every broken rule, one sentence each."""
    tables = database.read(read_consistently)
    findings = [sentence for check in CHECKS for sentence in check(tables)]
    stored = {job.id for job in tables.jobs.values()}
    findings += [f"job {job} was accepted and is lost" for job in accepted if job not in stored]
    findings += [
        f"{tables.job(sequence)} has not ended"
        for sequence, job in tables.jobs.items()
        if not job.state.terminal
    ]
    lines = testimony.lines()
    findings += [*witnessed(tables, lines), *told(tables, lines)]
    if not database.is_sqlite:
        findings += database.read(deadlocks)
    return findings


def deadlocks(connection: Connection) -> list[str]:
    """What the server says of the deadlocks it met, if it is one of our own."""
    if not connection.scalar(DEADLOCKS):
        return []
    lines = str(connection.scalar(SERVER_LOG)).splitlines()
    places = [number for number, line in enumerate(lines) if "deadlock detected" in line]
    return [f"deadlock: {' | '.join(lines[at : at + LINES_OF_ONE])}" for at in places or [0]]


LINES_OF_ONE = 60
SERVER_LOG = text("SELECT pg_read_file('log', 0, 100000000, true)")
DEADLOCKS = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")


def read_consistently(connection: Connection) -> Tables:
    """Every table as of one moment."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
    return read_tables(connection)


def witnessed(tables: Tables, lines: Sequence[Line]) -> list[str]:
    """The log and the witness agree.

    Whoever claimed with attempt n may have begun it once, and nobody else; a success was told by a
    process that had come to the end of that attempt.
    """
    begun = Counter((line.job_id, line.attempt, line.pid) for line in lines if line.what == "begin")
    ended: dict[Key, list[datetime]] = defaultdict(list)
    for line in lines:
        if line.what == "end":
            ended[line.job_id, line.attempt, line.pid].append(line.at)
    claimed: Counter[Key] = Counter()
    succeeded: dict[Key, list[datetime]] = defaultdict(list)
    for sequence, log in tables.logs.items():
        for row in log:
            if row.worker is None:
                continue
            key = (tables.jobs[sequence].id, row.attempt, int(row.worker.split(":")[1]))
            claimed[key] += row.state is JobState.LEASED
            if row.state is JobState.SUCCEEDED:
                succeeded[key].append(row.at)
    cut = {tables.jobs[sequence].id for sequence in tables.jobs if not tables.whole_log(sequence)}
    findings = [
        f"attempt {key} began {number} times, claimed {claimed[key]} times"
        for key, number in begun.items()
        if number > claimed[key] and key[0] not in cut
    ]
    for key, times in succeeded.items():
        returned = ended[key]
        if len(times) > len(returned):
            findings.append(f"{len(times)} successes of {key}, {len(returned)} returns")
        elif min(times) < min(returned) - CLOCKS_AGREE:
            findings.append(f"success of {key} at {min(times)}, its handler returned after that")
    return findings


def told(tables: Tables, lines: Sequence[Line]) -> list[str]:
    """The observer was told of every end, of one job's in the order they came."""
    heard: dict[UUID, list[int]] = defaultdict(list)
    for line in lines:
        if line.what == "told" and line.attempt not in heard[line.job_id]:
            heard[line.job_id].append(line.attempt)
    findings = []
    for sequence, log in tables.logs.items():
        job_id = tables.jobs[sequence].id
        ends = [row.ordinal for row in log if row.state.terminal]
        if ends != [ordinal for ordinal in heard[job_id] if ordinal >= log[0].ordinal]:
            findings.append(f"job {job_id} ended at {ends}, its observer heard {heard[job_id]}")
    return findings

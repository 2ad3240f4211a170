"""No read walks the table of jobs or counts it, and none asks more often for more jobs.

Every statement that the monitor sends is recorded, and its plan is asked for with the same values.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, event

from latchwork.audit_views import AuditFilter
from latchwork.decisions.states import JobState
from latchwork.log_tail import LogTail
from latchwork.monitor import Monitor
from latchwork.operations import Operator
from latchwork.store.database import Database
from latchwork.store.graph_queries import ancestor_output
from latchwork.views import JobFilter, LogFilter
from tests.store.scene import Scene

S = JobState
BIG_TABLES = ("jobs", "transitions", "outputs", "edges", "job_tags", "audit", "deliveries")
TEXT_COLUMNS = ("payload", "failure_detail", "outputs.output")

Sent = tuple[str, Any]
Read = Callable[["Planted"], object]


@dataclass
class Planted:
    scene: Scene
    monitor: Monitor
    job: UUID


@pytest.fixture
def planted(database: Database) -> Planted:
    """Jobs in every state, with tags, edges, outputs, a node and audit rows."""
    scene = Scene(database)
    scene.start_node()
    root = scene.enqueue(tags=("red", ("customer", "7")))
    child = scene.enqueue("send-receipt", parents=(root,))
    scene.enqueue("ship", parents=(child,))
    scene.enqueue_many(30)
    for end in (S.SUCCEEDED, S.DEAD_LETTERED, S.QUARANTINED, S.CANCELLED, S.SCHEDULED):
        scene.run(end, output='"x"')
    scene.cancel(scene.claim(2)[0].id)
    return Planted(scene, scene.monitor, child)


def listing(one: JobFilter) -> Read:
    return lambda p: p.monitor.jobs(one, before=30, limit=5)


def log_listing(one: LogFilter) -> Read:
    return lambda p: p.monitor.transitions(one, limit=5)


READS: dict[str, Read] = {
    "job": lambda p: p.monitor.job(p.job),
    "detail": lambda p: p.monitor.detail(p.job),
    "output": lambda p: p.monitor.output(p.job),
    "history": lambda p: p.monitor.history(p.job),
    "explain": lambda p: [p.monitor.explain(job.id) for job in p.monitor.jobs().jobs],
    "graph": lambda p: p.monitor.graph(p.job),
    "counts": lambda p: p.monitor.counts(),
    "rates": lambda p: p.monitor.rates("hour", since=p.scene.now - timedelta(days=1)),
    "durations": lambda p: p.monitor.durations("charge-card"),
    "queues": lambda p: p.monitor.queues(),
    "nodes": lambda p: p.monitor.nodes(),
    "attention": lambda p: p.monitor.attention(),
    "observers": lambda p: p.monitor.observers(),
    "observer": lambda p: p.monitor.observer("bell"),
    "dead deliveries": lambda p: p.monitor.dead_deliveries("bell"),
    "facets": lambda p: p.monitor.facets(),
    "audit": lambda p: p.monitor.audit(),
    "audit page": lambda p: [
        p.monitor.audit_page(AuditFilter(), limit=5),
        p.monitor.audit_page(AuditFilter(actor="ann", action="cancel"), before=9, limit=5),
        p.monitor.audit_page(AuditFilter(subject_kind="job", subject=str(p.job)), limit=5),
    ],
    "audit names": lambda p: p.monitor.audit_names(),
    "tags": lambda p: [p.monitor.tags(), p.monitor.tags("cust")],
    "queue previews": lambda p: [
        Operator(p.scene.database).preview_pause_queue("default"),
        Operator(p.scene.database).preview_set_limit("default", 3),
    ],
    "audit of job": lambda p: p.monitor.audit_of_job(p.job),
    "log token": lambda p: p.monitor.log_token(),
    "log at time": lambda p: p.monitor.transitions_at(p.scene.now),
    "log tail": lambda p: LogTail(p.scene, after="3").read(),
    "ancestor": lambda p: p.scene.database.read(ancestor_output, 3, name="charge-card"),
    "ancestor by id": lambda p: p.scene.database.read(ancestor_output, 3, parent_id=p.job),
    "all jobs": lambda p: p.monitor.jobs(limit=5),
    "jobs before": lambda p: p.monitor.jobs(before=20, limit=5),
    "jobs after": lambda p: p.monitor.jobs(after=2, limit=5),
    "log": lambda p: p.monitor.transitions(limit=5),
    "log before": lambda p: p.monitor.transitions(before_position=20, limit=5),
    "log after": lambda p: p.monitor.transitions(after_position=2, limit=5),
}
for states in ((), (S.SUCCEEDED,), (S.DEAD_LETTERED, S.QUARANTINED)):
    for queue in (None, "default"):
        for wire_name in (None, "charge-card"):
            for tag in (None, "red"):
                one = JobFilter(states=states, queue=queue, wire_name=wire_name, tag=tag)
                READS[f"jobs {one}"] = listing(one)
for log_filter in (
    LogFilter(states=(S.LEASED,)), LogFilter(queue="default", wire_name="ship"),
    LogFilter(failing=True), LogFilter(failing=True, queue="default"),
):  # fmt: skip
    READS[f"log {log_filter}"] = log_listing(log_filter)
READS["log of job"] = lambda p: p.monitor.transitions(LogFilter(job_id=p.job))
READS["jobs by cause"] = lambda p: p.monitor.jobs(JobFilter(cause_code="attempts_exhausted"))


def sent_by(database: Database, read: Callable[[], object]) -> list[Sent]:
    """The statements that a read sends, with their values."""
    sent: list[Sent] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            sent.append((statement, values))

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        read()
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
    return sent


def faults(connection: Connection, statement: str, values: Any) -> list[str]:
    """The steps of a plan whose work grows with a big table."""
    names = "|".join(f"latchwork_{name}" for name in BIG_TABLES)
    if connection.dialect.name != "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN {statement}", values)
        return [line for (line,) in rows if re.search(rf"Seq Scan on ({names})", line)]
    steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    aliases = re.findall(rf"(?:{names}) AS (\w+)", statement)
    tables = "|".join([names, *aliases])
    # Walking an index in order under a LIMIT is how pages are read; sorting first is not.
    limited = " LIMIT " in statement or "min(" in statement or "max(" in statement
    sorts = {parent for _, parent, _, step in steps if "TEMP B-TREE FOR ORDER BY" in step}
    return [
        step
        for _, parent, _, step in steps
        if re.match(rf"SCAN ({tables})\b", step) and (parent in sorts or not limited)
    ]


def test_no_read_scans_a_big_table(planted: Planted) -> None:
    database = planted.scene.database
    found = []
    for name, read in READS.items():
        sent = sent_by(database, partial(read, planted))
        assert sent, name
        with database.engine.connect() as connection:
            for statement, values in sent:
                found += [(name, line, statement) for line in faults(connection, statement, values)]
    assert not found, "\n".join(map(str, found))


def test_no_read_counts_jobs_without_a_bound(planted: Planted) -> None:
    for read in READS.values():
        for statement, _ in sent_by(planted.scene.database, partial(read, planted)):
            for counted in re.findall(r"count\(.*?\)[^,]*?FROM \(?(\S+)", statement, re.DOTALL):
                assert counted == "SELECT", "only a limited subquery is counted"


def test_lists_read_no_payload_no_output_and_no_failure_detail(planted: Planted) -> None:
    lists = ("all jobs", "jobs", "log", "nodes", "queues")
    for name, read in READS.items():
        if name.startswith(lists) and name != "log tail":
            for statement, _ in sent_by(planted.scene.database, partial(read, planted)):
                assert not any(column in statement for column in TEXT_COLUMNS), statement


def test_more_jobs_take_no_more_statements(planted: Planted) -> None:
    database = planted.scene.database

    def numbers() -> dict[str, int]:
        return {
            name: len(sent_by(database, partial(read, planted))) for name, read in READS.items()
        }

    few = numbers()
    planted.scene.enqueue_many(300)
    for claimed in planted.scene.claim(20):
        planted.scene.end(claimed, S.SUCCEEDED)
    planted.scene.claim(50)
    many = numbers()
    # Every job of a page is explained; a moment in the log is found by halving it.
    grown = {name for name, number in many.items() if number > few[name]}
    assert grown <= {"explain", "log at time"}
    assert many["log at time"] <= few["log at time"] + 6
    assert max(number for name, number in many.items() if name != "explain") <= 30


def test_a_scan_would_be_seen(planted: Planted) -> None:
    statement = "SELECT id FROM latchwork_jobs WHERE cause_text = 'x'"
    with planted.scene.database.engine.connect() as connection:
        assert faults(connection, statement, ())

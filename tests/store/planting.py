"""Rows written straight into the tables, for tests of what the tables and the audit refuse."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Connection, insert, text

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import EDGES, Event
from latchwork.store import schema

S = JobState
START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)
"""Recent: a node that works on planted jobs must not find them old enough to purge."""


def plant_job(connection: Connection, sequence: int, *states: JobState, **columns: Any) -> UUID:
    """Insert a job that went through ``states``, with its log and counters."""
    job_id = uuid4()
    claims = states.count(S.LEASED)
    end = START + timedelta(seconds=len(states) - 1)
    row = {
        "sequence": sequence,
        "id": job_id,
        "wire_name": "pack",
        "queue": "default",
        "payload": "{}",
        "retry_policy": "{}",
        "state": states[-1],
        "state_since": end,
        "next_ordinal": len(states),
        "enqueued_at": START,
        "due_at": START,
        "attempt": claims,
        "claim_number": claims,
        "owner": "node" if states[-1] is S.LEASED else None,
        "lease_expires_at": end if states[-1] is S.LEASED else None,
        "terminal_at": end if states[-1].terminal else None,
        "cause_code": "operator" if states[-1] is S.CANCELLED else None,
    }
    connection.execute(insert(schema.jobs), row | columns)
    for ordinal, state in enumerate(states):
        entry = {
            "job_sequence": sequence,
            "job_id": job_id,
            "ordinal": ordinal,
            "at": START + timedelta(seconds=ordinal),
            "state": state,
            "previous_state": states[ordinal - 1] if ordinal else None,
            "event": event_between(states[ordinal - 1] if ordinal else None, state),
            "attempt": states[: ordinal + 1].count(S.LEASED),
            "queue": "default",
            "wire_name": "pack",
            "worker": "node" if state is S.LEASED else None,
        }
        connection.execute(insert(schema.transitions), entry)
    counted = {"queue": "default", "state": states[-1], "count": 1}
    connection.execute(
        text(
            "INSERT INTO latchwork_counter_totals VALUES (:queue, :state, :count) "
            "ON CONFLICT (queue, state) DO UPDATE SET count = latchwork_counter_totals.count + 1"
        ),
        counted,
    )
    return job_id


def event_between(source: JobState | None, target: JobState) -> Event:
    """What moves a job from one state to another, mostly."""
    return next(edge.events[0] for edge in EDGES if (edge.source, edge.target) == (source, target))


def plant_edge(connection: Connection, parent: int, child: int, *, is_open: bool) -> None:
    row = {"parent_sequence": parent, "child_sequence": child, "is_open": is_open}
    connection.execute(insert(schema.edges), row)

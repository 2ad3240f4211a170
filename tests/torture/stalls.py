"""Handlers that block their node's event loop, or the whole interpreter, for three leases."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Row, select

from latchwork import JobState
from latchwork.decisions.transitions import Event
from latchwork.store import schema
from tests.torture.node import NODE
from tests.torture.runs import Batch, Scene, run_batch

STALL_SECONDS = 3 * NODE["lease_seconds"]


def stall_batch(database_url: str, count: int, seed: int, *, hold_interpreter: bool) -> Batch:
    """``count`` handlers that block the event loop, or also hold the interpreter's lock.

    Heartbeats have a thread of their own, so a blocked loop loses no lease. A blocked interpreter
    does: what the handler brings back then comes too late, and another attempt counts.
    """
    stalls: list[UUID] = []

    def faults(scene: Scene) -> int:
        stall = scene.load.app.job_types["stall"]
        call = stall.bind(seconds=STALL_SECONDS, hold_interpreter=hold_interpreter)
        for _ in range(count):
            stalls.append(scene.load.enqueue_surely(call, "a"))
            time.sleep(scene.chance.uniform(0.5, STALL_SECONDS / 2))
        return count

    def late_outcomes(scene: Scene) -> list[str]:
        """A stall longer than the lease may not succeed at once; a blocked loop loses nothing."""
        lines = scene.testimony.lines()
        began = {(line.job_id, line.pid): line.at for line in lines if line.what == "begin"}
        took = {
            line.job_id: (line.at - began[line.job_id, line.pid]).total_seconds()
            for line in lines
            if line.what == "end" and line.attempt == 1
        }
        findings = []
        scene.batch.hits = {"leases lost": 0}
        for job_id in stalls:
            rows = scene.database.read(log_rows, job_id)
            first_succeeded = rows[-1].state is JobState.SUCCEEDED and rows[-1].attempt == 1
            lapsed = any(row.event is Event.LEASE_EXPIRED for row in rows)
            too_long = took.get(job_id, 0.0) > NODE["lease_seconds"] * 1.5
            scene.batch.hits["leases lost"] += lapsed
            if hold_interpreter and too_long and first_succeeded:
                findings.append(f"{job_id} held the interpreter and its late outcome was accepted")
            if not hold_interpreter and lapsed:
                findings.append(f"{job_id} blocked the event loop and lost its lease")
        return findings

    return run_batch(database_url, faults, seed, oracle=late_outcomes)


def log_rows(connection: Connection, job_id: UUID) -> Sequence[Row[Any]]:
    """The job's log, oldest first."""
    log = schema.transitions
    return connection.execute(
        select(log).where(log.c.job_id == job_id).order_by(log.c.ordinal)
    ).all()

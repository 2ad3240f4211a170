"""Lease expiry: the crash-recovery pair of edges (contract sections 2 and 4).

The sweep reads what has lapsed, the caller decides with each job's stored policy, and the write
goes only where claim number and expiry are still as they were read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, select

from latchwork.decisions.retries import RetryPolicy
from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import LAPSED, LAPSED_AT_CEILING
from latchwork.store import ending
from latchwork.store.moves import Cause, LockedJob, Move
from latchwork.store.outcomes import pending_cancel
from latchwork.store.policies import decode_policy
from latchwork.store.schema import in_state, jobs

LEASE_LAPSED = "lease_lapsed"


class LapsedJob(NamedTuple):
    """A Leased job whose lease has run out, as the sweep read it."""

    sequence: int
    claim_number: int
    lease_expires_at: datetime
    owner: str
    attempt: int
    retry: RetryPolicy


@dataclass(frozen=True, slots=True)
class LapseVerdict:
    """What is to become of a lapsed job: due again at ``next_due_at``, or dead-lettered if None."""

    lapsed: LapsedJob
    next_due_at: datetime | None


def read_lapsed(connection: Connection, *, now: datetime, limit: int) -> list[LapsedJob]:
    """The jobs whose leases have lapsed at ``now``, longest first; takes no locks."""
    rows = connection.execute(
        select(
            jobs.c.sequence,
            jobs.c.claim_number,
            jobs.c.lease_expires_at,
            jobs.c.owner,
            jobs.c.attempt,
            jobs.c.retry_policy,
        )
        .where(in_state(JobState.LEASED), jobs.c.lease_expires_at <= now)
        .order_by(jobs.c.lease_expires_at, jobs.c.sequence)
        .limit(limit)
    )
    return [LapsedJob(*row[:-1], decode_policy(row[-1])) for row in rows]


def expire(
    connection: Connection,
    verdicts: Sequence[LapseVerdict],
    *,
    now: datetime,
    keep_text: bool = True,
) -> int:
    """Write the verdicts that still hold; returns how many jobs were moved.

    Without ``keep_text`` the cause of a dead letter is its code alone.
    """
    by_sequence = {verdict.lapsed.sequence: verdict for verdict in verdicts}
    if not by_sequence:
        return 0
    held = ending.lock_roots(connection, by_sequence)
    moves: list[Move] = []
    moved = 0
    for sequence, verdict in by_sequence.items():
        job = held.get(sequence)
        if job is not None and _still_lapsed(job, verdict.lapsed, now):
            moves += _lapse_moves(job, verdict, now, keep_text=keep_text)
            moved += 1
    ending.write(connection, moves, held, now, wait=True)
    return moved


def _still_lapsed(job: LockedJob, as_read: LapsedJob, now: datetime) -> bool:
    return (
        job.state is JobState.LEASED
        and job.claim_number == as_read.claim_number
        and job.lease_expires_at == as_read.lease_expires_at
        and as_read.lease_expires_at <= now
    )


def _lapse_moves(
    job: LockedJob, verdict: LapseVerdict, now: datetime, *, keep_text: bool
) -> list[Move]:
    if verdict.next_due_at is not None:
        retry = Move.of(job, LAPSED, now, due_at=verdict.next_due_at)
        return [retry, *pending_cancel(job, now)]
    expiry = verdict.lapsed.lease_expires_at.isoformat(timespec="milliseconds")
    text = f"the lease of {job.owner} lapsed at {expiry}"
    cause = Cause(LEASE_LAPSED, text=text if keep_text else None)
    return [Move.of(job, LAPSED_AT_CEILING, now, cause=cause)]

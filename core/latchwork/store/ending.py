"""Ending jobs: the one way in which roots end and everything below them follows at once."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Connection

from latchwork.decisions.states import JobState
from latchwork.store.dialects import notify_due
from latchwork.store.latches import lock_below, read_reach, settle_children
from latchwork.store.moves import LockedJob, Move, apply_moves, lock_jobs
from latchwork.store.queue_gates import hint_freed_slots


def lock_roots(connection: Connection, sequences: Collection[int]) -> dict[int, LockedJob]:
    """Wait for the rows of jobs that may end, and for all that may follow, in enqueue order."""
    reach = read_reach(connection, sequences, sequences)
    wanted = {*sequences, *(edge.child for edge in reach)}
    return {job.sequence: job for job in lock_jobs(connection, wanted)}


def write(
    connection: Connection,
    moves: Sequence[Move],
    held: dict[int, LockedJob],
    now: datetime,
    *,
    wait: bool,
) -> bool:
    """Write ``moves`` of held jobs and settle the children of those that end.

    Returns False, with nothing written, when a child is locked by somebody else and ``wait`` is
    off.
    """
    ends = [move for move in moves if move.edge.target.terminal]
    if ends:
        ended = [move.job.sequence for move in ends]
        failed = [m.job.sequence for m in ends if m.edge.target is not JobState.SUCCEEDED]
        reach = lock_below(connection, held, ended, failed, wait=wait)
        if reach is None:
            return False
        moves = [*moves, *settle_children(connection, ends, reach, held, now)]
    apply_moves(connection, moves)
    # Also of what is due later: an idle node then wakes at that time.
    notify_due(
        connection, (move.job.queue for move in moves if move.edge.target is JobState.SCHEDULED)
    )
    hint_freed_slots(
        connection, (move.job.queue for move in moves if move.edge.source is JobState.LEASED)
    )
    return True

"""The gates of a queue, pause and concurrency limit, as a claim must pass them (section 4).

A claim holds its queue's lock, shared while the queue has no limit and exclusive when it has one;
pause and limit take it exclusively. Once such an action has answered, no claim that breaks it
commits.
"""

from collections.abc import Iterable
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, bindparam, func, select

from latchwork.decisions.states import JobState
from latchwork.store.dialects import is_sqlite, lock_name, notify_due
from latchwork.store.races import LostRace
from latchwork.store.schema import in_state, jobs, queues


class Gate(NamedTuple):
    """What a claim must respect."""

    paused: bool = False
    limit: int | None = None


def free_slots(connection: Connection, queue: str, wanted: int) -> int:
    """How many jobs of ``queue`` may be claimed now, at most ``wanted``; holds the queue's lock."""
    limited = _limited_queues.setdefault(connection.engine, set())
    shared = queue not in limited
    lock_queue(connection, queue, shared=shared)
    gate = _read_gate(connection, queue)
    if (gate.limit is None) != shared and not is_sqlite(connection):
        # Begin again with the other lock. A shared one is never upgraded: two claims would wait
        # for each other.
        limited.symmetric_difference_update({queue})
        raise LostRace("queue changed")
    if gate.paused:
        return 0
    if gate.limit is None:
        return wanted
    return max(0, min(wanted, gate.limit - count_leased(connection, queue)))


_limited_queues: WeakKeyDictionary[Engine, set[str]] = WeakKeyDictionary()
"""Which queues had a limit when this process last looked: which lock to begin with."""


def lock_queue(connection: Connection, queue: str, *, shared: bool = False) -> None:
    """Hold the lock of ``queue`` until the transaction ends."""
    lock_name(connection, f"queue {queue}", shared=shared)


def hint_freed_slots(connection: Connection, left: Iterable[str]) -> None:
    """Hint that jobs of these queues gave their slots back, where a limit makes others wait.

    Only of queues that this process has claimed from under a limit: a hint carries no correctness.
    """
    limited = _limited_queues.get(connection.engine)
    if limited:
        notify_due(connection, limited.intersection(left))


def count_leased(connection: Connection, queue: str) -> int:
    """How many jobs of ``queue`` hold a slot: also a lapsed lease does, until it is swept."""
    leased = in_state(JobState.LEASED) & (jobs.c.queue == queue)
    return connection.scalar(select(func.count()).select_from(jobs).where(leased)) or 0


def _read_gate(connection: Connection, queue: str) -> Gate:
    row = connection.execute(_GATE, {"queue": queue}).one_or_none()
    return Gate() if row is None else Gate(bool(row[0]), row[1])


_GATE = select(queues.c.paused_at.is_not(None), queues.c.concurrency_limit).where(
    queues.c.name == bindparam("queue")
)

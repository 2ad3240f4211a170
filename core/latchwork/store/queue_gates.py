"""The gates of a queue, pause and concurrency limit, as a claim must pass them (section 4).

A claim holds its queue's lock, shared while the queue has no limit and exclusive when it has one;
pause and limit take it exclusively. Once such an action has answered, no claim that breaks it
commits.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Integer,
    bindparam,
    case,
    func,
    literal,
    select,
)

from latchwork.decisions.states import JobState
from latchwork.store.dialects import greatest, is_sqlite, least, lock_name, notify_due
from latchwork.store.races import LostRace
from latchwork.store.schema import in_state, jobs, queues


def enter(connection: Connection, queue: str) -> bool:
    """Hold the queue's lock for a claim; True if the lock suits a queue without a limit."""
    shared = queue not in _limited_queues.get(connection.engine, ())
    lock_queue(connection, queue, shared=shared)
    return shared


def check_lock(connection: Connection, queue: str, limit: int | None, *, shared: bool) -> None:
    """Raise LostRace when the queue got or lost its limit since this process last looked.

    The claim then begins again with the other lock. A shared one is never upgraded: two claims
    would wait for each other.
    """
    if (limit is None) != shared and not is_sqlite(connection):
        _limited_queues.setdefault(connection.engine, set()).symmetric_difference_update({queue})
        raise LostRace("queue changed")


def limit_of_queue() -> Any:
    """The concurrency limit of the queue that the parameter ``queue`` names, as a subquery."""
    return _of_queue(queues.c.concurrency_limit)


def slots_left(dialect: str) -> Any:
    """How many jobs of ``queue`` may be claimed, at most ``wanted``: an expression of both."""
    wanted = bindparam("wanted", type_=Integer())
    left = greatest(dialect, limit_of_queue() - _taken(), literal(0))
    return case(
        (_is_paused(), 0),
        (limit_of_queue().is_(None), wanted),
        else_=least(dialect, wanted, left),
    )


def _is_paused() -> Any:
    return _of_queue(queues.c.paused_at).is_not(None)


def _taken() -> Any:
    """The slots in use: a lapsed lease holds its own until it is swept."""
    leased = in_state(JobState.LEASED) & (jobs.c.queue == bindparam("queue"))
    return select(func.count()).select_from(jobs).where(leased).scalar_subquery()


def _of_queue(fact: ColumnElement[Any]) -> Any:
    return select(fact).where(queues.c.name == bindparam("queue")).scalar_subquery()


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

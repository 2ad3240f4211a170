"""Where each observer is in the log: its registration, and how it moves on (section 7)."""

import json
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Uuid, insert, select, update

from latchwork.decisions.observers import is_active
from latchwork.decisions.states import HistoryPolicy
from latchwork.errors import HistoryOff
from latchwork.observer_views import ObserverScope
from latchwork.store import deliveries, log_writing
from latchwork.store.dialects import array, in_array, lock_name
from latchwork.store.history_facts import HISTORY_LOCK, read_history_policy
from latchwork.store.log_place import Place
from latchwork.store.moves import lock_jobs
from latchwork.store.observer_leases import holds_lease
from latchwork.store.schema import jobs
from latchwork.store.service_tables import observers
from latchwork.store.transition_log import end_of_log
from latchwork.views import TransitionView


def register(connection: Connection, scope: ObserverScope, *, now: datetime) -> None:
    """Register an observer, or say that it is still registered; any number of nodes may at once.

    A new one starts where its scope says. One that had not been registered for so long that the log
    no longer waits for it starts again at the log's end; what lies between is counted as skipped.
    A retired one stays retired.

    Raises:
        HistoryOff: nothing is logged, so there is nothing to observe.
    """
    lock_name(connection, HISTORY_LOCK)
    known = connection.execute(select(observers).where(observers.c.name == scope.name)).first()
    told: dict[str, Any] = {
        "states": json.dumps([state.value for state in scope.states]),
        "wire_name": scope.wire_name,
        "queue": scope.queue,
        "last_seen_at": now,
    }
    comes_back = (
        known is not None
        and known.retired_at is None
        and not is_active(known.retired_at, known.last_seen_at, now)
    )
    if known is None or comes_back:
        if read_history_policy(connection).policy is HistoryPolicy.OFF:
            raise HistoryOff(scope.name)
        from_beginning = known is None and scope.start == "beginning"
        place = Place(0) if from_beginning else end_of_log(connection)
        told |= {"token": str(place), "passed_position": passed_position(place)}
    if known is None:
        connection.execute(insert(observers), told | {"name": scope.name, "registered_at": now})
        return
    if comes_back:
        told["skipped"] = known.skipped + max(0, told["passed_position"] - known.passed_position)
    connection.execute(update(observers).where(observers.c.name == scope.name).values(told))


def advance(
    connection: Connection,
    name: str,
    owner: str,
    rows: Sequence[TransitionView],
    place: Place,
    *,
    now: datetime,
) -> bool:
    """Take ``rows`` from the log as deliveries and move the observer to ``place``.

    False, and nothing written, if the lease is lost.
    """
    if not holds_lease(connection, name, owner, now=now):
        return False
    deliveries.add(connection, name, rows, now=now)
    connection.execute(
        update(observers)
        .where(observers.c.name == name)
        .values(token=str(place), passed_position=passed_position(place))
    )
    return True


def passed_position(place: Place) -> int:
    """The position up to which a reader at ``place`` has passed every row."""
    return place.gaps[0][0] - 1 if place.gaps else place.position


def trim_logs(connection: Connection, job_ids: Collection[UUID], *, now: datetime) -> set[UUID]:
    """Drop what was kept beyond the cap for an observer that has passed it now.

    Returns the jobs that somebody else has locked: try them again later.
    """
    found = in_array(connection.dialect.name, jobs.c.id, "ids", Uuid())
    statement = select(jobs.c.sequence, jobs.c.id).where(found)
    rows = connection.execute(statement, {"ids": array(connection, job_ids, Uuid())})
    ids: dict[int, UUID] = {row.sequence: row.id for row in rows}
    held = lock_jobs(connection, ids, wait=False)
    last = {job.sequence: job.next_ordinal - 1 for job in held}
    if last:
        log_writing.drop_beyond_cap(connection, last, now=now)
    return {job_id for sequence, job_id in ids.items() if sequence not in last}

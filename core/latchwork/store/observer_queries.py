"""Reading observers: where each is, what waits for it, what was given up."""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from latchwork.decisions.observers import is_active
from latchwork.decisions.states import JobState
from latchwork.observer_views import DeadDelivery, ObserverState, ObserverView
from latchwork.store.deliveries import decode_copy
from latchwork.store.queue_queries import COUNT_BOUND, bounded
from latchwork.store.schema import transitions
from latchwork.store.service_tables import deliveries, observers
from latchwork.views import BoundedCount

MAX_OBSERVERS = 200
MAX_DEAD_DELIVERIES = 200


def pending() -> ColumnElement[bool]:
    """A delivery that is still to be made."""
    return deliveries.c.dead_at.is_(None)


def dead() -> ColumnElement[bool]:
    """A delivery that was given up."""
    return deliveries.c.dead_at.is_not(None)


def read_observers(
    connection: Connection, *, now: datetime, name: str | None = None
) -> tuple[ObserverView, ...]:
    """Every observer, or the one of this name, with bounded counts; by name."""
    of_observer = deliveries.c.observer == observers.c.name
    backing_off = pending() & (deliveries.c.next_try_at > now)
    unpassed = transitions.c.position > observers.c.passed_position
    next_row = select(transitions.c.at).where(unpassed).order_by(transitions.c.position).limit(1)
    oldest = (
        select(deliveries.c.taken_at)
        .where(of_observer, pending())
        .order_by(deliveries.c.id)
        .limit(1)
    )
    statement = select(
        observers,
        _count(transitions, unpassed).label("lag"),
        next_row.correlate(observers).scalar_subquery().label("oldest_unpassed_at"),
        _count(deliveries, of_observer & pending()).label("pending"),
        _count(deliveries, of_observer & backing_off).label("backing_off"),
        oldest.correlate(observers).scalar_subquery().label("oldest_pending_at"),
        _count(deliveries, of_observer & dead()).label("dead"),
    ).order_by(observers.c.name)
    if name is not None:
        statement = statement.where(observers.c.name == name)
    rows = connection.execute(statement.limit(MAX_OBSERVERS))
    return tuple(_view(row, now) for row in rows)


def read_dead_deliveries(
    connection: Connection, name: str, *, limit: int, before: int | None = None
) -> tuple[DeadDelivery, ...]:
    """The newest dead deliveries of an observer, before the one with id ``before``."""
    statement = (
        select(deliveries)
        .where(deliveries.c.observer == name, dead())
        .order_by(deliveries.c.id.desc())
        .limit(min(limit, MAX_DEAD_DELIVERIES))
    )
    if before is not None:
        statement = statement.where(deliveries.c.id < before)
    return tuple(
        DeadDelivery(
            id=row.id,
            observer=row.observer,
            transition=decode_copy(row.transition),
            starts=row.starts,
            failures=row.failures,
            error=row.error,
            dead_at=row.dead_at,
        )
        for row in connection.execute(statement)
    )


def count_deliveries(
    connection: Connection, name: str, condition: ColumnElement[bool]
) -> BoundedCount:
    """How many deliveries of an observer meet ``condition``, up to the bound."""
    chosen = select(deliveries.c.id).where(deliveries.c.observer == name, condition)
    return bounded(len(connection.scalars(chosen.limit(COUNT_BOUND + 1)).all()))


def active_names(connection: Connection, *, now: datetime) -> tuple[str, ...]:
    """The names of the active observers."""
    columns = select(observers.c.name, observers.c.retired_at, observers.c.last_seen_at)
    rows = connection.execute(columns.order_by(observers.c.name))
    return tuple(row.name for row in rows if is_active(row.retired_at, row.last_seen_at, now))


def _count(table: Any, condition: ColumnElement[bool]) -> Any:
    """A count per observer that stops one row after the bound."""
    first: Any = (
        select(literal_column("1").label("one"))
        .select_from(table)
        .where(condition)
        .limit(COUNT_BOUND + 1)
        .correlate(observers)
    )
    return select(func.count()).select_from(first.subquery()).scalar_subquery()


def _view(row: Any, now: datetime) -> ObserverView:
    if row.retired_at is not None:
        state = ObserverState.RETIRED
    elif is_active(row.retired_at, row.last_seen_at, now):
        state = ObserverState.ACTIVE
    else:
        state = ObserverState.UNREGISTERED
    served = row.lease_expires_at is not None and row.lease_expires_at > now
    return ObserverView(
        name=row.name,
        states=tuple(_states(json.loads(row.states))),
        wire_name=row.wire_name,
        queue=row.queue,
        state=state,
        registered_at=row.registered_at,
        last_seen_at=row.last_seen_at,
        retired_at=row.retired_at,
        retired_by=row.retired_by,
        owner=row.owner if served else None,
        token=row.token,
        passed_position=row.passed_position,
        lag=bounded(row.lag),
        oldest_unpassed_at=row.oldest_unpassed_at,
        pending=bounded(row.pending),
        backing_off=bounded(row.backing_off),
        oldest_pending_at=row.oldest_pending_at,
        dead=bounded(row.dead),
        delivered=row.delivered,
        last_delivered_at=row.last_delivered_at,
        skipped=row.skipped,
        last_error=row.last_error,
        last_error_at=row.last_error_at,
    )


def _states(values: Iterable[str]) -> Iterable[JobState]:
    wanted = set(values)
    return (state for state in JobState if state.value in wanted)

"""Whose an observer is just now: at most one dispatcher's, until its lease runs out.

Every write of a dispatcher is fenced by its lease: one that lost it writes nothing.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, null, or_, select, update

from latchwork.store.dialects import locking
from latchwork.store.service_tables import observers


def lease_is_free(connection: Connection, name: str, *, now: datetime) -> bool:
    """Whether nobody serves the observer, so that trying to take its lease is worth a write."""
    statement = select(observers.c.name).where(observers.c.name == name, _free(now))
    return connection.execute(statement).first() is not None


def take_lease(
    connection: Connection, name: str, owner: str, *, lease_seconds: float, now: datetime
) -> str | None:
    """Make an observer that nobody serves ``owner``'s; the token to go on from, or None."""
    taken = (
        update(observers)
        .where(observers.c.name == name, _free(now))
        .values(
            owner=owner, lease_expires_at=now + timedelta(seconds=lease_seconds), last_seen_at=now
        )
        .returning(observers.c.token)
    )
    token: str | None = connection.scalar(taken)
    return token


def renew_lease(
    connection: Connection, name: str, owner: str, *, lease_seconds: float, now: datetime
) -> bool:
    """Prolong a lease that still runs; False if it is lost."""
    renewed = (
        update(observers)
        .where(observers.c.name == name, _held(owner, now))
        .values(lease_expires_at=now + timedelta(seconds=lease_seconds), last_seen_at=now)
        .returning(observers.c.name)
    )
    return connection.scalar(renewed) is not None


def release_lease(connection: Connection, name: str, owner: str) -> None:
    """Give a lease back, so that another dispatcher may go on at once."""
    connection.execute(
        update(observers)
        .where(observers.c.name == name, observers.c.owner == owner)
        .values(owner=null(), lease_expires_at=null())
    )


def holds_lease(connection: Connection, name: str, owner: str, *, now: datetime) -> bool:
    """Whether ``owner`` still serves the observer; if so, nobody takes it before the commit."""
    statement = select(observers.c.name).where(observers.c.name == name, _held(owner, now))
    locked = locking(connection, statement, observers, wait=True)
    return connection.execute(locked).first() is not None


def _free(now: datetime) -> Any:
    lapsed = or_(observers.c.owner.is_(None), observers.c.lease_expires_at <= now)
    return observers.c.retired_at.is_(None) & lapsed


def _held(owner: str, now: datetime) -> Any:
    mine = (observers.c.owner == owner) & (observers.c.lease_expires_at > now)
    return mine & observers.c.retired_at.is_(None)

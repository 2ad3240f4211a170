"""How far the active observers have come: what the log must keep until they have passed it."""

from typing import Any

from sqlalchemy import ColumnElement, and_, func, select

from latchwork.store.service_tables import observers

BEYOND_ALL = 2**63 - 1


def active_since(seen_after: Any) -> ColumnElement[bool]:
    """Whether an observer is active: not retired, and registered after ``seen_after``."""
    return and_(observers.c.retired_at.is_(None), observers.c.last_seen_at > seen_after)


def passed_by_all(seen_after: Any) -> Any:
    """The last position that every active observer has passed, as a subquery.

    Rows beyond it may not be dropped. Where no observer is active that is no bound at all.
    ``seen_after`` is ``ACTIVE_FOR`` before now: a time, or a column of them.
    """
    least = select(func.min(observers.c.passed_position)).where(active_since(seen_after))
    return func.coalesce(least.scalar_subquery(), BEYOND_ALL)

"""What will happen in a database by the passing of time alone, for tests over virtual time."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, exists, func, select

from latchwork.decisions.states import JobState
from latchwork.store.schema import in_state, jobs
from latchwork.store.service_tables import bulk_operations, deliveries, schedules


class Agenda(NamedTuple):
    """When the first of each kind comes: due job, lapsing lease, tick, delivery to be tried again.

    ``operations`` tells whether a requeue or cancel of many jobs is under way.
    """

    due_at: datetime | None
    lapse_at: datetime | None
    tick_at: datetime | None
    delivery_at: datetime | None
    operations: bool

    def first_after(self, now: datetime) -> datetime | None:
        """The first of these moments that is still to come."""
        moments = (self.due_at, self.lapse_at, self.tick_at, self.delivery_at)
        return min((at for at in moments if at is not None and at > now), default=None)


_MOMENTS = (
    select(func.min(jobs.c.due_at)).where(in_state(JobState.SCHEDULED)),
    select(func.min(jobs.c.lease_expires_at)).where(in_state(JobState.LEASED)),
    select(func.min(schedules.c.next_tick_at)),
    select(func.min(deliveries.c.next_try_at)).where(deliveries.c.dead_at.is_(None)),
)
_STATEMENT = select(
    *(one.scalar_subquery() for one in _MOMENTS),
    exists().where(bulk_operations.c.finished_at.is_(None)).select_from(bulk_operations),
)


def read_agenda(connection: Connection) -> Agenda:
    """What is to come."""
    row: Any = connection.execute(_STATEMENT).one()
    return Agenda(*row)

"""Reading schedules and their ticks."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Select, select

from latchwork.errors import InvalidSchedule
from latchwork.schedule_views import ScheduleView, Tick, TickOutcome
from latchwork.store.queue_queries import bounded
from latchwork.store.schedules import schedule_of
from latchwork.store.schema import jobs
from latchwork.store.service_tables import schedule_ticks, schedules

MAX_SCHEDULES = 200
MAX_TICKS = 200
NEXT_TICKS = 5


def read_schedules(
    connection: Connection, *, now: datetime, schedule_id: str | None = None
) -> tuple[ScheduleView, ...]:
    """Every schedule, or the one of this id: the first 200 by id."""
    statement = select(schedules).order_by(schedules.c.id).limit(MAX_SCHEDULES)
    if schedule_id is not None:
        statement = statement.where(schedules.c.id == schedule_id)
    rows = connection.execute(statement).all()
    last = _last_ticks(connection, [row.id for row in rows])
    return tuple(_view(row, last.get(row.id), now) for row in rows)


def read_ticks(
    connection: Connection, schedule_id: str, *, limit: int, before: datetime | None = None
) -> tuple[Tick, ...]:
    """The newest decided ticks of a schedule, before a time if given; at most 200."""
    statement = (
        _ticks()
        .where(schedule_ticks.c.schedule_id == schedule_id)
        .order_by(schedule_ticks.c.tick_at.desc())
        .limit(min(limit, MAX_TICKS))
    )
    if before is not None:
        statement = statement.where(schedule_ticks.c.tick_at < before)
    return tuple(_tick(row) for row in connection.execute(statement))


def find_tick_of_job(connection: Connection, job_id: UUID) -> Tick | None:
    """The tick that minted a job; None for any other job, and once its row is forgotten."""
    row = connection.execute(_ticks().where(schedule_ticks.c.job_id == job_id)).first()
    return None if row is None else _tick(row)


def _last_ticks(connection: Connection, ids: Sequence[str]) -> dict[str, Tick]:
    """The newest row of each schedule: one look into the ticks' key for each."""
    newest = (
        select(schedule_ticks.c.tick_at)
        .where(schedule_ticks.c.schedule_id == schedules.c.id)
        .order_by(schedule_ticks.c.tick_at.desc())
        .limit(1)
        .correlate(schedules)
        .scalar_subquery()
    )
    statement = (
        _ticks()
        .join(schedules, schedules.c.id == schedule_ticks.c.schedule_id)
        .where(schedules.c.id.in_(ids), schedule_ticks.c.tick_at == newest)
    )
    return {row.schedule_id: _tick(row) for row in connection.execute(statement)}


def _ticks() -> Select[Any]:
    return select(schedule_ticks, jobs.c.state.label("job_state")).outerjoin(
        jobs, jobs.c.id == schedule_ticks.c.job_id
    )


def _tick(row: Any) -> Tick:
    return Tick(
        schedule_id=row.schedule_id,
        at=row.tick_at,
        decided_at=row.decided_at,
        outcome=TickOutcome(row.outcome),
        count=bounded(row.count),
        job_id=row.job_id,
        job_state=row.job_state,
    )


def _view(row: Any, last_tick: Tick | None, now: datetime) -> ScheduleView:
    schedule = schedule_of(row)
    try:
        words = schedule.recurrence.words()
        following = schedule.recurrence.following(max(row.cursor_at, now))
        next_ticks = tuple(islice(following, NEXT_TICKS))
    except InvalidSchedule as error:
        words, next_ticks = str(error), ()
    return ScheduleView(
        schedule=schedule,
        created_at=row.created_at,
        updated_at=row.updated_at,
        cursor_at=row.cursor_at,
        next_tick_at=row.next_tick_at,
        last_tick=last_tick,
        words=words,
        next_ticks=next_ticks,
    )

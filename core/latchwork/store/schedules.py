"""Schedules in the store: set, removed, and their ticks decided, each tick once.

The minter reads what is due, decides outside a transaction, and writes under a guard: the row is
as it was read. The job, the tick's row and the cursor are one transaction; the key of the ticks
keeps a clock that steps back, or a second node, from minting one twice.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, Integer, bindparam, delete, select, update

from latchwork.decisions.recurrence import CatchUp, DueTick, DueTicks
from latchwork.decisions.states import JobState
from latchwork.schedule_views import SetOutcome, TickOutcome
from latchwork.schedules import Schedule
from latchwork.store.column_types import UtcTime
from latchwork.store.dialects import insert_ignoring, locking
from latchwork.store.enqueueing import NewJob, insert_jobs
from latchwork.store.policies import decode_policy, encode_policy
from latchwork.store.schema import jobs
from latchwork.store.service_tables import schedule_ticks, schedules
from latchwork.store.tags import decode_tags, encode_tags

KEPT_TICKS = 1_000
"""Rows about ticks that each schedule keeps."""


class DueSchedule(NamedTuple):
    """A schedule with a tick whose time has come, as it was read."""

    schedule: Schedule
    cursor_at: datetime


def set_schedule(connection: Connection, schedule: Schedule, *, now: datetime) -> SetOutcome:
    """Store ``schedule``, or change the one of its id.

    The cursor is kept, so that ticks missed meanwhile are still caught up; other times take effect
    from now on.
    """
    values = _values(schedule)
    fresh = {"created_at": now, "updated_at": now, **_times(schedule, now)}
    created = connection.execute(
        insert_ignoring(connection.dialect.name, schedules)
        .values(**values, **fresh)
        .on_conflict_do_nothing(index_elements=[schedules.c.id])
        .returning(schedules.c.id)
    )
    if created.first() is not None:
        return SetOutcome.CREATED
    stored = _locked(connection, schedule.id, wait=True)
    if stored is None:  # removed in the same instant
        return set_schedule(connection, schedule, now=now)
    if all(getattr(stored, name) == value for name, value in values.items()):
        return SetOutcome.UNCHANGED
    changed: dict[str, Any] = {**values, "updated_at": now}
    if (stored.cron, stored.zone) != (schedule.cron, schedule.zone):
        changed |= _times(schedule, now)
    connection.execute(update(schedules).where(schedules.c.id == schedule.id).values(**changed))
    return SetOutcome.CHANGED


def remove_schedule(connection: Connection, schedule_id: str) -> bool:
    """Forget a schedule and its ticks; its jobs stay. Returns whether there was one."""
    gone = connection.execute(
        delete(schedules).where(schedules.c.id == schedule_id).returning(schedules.c.id)
    )
    return gone.first() is not None


_DUE = (
    select(schedules)
    .where(schedules.c.next_tick_at <= bindparam("now", type_=UtcTime()))
    .order_by(schedules.c.next_tick_at, schedules.c.id)
    .limit(bindparam("at_most", type_=Integer()))
)


def read_due(connection: Connection, *, now: datetime, limit: int) -> list[DueSchedule]:
    """Schedules with a tick whose time has come, longest due first."""
    rows = connection.execute(_DUE, {"now": now, "at_most": limit})
    return [DueSchedule(schedule_of(row), row.cursor_at) for row in rows]


def decide_ticks(
    connection: Connection,
    read: DueSchedule,
    due: DueTicks,
    *,
    now: datetime,
    new_id: Callable[[], UUID],
) -> list[UUID]:
    """Write what was decided about the due ticks of one schedule; returns the minted jobs.

    Nothing is done when another node has the schedule, or it is not as it was read.
    """
    stored = _locked(connection, read.schedule.id, wait=False)
    if stored is None or stored.cursor_at != read.cursor_at:
        return []
    if schedule_of(stored) != read.schedule:
        return []
    minted: list[UUID] = []
    last_job_id = stored.last_job_id
    for tick in due.ticks:
        job_id = new_id()
        outcome = _outcome(connection, read.schedule, tick, last_job_id)
        if not _note(connection, read.schedule.id, tick, outcome, job_id, now):
            continue
        if not outcome.skipped:
            mint(connection, read.schedule, job_id, due_at=tick.at, now=now)
            minted.append(job_id)
            last_job_id = job_id
    decided = [tick.at for tick in due.ticks]
    connection.execute(
        _PLACE,
        {
            "schedule_id": read.schedule.id,
            "cursor": max([read.cursor_at, *decided]),
            "next_tick": due.next_at,
            "last_job": last_job_id,
        },
    )
    if decided:
        forget_old_ticks(connection, read.schedule.id)
    return minted


_PLACE = (
    update(schedules)
    .where(schedules.c.id == bindparam("schedule_id"))
    .values(
        cursor_at=bindparam("cursor"),
        next_tick_at=bindparam("next_tick"),
        last_job_id=bindparam("last_job"),
    )
)


def mint(
    connection: Connection, schedule: Schedule, job_id: UUID, *, due_at: datetime, now: datetime
) -> None:
    """Enqueue one job of ``schedule``."""
    new = NewJob(
        id=job_id,
        wire_name=schedule.wire_name,
        queue=schedule.queue,
        payload=schedule.payload,
        retry=schedule.retry,
        due_at=due_at,
        tags=schedule.tags,
    )
    insert_jobs(connection, [new], now=now, ids_are_new=True)


_STATE = select(jobs.c.state).where(jobs.c.id == bindparam("job_id"))


def live_state(connection: Connection, job_id: UUID | None) -> JobState | None:
    """The state of a job that is still live; None if it has ended, is not stored, or is none."""
    if job_id is None:
        return None
    state: JobState | None = connection.scalar(_STATE, {"job_id": job_id})
    return None if state is None or state.terminal else state


_OLDEST_KEPT = (
    select(schedule_ticks.c.tick_at)
    .where(schedule_ticks.c.schedule_id == bindparam("schedule_id"))
    .order_by(schedule_ticks.c.tick_at.desc())
    .offset(KEPT_TICKS - 1)
    .limit(1)
)


def forget_old_ticks(connection: Connection, schedule_id: str) -> None:
    """Keep the newest rows about ticks of a schedule."""
    oldest_kept = connection.scalar(_OLDEST_KEPT, {"schedule_id": schedule_id})
    if oldest_kept is not None:
        of_schedule = schedule_ticks.c.schedule_id == schedule_id
        older = schedule_ticks.c.tick_at < oldest_kept
        connection.execute(delete(schedule_ticks).where(of_schedule, older))


def schedule_of(row: Any) -> Schedule:
    """A stored row as the schedule it is."""
    return Schedule(
        id=row.id,
        wire_name=row.wire_name,
        queue=row.queue,
        payload=row.payload,
        tags=decode_tags(row.tags),
        retry=decode_policy(row.retry_policy),
        cron=row.cron,
        zone=row.zone,
        catch_up=CatchUp(row.catch_up),
        may_overlap=row.may_overlap,
    )


def _values(schedule: Schedule) -> dict[str, Any]:
    return {
        "id": schedule.id,
        "wire_name": schedule.wire_name,
        "queue": schedule.queue,
        "payload": schedule.payload,
        "tags": encode_tags(schedule.tags),
        "retry_policy": encode_policy(schedule.retry),
        "cron": schedule.cron,
        "zone": schedule.zone,
        "catch_up": schedule.catch_up.value,
        "may_overlap": schedule.may_overlap,
    }


def _times(schedule: Schedule, now: datetime) -> dict[str, Any]:
    return {"cursor_at": now, "next_tick_at": schedule.recurrence.after(now)}


_BY_ID = select(schedules).where(schedules.c.id == bindparam("schedule_id"))


def _locked(connection: Connection, schedule_id: str, *, wait: bool) -> Any:
    statement = locking(connection, _BY_ID, schedules, wait=wait)
    return connection.execute(statement, {"schedule_id": schedule_id}).first()


def _outcome(
    connection: Connection, schedule: Schedule, tick: DueTick, last_job_id: UUID | None
) -> TickOutcome:
    if not tick.mints:
        return TickOutcome.MISSED
    if not schedule.may_overlap and live_state(connection, last_job_id) is not None:
        return TickOutcome.OVERLAPPED
    return TickOutcome.MINTED if tick.count == 1 else TickOutcome.COALESCED


@cache
def _note_statement(dialect: str) -> Any:
    return (
        insert_ignoring(dialect, schedule_ticks)
        .on_conflict_do_nothing()
        .returning(schedule_ticks.c.tick_at)
    )


def _note(
    connection: Connection,
    schedule_id: str,
    tick: DueTick,
    outcome: TickOutcome,
    job_id: UUID,
    now: datetime,
) -> bool:
    """Write the tick's row; returns False when it was decided before."""
    row = {
        "schedule_id": schedule_id,
        "tick_at": tick.at,
        "decided_at": now,
        "outcome": outcome.value,
        "count": tick.count,
        "job_id": None if outcome.skipped else job_id,
    }
    noted = connection.execute(_note_statement(connection.dialect.name), row)
    return noted.first() is not None

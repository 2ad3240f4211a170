"""An operator's trigger of a schedule, and its preview (contract section 8)."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection, insert, select, update

from latchwork.schedule_views import TickOutcome, TriggerOutcome, TriggerPreview, TriggerResult
from latchwork.store import audit
from latchwork.store.dialects import locking
from latchwork.store.schedules import forget_old_ticks, live_state, mint, schedule_of
from latchwork.store.service_tables import schedule_ticks, schedules

SUBJECT_KIND = "schedule"


def trigger(
    connection: Connection,
    schedule_id: str,
    job_id: UUID,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> TriggerResult:
    """Enqueue a job of the schedule now, as ``job_id``; its ticks stay as they are.

    REFUSED when the schedule may not overlap and its last job has not ended.
    """
    statement = select(schedules).where(schedules.c.id == schedule_id)
    stored = connection.execute(locking(connection, statement, schedules, wait=True)).first()
    if earlier := audit.detail_of_request(connection, request_id):
        return TriggerResult(TriggerOutcome.TRIGGERED, UUID(earlier["job_id"]))
    if stored is None:
        return TriggerResult(TriggerOutcome.NOT_FOUND)
    live = None if stored.may_overlap else live_state(connection, stored.last_job_id)
    if live is not None:
        return TriggerResult(TriggerOutcome.REFUSED, stored.last_job_id, live)
    mint(connection, schedule_of(stored), job_id, due_at=now, now=now)
    _note(connection, schedule_id, job_id, now)
    connection.execute(
        update(schedules).where(schedules.c.id == schedule_id).values(last_job_id=job_id)
    )
    forget_old_ticks(connection, schedule_id)
    audit.append(
        connection, at=now, actor=actor, action="trigger_schedule", subject_kind=SUBJECT_KIND,
        subject=schedule_id, detail={"job_id": str(job_id)}, request_id=request_id,
    )  # fmt: skip
    return TriggerResult(TriggerOutcome.TRIGGERED, job_id)


def preview_trigger(connection: Connection, schedule_id: str) -> TriggerPreview | None:
    """What ``trigger`` would do now; None for an unknown schedule."""
    statement = select(schedules).where(schedules.c.id == schedule_id)
    stored = connection.execute(statement).first()
    if stored is None:
        return None
    live = live_state(connection, stored.last_job_id)
    if live is not None and not stored.may_overlap:
        reason = (
            f"Its last job is {live.label} and its runs must not overlap: wait for it or cancel it."
        )
        return TriggerPreview(allowed=False, reason=reason, live_job_id=stored.last_job_id)
    reason = (
        f"One {stored.wire_name} job is enqueued to {stored.queue}, due now; the next tick stays."
    )
    if live is None:
        return TriggerPreview(allowed=True, reason=reason)
    reason += f" Its last job is {live.label}: the two may run at once."
    return TriggerPreview(allowed=True, reason=reason, live_job_id=stored.last_job_id)


def _note(connection: Connection, schedule_id: str, job_id: UUID, now: datetime) -> None:
    """Write the run down between the ticks, which are at whole seconds."""
    last = connection.scalar(
        select(schedule_ticks.c.tick_at)
        .where(
            schedule_ticks.c.schedule_id == schedule_id,
            schedule_ticks.c.outcome == TickOutcome.TRIGGERED.value,
            schedule_ticks.c.tick_at >= now,
        )
        .order_by(schedule_ticks.c.tick_at.desc())
        .limit(1)
    )
    at = max(now, last or now)
    if at == last or at.microsecond == 0:
        at += timedelta(microseconds=1)
    connection.execute(
        insert(schedule_ticks).values(
            schedule_id=schedule_id,
            tick_at=at,
            decided_at=now,
            outcome=TickOutcome.TRIGGERED.value,
            count=1,
            job_id=job_id,
        )
    )

"""What an operator does to observers: retire one, replay a dead delivery (contract section 8)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, delete, func, null, select, update

from latchwork.observer_views import (
    ReplayOutcome,
    ReplayResult,
    RetireOutcome,
    RetireResult,
    SettingPreview,
)
from latchwork.store import audit
from latchwork.store.deliveries import decode_copy
from latchwork.store.dialects import locking
from latchwork.store.observer_queries import count_deliveries, dead, pending
from latchwork.store.service_tables import deliveries, observers

SUBJECT_KIND = "observer"


def retire(
    connection: Connection, name: str, *, actor: str, now: datetime, request_id: UUID | None = None
) -> RetireResult:
    """Serve an observer no more: the log does not wait for it, its deliveries are given up."""
    found = _locked(connection, name)
    if found is None:
        return RetireResult(RetireOutcome.NOT_FOUND)
    if earlier := audit.detail_of_request(connection, request_id):
        return RetireResult(RetireOutcome.RETIRED, earlier["given_up"])
    if found.retired_at is not None:
        return RetireResult(RetireOutcome.REFUSED)
    unseen = select(func.count()).where(deliveries.c.observer == name, pending())
    skipped = connection.scalar(unseen) or 0
    gone = connection.execute(delete(deliveries).where(deliveries.c.observer == name))
    connection.execute(
        update(observers)
        .where(observers.c.name == name)
        .values(
            retired_at=now, retired_by=actor, owner=null(), lease_expires_at=null(),
            skipped=observers.c.skipped + skipped,
        )
    )  # fmt: skip
    given_up = int(gone.rowcount)
    audit.append(
        connection, at=now, actor=actor, action="retire_observer", subject_kind=SUBJECT_KIND,
        subject=name, detail={"given_up": given_up}, request_id=request_id,
    )  # fmt: skip
    return RetireResult(RetireOutcome.RETIRED, given_up)


def replay(
    connection: Connection,
    delivery_id: int,
    *,
    actor: str,
    now: datetime,
    request_id: UUID | None = None,
) -> ReplayResult:
    """Let a dead delivery be tried again, from its own copy of the row, with all its tries."""
    statement = select(deliveries).where(deliveries.c.id == delivery_id)
    found = connection.execute(locking(connection, statement, deliveries, wait=True)).first()
    if earlier := audit.detail_of_request(connection, request_id):
        return ReplayResult(ReplayOutcome.REPLAYED, earlier["observer"])
    if found is None:
        return ReplayResult(ReplayOutcome.NOT_FOUND)
    if found.dead_at is None:
        return ReplayResult(ReplayOutcome.REFUSED, found.observer)
    connection.execute(
        update(deliveries)
        .where(deliveries.c.id == delivery_id)
        .values(dead_at=null(), starts=0, failures=0, next_try_at=now)
    )
    detail = {
        "observer": found.observer,
        "delivery": delivery_id,
        "job": str(decode_copy(found.transition).job_id),
        "ordinal": found.ordinal,
    }
    audit.append(
        connection, at=now, actor=actor, action="replay_delivery", subject_kind=SUBJECT_KIND,
        subject=found.observer, detail=detail, request_id=request_id,
    )  # fmt: skip
    return ReplayResult(ReplayOutcome.REPLAYED, found.observer)


def preview_retire(connection: Connection, name: str) -> SettingPreview | None:
    """What retiring an observer would give up; None for an unknown one."""
    found = connection.execute(
        select(observers.c.retired_by).where(observers.c.name == name)
    ).first()
    if found is None:
        return None
    if found.retired_by is not None:
        return SettingPreview(allowed=False, reason=f"It was retired by {found.retired_by}.")
    waiting = count_deliveries(connection, name, pending())
    given_up = count_deliveries(connection, name, dead())
    return SettingPreview(
        allowed=True,
        reason=(
            "It is called no more, for good: its name cannot be registered again. "
            f"{waiting} pending and {given_up} dead deliveries are given up, and the log keeps "
            "nothing for it any longer."
        ),
    )


def preview_replay(connection: Connection, delivery_id: int) -> SettingPreview | None:
    """What replaying a delivery would do; None for an unknown one."""
    found = connection.execute(
        select(deliveries.c.observer, deliveries.c.dead_at).where(deliveries.c.id == delivery_id)
    ).first()
    if found is None:
        return None
    if found.dead_at is None:
        return SettingPreview(allowed=False, reason="It is not dead: it is still being tried.")
    return SettingPreview(
        allowed=True,
        reason=f"{found.observer} is called for this row again, with all its tries, "
        "though later rows of the job may have been delivered already.",
    )


def _locked(connection: Connection, name: str) -> Any:
    statement = select(observers).where(observers.c.name == name)
    return connection.execute(locking(connection, statement, observers, wait=True)).first()

"""What one reads of schedules and their ticks, and what the operator answers about them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from latchwork.decisions.states import JobState
from latchwork.schedules import Schedule
from latchwork.views import BoundedCount


class TickOutcome(StrEnum):
    """What became of a tick."""

    MINTED = "minted"
    COALESCED = "coalesced"
    """One job for all ticks of an outage."""
    MISSED = "missed"
    """Left out: no node was there in time."""
    OVERLAPPED = "overlapped"
    """Left out: the job of an earlier tick had not ended."""
    TRIGGERED = "triggered"
    """No tick: an operator asked for a run."""

    @property
    def label(self) -> str:
        """The outcome in words."""
        return _LABELS[self]

    @property
    def skipped(self) -> bool:
        """Whether no job was minted."""
        return self in (TickOutcome.MISSED, TickOutcome.OVERLAPPED)


_LABELS = {
    TickOutcome.MINTED: "enqueued",
    TickOutcome.COALESCED: "caught up",
    TickOutcome.MISSED: "skipped: no node was there in time",
    TickOutcome.OVERLAPPED: "skipped: the last run had not ended",
    TickOutcome.TRIGGERED: "triggered by an operator",
}


@dataclass(frozen=True, slots=True)
class Tick:
    """One decided tick. ``count`` is how many ticks it stands for: those of one outage share one.

    ``job_state`` is None when no job was minted, and when it is no longer stored.
    """

    schedule_id: str
    at: datetime
    decided_at: datetime
    outcome: TickOutcome
    count: BoundedCount
    job_id: UUID | None
    job_state: JobState | None


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """One schedule, its last tick and its next ones.

    ``next_ticks`` is empty, and ``words`` says why, where this host does not know the zone.
    """

    schedule: Schedule
    created_at: datetime
    updated_at: datetime
    cursor_at: datetime
    next_tick_at: datetime | None
    last_tick: Tick | None
    words: str
    next_ticks: tuple[datetime, ...]

    @property
    def id(self) -> str:
        """The schedule's id."""
        return self.schedule.id


class SetOutcome(StrEnum):
    """What setting a schedule did."""

    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"


class TriggerOutcome(StrEnum):
    """What became of triggering a schedule."""

    TRIGGERED = "triggered"
    REFUSED = "refused"
    """It may not overlap, and its last job has not ended."""
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class TriggerResult:
    """The answer to a trigger: the new job, or the live one it would overlap."""

    outcome: TriggerOutcome
    job_id: UUID | None = None
    state: JobState | None = None


@dataclass(frozen=True, slots=True)
class TriggerPreview:
    """What triggering a schedule would do now."""

    allowed: bool
    reason: str
    live_job_id: UUID | None = None

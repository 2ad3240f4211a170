"""What the pages of schedules show, read once for the page, its live regions and its JSON."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from latchwork.schedule_views import ScheduleView, Tick, TriggerPreview
from latchwork.schedules import Schedule
from latchwork_console.console import Console, Permission
from latchwork_console.job_contexts import StoredText, stored_text

SHOWN_TICKS = 50


@dataclass(frozen=True, slots=True)
class SchedulesRegions:
    """All schedules."""

    schedules: tuple[ScheduleView, ...]


@dataclass(frozen=True, slots=True)
class ScheduleRegions:
    """One schedule: its next and last ticks, and what triggering it would do."""

    view: ScheduleView
    next_ticks: tuple[tuple[datetime, str], ...]
    """Each with its local time in words."""
    ticks: tuple[Tick, ...]
    preview: TriggerPreview
    permitted: bool
    payload: StoredText | None


def read_schedules(console: Console) -> SchedulesRegions:
    """What the page of all schedules shows."""
    return SchedulesRegions(console.app.monitor.schedules())


def read_schedule(
    console: Console, schedule_id: str, permissions: Collection[Permission]
) -> ScheduleRegions | None:
    """What the page of a schedule shows to somebody with ``permissions``; None if unknown."""
    monitor = console.app.monitor
    view = monitor.schedule(schedule_id)
    preview = console.app.operator.preview_trigger_schedule(schedule_id)
    if view is None or preview is None:
        return None
    sensitive = Permission.VIEW_SENSITIVE in permissions
    return ScheduleRegions(
        view=view,
        next_ticks=tuple((at, local_words(at, view.schedule)) for at in view.next_ticks),
        ticks=monitor.schedule_ticks(schedule_id, limit=SHOWN_TICKS),
        preview=preview,
        permitted=Permission.TRIGGER_SCHEDULE in permissions,
        payload=stored_text(view.schedule.payload) if sensitive else None,
    )


def local_words(at: datetime, schedule: Schedule) -> str:
    """A tick on the clocks of the schedule's zone, which this host knows."""
    return f"{at.astimezone(schedule.recurrence.zone):%a %Y-%m-%d %H:%M:%S %Z}"

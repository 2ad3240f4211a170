"""Schedules as JSON, the same on the shell and the console."""

from typing import Any

from latchwork.json_shapes import time_shape
from latchwork.schedule_views import ScheduleView, Tick, TriggerPreview, TriggerResult

Shape = dict[str, Any]


def schedule_shape(view: ScheduleView, *, sensitive: bool = True) -> Shape:
    """One schedule; without ``sensitive`` its payload is left out."""
    schedule = view.schedule
    shape: Shape = {
        "id": schedule.id,
        "wire_name": schedule.wire_name,
        "queue": schedule.queue,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "words": view.words,
        "catch_up": schedule.catch_up.value,
        "may_overlap": schedule.may_overlap,
        "tags": [tag if isinstance(tag, str) else list(tag) for tag in schedule.tags],
        "created_at": time_shape(view.created_at),
        "updated_at": time_shape(view.updated_at),
        "cursor_at": time_shape(view.cursor_at),
        "next_tick_at": time_shape(view.next_tick_at),
        "next_ticks": [time_shape(at) for at in view.next_ticks],
        "last_tick": None if view.last_tick is None else tick_shape(view.last_tick),
    }
    return shape | {"payload": schedule.payload} if sensitive else shape


def tick_shape(tick: Tick) -> Shape:
    """One decided tick."""
    return {
        "at": time_shape(tick.at),
        "decided_at": time_shape(tick.decided_at),
        "outcome": tick.outcome.value,
        "count": tick.count.value,
        "count_is_capped": tick.count.capped,
        "job_id": None if tick.job_id is None else str(tick.job_id),
        "job_state": None if tick.job_state is None else tick.job_state.value,
    }


def trigger_shape(schedule_id: str, result: TriggerResult) -> Shape:
    """What became of a trigger."""
    return {
        "id": schedule_id,
        "outcome": result.outcome.value,
        "job_id": None if result.job_id is None else str(result.job_id),
        "state": None if result.state is None else result.state.value,
    }


def trigger_preview_shape(preview: TriggerPreview) -> Shape:
    """What a trigger would do."""
    return {
        "allowed": preview.allowed,
        "reason": preview.reason,
        "live_job_id": None if preview.live_job_id is None else str(preview.live_job_id),
    }

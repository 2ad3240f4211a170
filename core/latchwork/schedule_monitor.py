"""What one may read of schedules; a part of the monitor."""

from datetime import datetime
from uuid import UUID

from latchwork.errors import InvalidValue
from latchwork.reader import Reader, at_least_one
from latchwork.schedule_views import ScheduleView, Tick
from latchwork.store import schedule_queries
from latchwork.values import checked_id, checked_name


class ScheduleMonitor(Reader):
    """Reads schedules (contract section 8)."""

    def schedules(self) -> tuple[ScheduleView, ...]:
        """The schedules by id, at most 200: their last tick and their next five."""
        return self._read(schedule_queries.read_schedules, now=self._now())

    def schedule(self, schedule_id: str) -> ScheduleView | None:
        """The schedule of this id, or None."""
        checked_name("schedule_id", schedule_id)
        found = self._read(
            schedule_queries.read_schedules, now=self._now(), schedule_id=schedule_id
        )
        return found[0] if found else None

    def schedule_ticks(
        self, schedule_id: str, *, limit: int = 50, before: datetime | None = None
    ) -> tuple[Tick, ...]:
        """The newest decided ticks, skipped ones too, before a time if given; at most 200."""
        checked_name("schedule_id", schedule_id)
        if before is not None and before.tzinfo is None:
            raise InvalidValue("before", "must carry a time zone")
        return self._read(
            schedule_queries.read_ticks, schedule_id, limit=at_least_one(limit), before=before
        )

    def tick_of_job(self, job_id: UUID) -> Tick | None:
        """The schedule's tick, or the trigger, that enqueued a job; None for any other job."""
        return self._read(schedule_queries.find_tick_of_job, checked_id("job_id", job_id))

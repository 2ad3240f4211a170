"""The minter: turns the ticks of schedules into jobs. Any number of nodes may run one."""

import logging
from datetime import datetime

from uuid_utils.compat import uuid7

from latchwork.decisions.recurrence import due_ticks
from latchwork.errors import InvalidSchedule
from latchwork.store import schedules
from latchwork.store.database import Database
from latchwork.store.schedules import DueSchedule

logger = logging.getLogger(__name__)

BATCH = 100


class ScheduleMinter:
    """Decides the ticks whose time has come, one schedule in one transaction."""

    name = "schedule-minter"

    def __init__(self, database: Database, pause_seconds: float = 1.0) -> None:
        self._database = database
        self._unreadable: set[tuple[str, str]] = set()
        self.pause_seconds = pause_seconds

    def run_once(self) -> bool:
        """Decide what is due; returns whether there may be more."""
        now = self._database.now()
        due = self._database.read(schedules.read_due, now=now, limit=BATCH)
        decided = [self._decide(one, now) for one in due]
        return len(due) == BATCH and any(decided)

    def _decide(self, due: DueSchedule, now: datetime) -> bool:
        schedule = due.schedule
        try:
            recurrence = schedule.recurrence
        except InvalidSchedule as error:
            self._complain(schedule.id, error)
            return False
        ticks = due_ticks(recurrence, after=due.cursor_at, now=now, catch_up=schedule.catch_up)
        self._database.write(schedules.decide_ticks, due, ticks, now=now, new_id=uuid7)
        return True

    def _complain(self, schedule_id: str, error: InvalidSchedule) -> None:
        """Say once what this host cannot read: another one may know the zone."""
        if (schedule_id, str(error)) not in self._unreadable:
            self._unreadable.add((schedule_id, str(error)))
            logger.error("Schedule %s is left to other nodes: %s", schedule_id, error)

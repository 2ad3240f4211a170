"""Setting and removing schedules; a part of the client."""

from collections.abc import Iterable

from latchwork.decisions.recurrence import CatchUp
from latchwork.errors import InvalidSchedule, InvalidValue
from latchwork.jobs import JobCall
from latchwork.schedule_views import SetOutcome
from latchwork.schedules import Schedule, checked_catch_up, checked_ticks, read_recurrence
from latchwork.store import schedules
from latchwork.store.database import Database
from latchwork.store.lost_answers import repeat_until_answered
from latchwork.values import checked_name, checked_tags
from latchwork.views import Tag


class ScheduleClient:
    """Keeps the schedules of one database (contract section 8)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set_schedule(
        self,
        schedule_id: str,
        call: JobCall,
        *,
        cron: str,
        zone: str = "UTC",
        catch_up: CatchUp = CatchUp.SKIP,
        may_overlap: bool = False,
        queue: str | None = None,
        tags: Iterable[Tag] = (),
    ) -> SetOutcome:
        """Enqueue ``call`` at every tick from now on; changes the schedule of this id if there is.

        The arguments are those of ``make_schedule``. Setting the same again changes nothing; a
        changed ``cron`` or ``zone`` takes effect from now on, whatever else changes keeps the
        place: no tick runs twice, and ticks missed meanwhile are caught up. Raises InvalidSchedule
        for an expression that cannot be read or never matches and for an unknown zone, InvalidValue
        for another malformed argument.
        """
        schedule = make_schedule(
            schedule_id, call, cron=cron, zone=zone, catch_up=catch_up, may_overlap=may_overlap,
            queue=queue, tags=tags,
        )  # fmt: skip
        return self.store_schedule(schedule)

    def store_schedule(self, schedule: Schedule) -> SetOutcome:
        """``set_schedule`` for one that was made before."""
        now = self._database.now()
        checked_ticks(schedule.cron, schedule.zone, now)
        outcome = repeat_until_answered(
            lambda: self._database.write(schedules.set_schedule, schedule, now=now), ids=[]
        )
        assert outcome is not None  # noqa: S101 - only an enqueue can meet its own row
        return outcome

    def remove_schedule(self, schedule_id: str) -> bool:
        """Mint no more jobs of this schedule; returns whether there was one. Its jobs stay."""
        checked_name("schedule_id", schedule_id)
        return self._database.write(schedules.remove_schedule, schedule_id)


def make_schedule(
    schedule_id: str,
    call: JobCall,
    *,
    cron: str,
    zone: str = "UTC",
    catch_up: CatchUp = CatchUp.SKIP,
    may_overlap: bool = False,
    queue: str | None = None,
    tags: Iterable[Tag] = (),
) -> Schedule:
    """A schedule, checked.

    Args:
        schedule_id: 1 to 128 characters, its name for ever.
        call: what each tick enqueues.
        cron: five fields, or six with seconds first.
        zone: the IANA zone in which the fields are read.
        catch_up: whether ticks that no node was there for are left out, or make one job together.
        may_overlap: whether a tick mints while the job of the last one has not ended; otherwise it
            is skipped, visibly.
        queue: instead of the job type's.
        tags: added to the job type's.

    Raises:
        InvalidSchedule: ``cron`` cannot be read, or ``zone`` or ``catch_up`` is unknown.
        InvalidValue: another argument is malformed.
    """
    if not isinstance(call, JobCall):
        raise InvalidValue("call", "must be made by job_type.bind(...)")
    if not isinstance(may_overlap, bool):
        raise InvalidSchedule("may_overlap", "must be true or false")
    if isinstance(tags, str):
        raise InvalidValue("tags", "must be a collection of tags, not one string")
    read_recurrence(cron, zone)
    job_type = call.job_type
    return Schedule(
        id=checked_name("schedule_id", schedule_id),
        wire_name=job_type.wire_name,
        queue=job_type.queue if queue is None else checked_name("queue", queue),
        payload=call.payload,
        tags=checked_tags((*job_type.tags, *tags)),
        retry=job_type.retry,
        cron=" ".join(cron.split()),
        zone=zone,
        catch_up=checked_catch_up(catch_up),
        may_overlap=may_overlap,
    )

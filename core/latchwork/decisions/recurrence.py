"""When a schedule's ticks are: cron expressions in time zones with their switches (section 8).

An hour field that begins with ``*`` follows elapsed time: every instant whose wall clock matches is
a tick, so none is at a wall time that was skipped, and a repeated one ticks twice. Any other hour
field names wall times: one that is skipped ticks once, right after the jump, and one that is
repeated ticks the first time only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import islice, takewhile

from cronsim import CronSim, CronSimError

SECOND = timedelta(seconds=1)
PROBE = timedelta(days=1)
"""No zone changes its offset and back within this time."""

ON_TIME = timedelta(seconds=60)
"""A tick that is decided this long after its time or earlier was not missed."""

MAX_COUNTED = 1_000
"""Missed ticks beyond this number are not counted one by one."""

MAX_CRON_CHARACTERS = 256
HOUR_FIELD = -4


class CatchUp(StrEnum):
    """What becomes of ticks that no node was there for."""

    SKIP = "skip"
    """They are left out."""
    COALESCE = "coalesce"
    """One job stands for all of one outage."""


class BadCron(ValueError):
    """A text that is no cron expression, or one that never matches."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A cron expression of five fields, or of six with seconds first, in a zone.

    Raises:
        BadCron: ``cron`` cannot be read.
    """

    cron: str
    zone: tzinfo

    def __post_init__(self) -> None:
        if len(self.cron) > MAX_CRON_CHARACTERS:
            raise BadCron(f"is longer than {MAX_CRON_CHARACTERS} characters")
        try:
            CronSim(self.cron, datetime(2000, 1, 1))  # noqa: DTZ001 - wall times have no zone
        except CronSimError as error:
            problem = str(error)
            raise BadCron(f"cannot be read: {problem[:1].lower()}{problem[1:]}") from error
        except (ValueError, TypeError, AssertionError) as error:
            raise BadCron("cannot be read") from error

    @property
    def follows_elapsed_time(self) -> bool:
        """Whether the hour field begins with ``*``."""
        return self.cron.split()[HOUR_FIELD].startswith("*")

    def words(self) -> str:
        """The expression in English."""
        return CronSim(self.cron, datetime(2000, 1, 1)).explain()  # noqa: DTZ001

    def after(self, moment: datetime) -> datetime | None:
        """The first tick later than ``moment``, in UTC; None when there is no further one."""
        start = moment.astimezone(UTC).replace(microsecond=0)
        try:
            if self.follows_elapsed_time:
                return self._elapsed_from(start + SECOND)
            return next((at for at in self._named_from(start) if at > start), None)
        except OverflowError:  # the calendar ends
            return None

    def until(self, moment: datetime) -> datetime | None:
        """The last tick at ``moment`` or earlier, in UTC; None when there is none."""
        start = moment.astimezone(UTC).replace(microsecond=0)
        try:
            if self.follows_elapsed_time:
                return self._elapsed_until(start)
            return next((at for at in self._named_until(start) if at <= start), None)
        except OverflowError:
            return None

    def following(self, moment: datetime) -> Iterator[datetime]:
        """The ticks later than ``moment``, in order."""
        at = self.after(moment)
        while at is not None:
            yield at
            at = self.after(at)

    # Hours that name wall times: each is one instant.

    def _named_from(self, start: datetime) -> Iterator[datetime]:
        return map(self._instant, self._walls(self._wall(start), reverse=False))

    def _named_until(self, start: datetime) -> Iterator[datetime]:
        wall = start.astimezone(self.zone)
        if wall.fold:
            # The whole repeated stretch ticked the first time, also what is later on the clock.
            start = self._change(start - PROBE, start) - SECOND
            wall = start.astimezone(self.zone)
        return map(self._instant, self._walls(wall.replace(tzinfo=None), reverse=True))

    def _instant(self, wall: datetime) -> datetime:
        """The moment a wall time stands for: the first one, or the end of the jump over it."""
        before = wall.replace(tzinfo=self.zone, fold=0).astimezone(UTC)
        after = wall.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
        # Only in a jump does the later reading come out earlier.
        return self._change(after, before) if after < before else before

    # Hours that follow elapsed time: one stretch of a constant offset after the other.

    def _elapsed_from(self, start: datetime) -> datetime | None:
        while True:
            wall = self._wall(start)
            matching = next(self._walls(wall - SECOND, reverse=False), None)
            if matching is None:
                return None
            at = start + (matching - wall)
            change = self._first_change(start, at)
            if change is None:
                return at
            start = change

    def _elapsed_until(self, start: datetime) -> datetime | None:
        while True:
            wall = self._wall(start)
            matching = next(self._walls(wall, reverse=True), None)
            if matching is None:
                return None
            at = start - (wall - matching)
            change = self._last_change(at, start)
            if change is None:
                return at
            start = change - SECOND

    # Wall times and offsets.

    def _walls(self, wall: datetime, *, reverse: bool) -> Iterator[datetime]:
        """Matching wall times after ``wall``; in reverse those at it or before."""
        return CronSim(self.cron, wall + SECOND if reverse else wall, reverse=reverse)

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None)

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or timedelta()

    def _first_change(self, start: datetime, end: datetime) -> datetime | None:
        """The first moment after ``start``, up to ``end``, with another offset than before."""
        low, offset = start, self._offset(start)
        while low < end:
            high = min(low + PROBE, end)
            if self._offset(high) != offset:
                return self._change(low, high)
            low = high
        return None

    def _last_change(self, start: datetime, end: datetime) -> datetime | None:
        """The last moment after ``start``, up to ``end``, with another offset than before."""
        high, offset = end, self._offset(end)
        while high > start:
            low = max(high - PROBE, start)
            if self._offset(low) != offset:
                return self._change(low, high)
            high = low
        return None

    def _change(self, low: datetime, high: datetime) -> datetime:
        """The first moment with the offset of ``high``, which is not that of ``low``."""
        offset = self._offset(high)
        return _bisect(low, high, lambda moment: self._offset(moment) == offset)


def _bisect(low: datetime, high: datetime, reached: Callable[[datetime], bool]) -> datetime:
    """The first whole second in (``low``, ``high``] at which ``reached`` holds from then on."""
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class DueTick:
    """A tick whose time has come: whether it mints a job, and how many ticks it stands for."""

    at: datetime
    mints: bool
    count: int = 1


@dataclass(frozen=True, slots=True)
class DueTicks:
    """The ticks to decide now, in order, and the first one that is still to come."""

    ticks: tuple[DueTick, ...]
    next_at: datetime | None


def due_ticks(
    recurrence: Recurrence, *, after: datetime, now: datetime, catch_up: CatchUp
) -> DueTicks:
    """What becomes of the ticks later than ``after`` and not later than ``now``.

    When the first of them is on time, each mints. Otherwise there was an outage, whose ticks share
    one decision: COALESCE mints once, at the last of them; SKIP leaves them out, but for the last
    if that is on time. The work is bounded however long the outage was (section 8).
    """
    last = recurrence.until(now)
    next_at = recurrence.after(max(after, now))
    first = recurrence.after(after)
    if last is None or last <= after or first is None:
        return DueTicks((), next_at)
    in_time = now - ON_TIME
    due = takewhile(lambda at: at <= now, recurrence.following(after))
    if first >= in_time:
        return DueTicks(tuple(DueTick(at, mints=True) for at in due), next_at)
    count = sum(1 for _ in islice(due, MAX_COUNTED + 1))
    if catch_up is CatchUp.COALESCE:
        return DueTicks((DueTick(last, mints=True, count=count),), next_at)
    if last < in_time:
        return DueTicks((DueTick(last, mints=False, count=count),), next_at)
    missed = recurrence.until(last - SECOND)
    skipped = DueTick(missed or first, mints=False, count=min(count, MAX_COUNTED + 2) - 1)
    return DueTicks((skipped, DueTick(last, mints=True)), next_at)

"""Schedules as they are asked for, and the check of when they tick (contract section 8)."""

from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from zoneinfo import ZoneInfo, available_timezones

from latchwork.decisions.recurrence import MAX_CRON_CHARACTERS, BadCron, CatchUp, Recurrence
from latchwork.decisions.retries import RetryPolicy
from latchwork.errors import InvalidSchedule
from latchwork.views import Tag

HOSTS_OWN_ZONE = "localtime"
"""A zone that means something else on each host."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """What each tick enqueues, and when; its values are checked."""

    id: str
    wire_name: str
    queue: str
    payload: str
    tags: tuple[Tag, ...]
    retry: RetryPolicy
    cron: str
    zone: str
    catch_up: CatchUp
    may_overlap: bool

    @property
    def recurrence(self) -> Recurrence:
        """When it ticks. Raises InvalidSchedule when this host does not know the zone."""
        return read_recurrence(self.cron, self.zone)


def read_recurrence(cron: str, zone: str) -> Recurrence:
    """When ``cron`` ticks in ``zone``, an IANA name.

    Raises:
        InvalidSchedule: the expression cannot be read, or no such zone is known here.
    """
    for field, value in (("cron", cron), ("zone", zone)):
        if not isinstance(value, str):
            raise InvalidSchedule(field, f"must be a string, not {type(value).__name__}")
    return _recurrence(cron, zone)


@lru_cache(maxsize=256)
def _recurrence(cron: str, zone: str) -> Recurrence:
    if zone not in _known_zones():
        raise InvalidSchedule("zone", f"must be an IANA name such as Europe/Berlin, not {zone!r}")
    try:
        return Recurrence(cron, ZoneInfo(zone))
    except BadCron as error:
        raise InvalidSchedule("cron", f"{cron[:MAX_CRON_CHARACTERS]!r} {error}") from error


def checked_ticks(cron: str, zone: str, now: datetime) -> None:
    """Raise InvalidSchedule unless ``cron`` can be read and ticks again after ``now``."""
    if read_recurrence(cron, zone).after(now) is None:
        raise InvalidSchedule("cron", f"{cron!r} never matches")


def checked_catch_up(catch_up: CatchUp) -> CatchUp:
    """``catch_up`` if it is one of its values; raises InvalidSchedule otherwise."""
    try:
        return CatchUp(catch_up)
    except ValueError:
        raise InvalidSchedule("catch_up", f"must be one of {', '.join(CatchUp)}") from None


@cache
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones()) - {HOSTS_OWN_ZONE}

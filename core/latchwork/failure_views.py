"""What the monitor tells of failures: groups of one cause, their trend and a sample."""

from dataclasses import dataclass
from datetime import datetime

from latchwork.views import BoundedCount, JobView

TREND_HOURS = 24
"""How many hours a group's trend covers, the running one included."""


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Dead-lettered and quarantined jobs of one wire name, cause code, type and kind of message.

    ``message`` is sensitive, as cause texts are; it is None where none is kept. ``first_seen_at``
    and ``last_seen_at`` tell of all failures of the group, ``count`` and ``sample`` of those that
    are still there: ``sample`` is the newest, None when there is none any more. ``hours`` counts
    failures by the hour, the oldest first.
    """

    key: str
    wire_name: str
    cause_code: str
    cause_type: str | None
    message: str | None
    first_seen_at: datetime
    last_seen_at: datetime
    count: BoundedCount
    sample: JobView | None
    hours: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FailurePage:
    """One page of groups, those that failed last first; ``next`` is a cursor or None.

    ``ungrouped`` failed jobs are not in a group yet: a sweep sorts them within seconds.
    """

    groups: tuple[FailureGroup, ...]
    next: str | None
    ungrouped: BoundedCount

"""Observers, their deliveries and the history policy: what is registered, read and answered."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from latchwork.decisions.states import HistoryPolicy, JobState
from latchwork.views import BoundedCount, TransitionView

Start = Literal["beginning", "end"]

BEHIND_AFTER = timedelta(seconds=60)
"""An active observer that has not passed a row for this long is behind."""


@dataclass(frozen=True, slots=True)
class ObserverScope:
    """What an observer is called for: its name, the states, and one wire name or queue, or any."""

    name: str
    states: tuple[JobState, ...]
    wire_name: str | None = None
    queue: str | None = None
    start: Start = "end"

    def covers(self, transition: TransitionView) -> bool:
        """Whether the observer is called for this row."""
        return (
            transition.state in self.states
            and self.wire_name in (None, transition.wire_name)
            and self.queue in (None, transition.queue)
        )


class ObserverState(StrEnum):
    """Whether an observer is served."""

    ACTIVE = "active"
    UNREGISTERED = "unregistered"
    """No node has registered it for 7 days: the log no longer waits for it."""
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class ObserverView:
    """One observer: what it watches, where it is in the log, what waits for it."""

    name: str
    states: tuple[JobState, ...]
    wire_name: str | None
    queue: str | None
    state: ObserverState
    registered_at: datetime
    last_seen_at: datetime
    retired_at: datetime | None
    retired_by: str | None
    owner: str | None
    """The dispatcher that serves it, while its lease runs."""
    token: str
    """Its place in the log."""
    passed_position: int
    """Every row up to here was delivered, copied to a delivery, or was not for it."""
    lag: BoundedCount
    """Log rows it has not passed."""
    oldest_unpassed_at: datetime | None
    pending: BoundedCount
    """Rows it was not called for with success yet, each with its copy."""
    backing_off: BoundedCount
    """Those of them that failed and wait to be tried again."""
    oldest_pending_at: datetime | None
    dead: BoundedCount
    delivered: int
    last_delivered_at: datetime | None
    skipped: int
    """Log positions it was not shown, because it was retired or unregistered."""
    last_error: str | None
    last_error_at: datetime | None

    def behind(self, now: datetime) -> timedelta:
        """For how long the oldest row it has not passed has been waiting."""
        if self.oldest_unpassed_at is None:
            return timedelta(0)
        return max(timedelta(0), now - self.oldest_unpassed_at)

    def is_behind(self, now: datetime) -> bool:
        """Whether it is active and has not passed a row for more than a minute."""
        return self.state is ObserverState.ACTIVE and self.behind(now) > BEHIND_AFTER


@dataclass(frozen=True, slots=True)
class DeadDelivery:
    """A row that was given up, with its own copy of the row."""

    id: int
    observer: str
    transition: TransitionView
    starts: int
    failures: int
    error: str | None
    dead_at: datetime


class RetireOutcome(StrEnum):
    """What became of retiring an observer."""

    RETIRED = "retired"
    REFUSED = "refused"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class RetireResult:
    """The answer to a retirement; ``given_up`` deliveries, pending or dead, are gone with it."""

    outcome: RetireOutcome
    given_up: int = 0


class ReplayOutcome(StrEnum):
    """What became of replaying a dead delivery."""

    REPLAYED = "replayed"
    REFUSED = "refused"
    NOT_FOUND = "not_found"


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The answer to a replay; ``observer`` is whose delivery it is, None when not found."""

    outcome: ReplayOutcome
    observer: str | None = None


class HistoryOutcome(StrEnum):
    """What became of a change of the history policy."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """The answer to a change of the history policy; ``observers`` are those that refuse OFF."""

    outcome: HistoryOutcome
    policy: HistoryPolicy
    observers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryPolicyView:
    """The history policy in force; ``since`` is None where it was never changed."""

    policy: HistoryPolicy
    since: datetime | None

    @property
    def off_since(self) -> datetime | None:
        """Since when nothing is logged; None while something is."""
        return self.since if self.policy is HistoryPolicy.OFF else None


@dataclass(frozen=True, slots=True)
class SettingPreview:
    """What an action on an observer or on the history policy would do, in a sentence."""

    allowed: bool
    reason: str

"""Deliveries to observers: when one is tried again, when it is dead, who counts (section 7)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from latchwork.decisions.retries import RetryPolicy, next_due

CALL_SECONDS = 30.0
"""How long one call may take; then it has failed."""

LEASE_SECONDS = 30.0
"""How long an observer is a dispatcher's own without a renewal."""

ACTIVE_FOR = timedelta(days=7)
"""How long an observer that no node registers any more still holds back the log."""

BACK_OFF = RetryPolicy(max_attempts=10)
"""How often and how late a delivery that failed is tried again, as for a job."""

MAX_LOST_STARTS = 20
"""How many calls of one delivery may begin and never end: each took its process along."""


class Tried(Protocol):
    """A delivery, for all that is decided of it here."""

    @property
    def starts(self) -> int:
        """Calls that began."""

    @property
    def failures(self) -> int:
        """Calls that ended in an error, or took too long."""


T = TypeVar("T", bound=Tried)


def next_try(failures: int, now: datetime, *, chance: float = 0.0) -> datetime | None:
    """When a delivery is tried again after its ``failures``-th failure; None: it is dead."""
    return next_due(BACK_OFF, failures, now, chance=chance)


def lost_starts(delivery: Tried) -> int:
    """How many of its calls never ended: their process did."""
    return delivery.starts - delivery.failures


def worn_out(delivery: Tried) -> bool:
    """Whether so many calls never ended that another would only end another process."""
    return lost_starts(delivery) >= MAX_LOST_STARTS


def called_together(due: Sequence[T]) -> Sequence[T]:
    """The first of the due deliveries that may be started in one go.

    One whose call never ended is started alone: if it ends its process again, no neighbour's start
    is counted with it.
    """
    for index, delivery in enumerate(due):
        if lost_starts(delivery):
            return due[: index or 1]
    return due


def is_active(retired_at: datetime | None, last_seen_at: datetime, now: datetime) -> bool:
    """Whether an observer is promised every row: not retired, and registered of late."""
    return retired_at is None and last_seen_at > now - ACTIVE_FOR

"""Time comes in through here: nothing below the shell reads the wall clock itself."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """One store's idea of the time."""

    def now(self) -> datetime:
        """The current time, aware, in UTC, to the microsecond."""

    def monotonic(self) -> float:
        """Seconds that never step, for waits."""


class SystemClock:
    """The host's clock, corrected by the measured offset to the database's clock.

    ``offset`` is added to the wall clock; it stays zero on SQLite, where the host's clock is the
    store's clock (contract section 4, Time).
    """

    def __init__(self) -> None:
        self.offset = timedelta()

    def now(self) -> datetime:
        """The current time in UTC."""
        return datetime.now(UTC) + self.offset

    def monotonic(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

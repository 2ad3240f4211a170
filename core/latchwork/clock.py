"""Time comes in through here: nothing below the shell reads the wall clock itself."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

_BOOT_TIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """One store's idea of the time."""

    def now(self) -> datetime:
        """The current time, aware, in UTC, to the microsecond."""

    def monotonic(self) -> float:
        """Seconds that never step, for waits."""


def _wall() -> datetime:
    return datetime.now(UTC)


def _steady() -> float:
    """Seconds that never step and, where the system can, count while the host is suspended."""
    return time.monotonic() if _BOOT_TIME is None else time.clock_gettime(_BOOT_TIME)


class SystemClock:
    """The host's clock, corrected by the measured offset to the database's clock.

    ``offset`` is added to the host's time; it stays zero on SQLite, where the host's wall clock is
    the store's clock (contract section 4, Time). Once measured, time goes on from the measurement
    by a clock that nobody sets: a host whose wall clock is stepped takes no lease for lapsed.
    """

    def __init__(
        self, wall: Callable[[], datetime] = _wall, steady: Callable[[], float] = _steady
    ) -> None:
        self.offset = timedelta()
        self._wall = wall
        self._steady = steady
        self._measured: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """The current time in UTC."""
        measured = self._measured
        if measured is None:
            return self._wall() + self.offset
        theirs, steady = measured
        return theirs + timedelta(seconds=self._steady() - steady)

    def monotonic(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def correct(self, ask: Callable[[], datetime]) -> None:
        """Measure the offset to the clock that ``ask`` reads."""
        before = self._steady()
        theirs = ask()
        wall, after = self._wall(), self._steady()
        middle = wall - timedelta(seconds=(after - before) / 2)
        self.offset = theirs - middle
        # One value: another thread never sees half of a new measurement.
        self._measured = (wall + self.offset, after)

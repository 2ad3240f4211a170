"""The one clock of tests that hold the time in their hand."""

from collections.abc import Callable
from datetime import datetime

from latchwork.clock import SystemClock


class SetClock(SystemClock):
    """A database's clock that shows what ``now`` says, and moves only with it."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__()
        self._now = now

    def now(self) -> datetime:
        """The test's time."""
        return self._now()

    def monotonic(self) -> float:
        """Seconds that pass with the test's time."""
        return self._now().timestamp()

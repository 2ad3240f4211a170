"""``VirtualTime``: an application's real jobs over a time that a test moves."""

import asyncio
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from latchwork.application import Latchwork
from latchwork.errors import InvalidValue
from latchwork.store.database import Database
from latchwork.testing.loop import VirtualClock, VirtualLoop
from latchwork.testing.node import Crashed, VirtualNode
from latchwork.testing.upkeep import Upkeep

START = datetime(2026, 1, 1, tzinfo=UTC)
IN_MEMORY = "sqlite://"
PATIENCE = timedelta(days=1)


class NeverIdle(AssertionError):
    """Handlers still ran after the time that ``run_until_idle`` was given."""


class VirtualTime:
    """Runs an application's jobs in one thread over virtual time, on a database in memory.

    A context manager. Inside, ``app`` works on an empty SQLite database of its own and on a clock
    that only the test moves; its client, monitor and operator are used as ever. Its handlers,
    observers and schedules are the real ones, driven by the real node and store: due times,
    retries, time limits, leases and ``asyncio.sleep`` take virtual time and no other. Ended jobs
    are not purged. Afterwards ``app`` has its own database and clock again.

    Args:
        app: the application, with its handlers.
        start: the first moment, aware.
        worker: options of ``app.worker``, such as ``slots`` or ``lease_seconds``.

    Raises:
        InvalidValue: ``start`` has no time zone, or an option is out of its range.
    """

    def __init__(self, app: Latchwork, *, start: datetime = START, **worker: Any) -> None:
        if start.tzinfo is None:
            raise InvalidValue("start", "must carry a time zone")
        self._app = app
        self._clock = VirtualClock(start.astimezone(UTC))
        self._options = app.worker(**worker).options
        self._undo = ExitStack()
        self._until: datetime | None = None
        self._give_up_at = self._clock.now()
        self._seen_changes = -1
        self._alarm: asyncio.TimerHandle | None = None
        self._problem: BaseException | None = None
        self._loop: VirtualLoop
        self._node: VirtualNode
        self._upkeep: Upkeep

    def __enter__(self) -> Self:
        database = self._app.database
        with ExitStack() as undo:
            other = Database(IN_MEMORY, database.settings)
            undo.callback(other.dispose)
            other.clock = self._clock
            undo.enter_context(database.replaced_by(other))
            database.prepare()
            self._app.introduce()
            self._loop = VirtualLoop(self._clock, self._wait)
            self._loop.set_exception_handler(self._note_problem)
            undo.callback(self._loop.close)
            self._upkeep = Upkeep(self._app)
            undo.callback(self._upkeep.close)
            self._loop.run_until_complete(self._start_node())
            undo.callback(self._end)
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._undo.close()

    @property
    def now(self) -> datetime:
        """The virtual time, in UTC."""
        return self._clock.now()

    def advance(self, duration: timedelta | None = None, **parts: float) -> None:
        """Let time pass and everything happen that falls into it.

        ``advance(days=3)`` or ``advance(timedelta(days=3))``. Called by a handler, it is the time
        that handler takes: its node renews its leases meanwhile and does nothing else.

        Raises:
            InvalidValue: the time is negative.
        """
        until = self._later(duration, parts)
        if self._loop.is_running():
            self._node.spend(until, beating=True)
        else:
            self._run(until)

    def advance_to(self, moment: datetime) -> None:
        """``advance`` up to a moment that is still to come."""
        self.advance(moment - self.now)

    def run_until_idle(self, patience: timedelta = PATIENCE) -> None:
        """Run what is due until nothing is and no handler runs.

        Time passes only as far as handlers need that sleep; what is due later stays.

        Raises:
            NeverIdle: a handler still runs after ``patience``.
        """
        self._give_up_at = self.now + patience
        self._run(None)

    def freeze(self, duration: timedelta | None = None, **parts: float) -> None:
        """For a handler: let its whole node stand still, heartbeats too, as a stopped process.

        Longer than the lease, and the job is given to somebody else: what this attempt comes to is
        refused, and the job runs again.
        """
        self._node.spend(self._later(duration, parts), beating=False)
        self._upkeep.tend()

    def crash(self) -> None:
        """Kill the node, as kill -9 would: nothing of it is reported, its leases lapse in time.

        From a handler it does not return. A new node is there at once.
        """
        self._node.crash()
        if self._loop.is_running():
            raise Crashed
        self._loop.run_until_complete(self._start_node())

    def _later(self, duration: timedelta | None, parts: dict[str, float]) -> datetime:
        length = timedelta(**parts) if duration is None else duration
        if length < timedelta():
            raise InvalidValue("duration", "must not be negative: time goes forward")
        return self.now + length

    async def _start_node(self) -> None:
        self._node = VirtualNode(self._app, self._options, self._clock)

    def _run(self, until: datetime | None) -> None:
        self._until = until
        self._seen_changes = -1
        self._loop.run_forever()
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        self._node.seen()
        self._upkeep.tidy()

    def _wait(self, seconds: float | None) -> None:
        """Nothing is ready: see whether the database has changed, else move on, else stop."""
        changes = self._changes()
        if changes != self._seen_changes:
            self._seen_changes = changes
            self._loop.call_soon(self._look_around)
            return
        if self._until is None and not self._node.busy:
            self._loop.stop()
            return
        end = self._give_up_at if self._until is None else self._until
        if seconds is None or self.now + timedelta(seconds=seconds) > end:
            self._clock.move_to(end)
            self._loop.stop()
            if self._until is None:
                self._problem = NeverIdle(f"a handler still runs at {end}; advance() moves time")
            return
        self._clock.move_by(seconds)

    def _look_around(self) -> None:
        """Do what is due, and come back when something is due by itself."""
        if self._node.crashed:
            self._node = VirtualNode(self._app, self._options, self._clock)
        agenda = self._upkeep.tend()
        if agenda.due_at is not None and agenda.due_at <= self.now:
            self._node.look()
        next_at = agenda.first_after(self.now)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if next_at is not None:
            seconds = self._clock.seconds_at(next_at)
            self._alarm = self._loop.call_at(seconds, self._expect_changes)

    def _expect_changes(self) -> None:
        self._seen_changes = -1

    def _note_problem(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What goes wrong beside the handlers ends the test, not the loop alone."""
        self._problem = context.get("exception") or RuntimeError(context["message"])
        self._loop.stop()

    def _end(self) -> None:
        """Cut off what still runs; none of it is reported."""
        self._node.crash()
        self._until = self.now
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        with suppress(RuntimeError):  # one that does not heed it is left
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    def _changes(self) -> int:
        """How many rows were written so far, by whomever."""
        with self._app.engine.connect() as connection:
            driver = connection.connection.driver_connection
            return 0 if driver is None else int(driver.total_changes)

"""One worker node over virtual time: the real node, store and handlers, without their threads."""

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import partial
from importlib.metadata import version
from typing import TypeVar

from latchwork.application import Latchwork
from latchwork.decisions.leases import Hold
from latchwork.decisions.node import NodePlan
from latchwork.decisions.node_messages import Woke
from latchwork.store import heartbeats
from latchwork.store.heartbeats import NodeRecord
from latchwork.testing.loop import InlineThreads, VirtualClock
from latchwork.worker.execution import Execution
from latchwork.worker.lease_keeper import LeaseKeeper
from latchwork.worker.pump import Pump
from latchwork.worker.signals import WorkerSignals
from latchwork.worker.worker import WorkerOptions

T = TypeVar("T")

SELDOM_SECONDS = 1_000_000.0
"""How often a node polls here: it is told of whatever becomes due."""


MOMENT = timedelta(microseconds=1)


class Crashed(BaseException):
    """Unwinds the handler that called ``VirtualTime.crash``."""


class VirtualNode:
    """A node that lives on the running virtual loop until it crashes."""

    def __init__(self, app: Latchwork, options: WorkerOptions, clock: VirtualClock) -> None:
        self._app = app
        self._options = options
        self._clock = clock
        self.worker_id = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._register()
        database = app.database
        self._pump = _VirtualPump(
            NodePlan(
                options.queues, options.slots, SELDOM_SECONDS, options.grace_seconds,
                options.weights,
            ),
            database, self.worker_id,
            lease_seconds=options.lease_seconds, signals=WorkerSignals(),
        )  # fmt: skip
        self._keeper = _VirtualLeaseKeeper(
            database, self.worker_id,
            lease_seconds=options.lease_seconds, heartbeat_seconds=options.heartbeat_seconds,
            on_lost=self._pump.leases_lost, on_cancel=self._pump.cancel_asked,
        )  # fmt: skip
        self._execution = _VirtualExecution(
            app.job_types, database,
            slots=options.slots, attempt_scope=app.attempt_scope, on_end=self._pump.ended,
        )  # fmt: skip
        self._life = asyncio.get_running_loop().create_task(self._live())

    @property
    def busy(self) -> bool:
        """Whether a handler runs, or the end of one is still to be reported."""
        return self._pump.busy

    @property
    def crashed(self) -> bool:
        """Whether it has been made to crash."""
        return self._pump.dead

    def look(self) -> None:
        """Work may have become due."""
        self._pump.hinted(None)

    def seen(self) -> None:
        """Say that the node is alive, as its heartbeat does in real time."""
        self._app.database.write(
            heartbeats.node_seen, self.worker_id, now=self._clock.now(), draining=False
        )

    def spend(self, until: datetime, *, beating: bool) -> None:
        """Let time pass while a handler blocks the node; only heartbeats go on, if they do."""
        while beating and (beat_at := self._keeper.next_beat_at()) < until:
            self._clock.move_to(beat_at)
            self._keeper.beat()
        self._clock.move_to(until)

    def crash(self) -> None:
        """Die on the spot: nothing is reported or released, and no code of it goes on."""
        self._keeper.stop()
        self._pump.die()

    async def _live(self) -> None:
        for attempt in await self._pump.run(self._execution, self._keeper):
            if attempt.task is not None:
                attempt.task.cancel()

    def _register(self) -> None:
        options = self._options
        record = NodeRecord(
            worker_id=self.worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=version("latchwork"),
            started_at=self._clock.now(),
            heartbeat_seconds=options.heartbeat_seconds,
            slots=options.slots,
            queues=options.queues,
            wire_names=tuple(sorted(self._app.job_types)),
        )
        self._app.database.write(heartbeats.register_node, record)


class _VirtualPump(Pump):
    """The pump with the store's work done at once."""

    @property
    def busy(self) -> bool:
        return bool(self._attempts or self._claimed_jobs)

    @property
    def dead(self) -> bool:
        return self._stopped.done()

    def die(self) -> None:
        if not self._stopped.done():
            self._stopped.set_result(list(self._attempts.values()))

    def _in_store(self, work: Callable[[], T], then: Callable[[T | Exception], None]) -> None:
        answer: T | Exception
        try:
            answer = work()
        except Exception as error:  # noqa: BLE001 - the node decides what follows
            answer = error
        self._loop.call_soon(partial(then, answer))

    def _wake(self) -> None:
        # Sums of fractions may fall short of the alarm's own time by less than a microsecond.
        self._alarm = None
        self._step(Woke(max(self._loop.time(), self._alarm_at)))

    def _loop_time(self, moment: datetime | None) -> float | None:
        clock = self._database.clock
        if moment is None or not isinstance(clock, VirtualClock):
            return None
        return clock.seconds_at(moment)


class _VirtualExecution(Execution):
    """Handlers on the virtual loop; plain ones are called at once."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)  # type: ignore[arg-type]
        self._threads = InlineThreads()


class _VirtualLeaseKeeper(LeaseKeeper):
    """Heartbeats as timers of the virtual loop, while there is a lease to renew."""

    _timer: asyncio.TimerHandle | None = None

    def hold(self, holds: Iterable[Hold], expires_at: datetime) -> None:
        super().hold(holds, expires_at)
        self._set_timer()

    def stop(self) -> None:
        super().stop()
        if self._timer is not None:
            self._timer.cancel()

    def beat(self) -> None:
        """Beat now, and again in time while there is a lease to renew."""
        self._beat()
        self._set_timer()

    def next_beat_at(self) -> datetime:
        """When a beat is due; a moment later than asked, never too early."""
        wait = self._renewals.wait_seconds(self._clock.now(), self._clock.monotonic())
        return self._clock.now() + timedelta(seconds=wait) + MOMENT

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._renewals.held and not self._stopping.is_set():
            seconds = (self.next_beat_at() - self._clock.now()).total_seconds()
            self._timer = asyncio.get_running_loop().call_later(seconds, self.beat)

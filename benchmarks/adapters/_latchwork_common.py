"""What the two adapters share: one application, no-op and 10 ms jobs, default durability."""

import asyncio
import logging
from collections.abc import Callable

import probe

from latchwork import JobContext, Latchwork

SLEEP_SLOTS = 40


class Bench:
    """The harness's functions, on one database."""

    def __init__(self, database_url: str, reset: Callable[[], None], slots: int) -> None:
        self._database_url = database_url
        self._reset = reset
        self._slots = slots
        self.settings = (
            f"one process, {slots} slots (40 for the 10 ms drain), full transition log, "
            "default durability; uvloop; bulk = enqueue_many 1000/call"
        )
        self._app: Latchwork | None = None

    def open_client(self) -> None:
        """A fresh application: the reset took the old one's database away."""
        app = Latchwork(self._database_url)

        @app.job("noop")
        async def noop(context: JobContext, seq: int, t: float) -> None:
            probe.rec(seq, t, probe.now())

        @app.job("sleep10")
        async def sleep10(context: JobContext, seq: int, t: float) -> None:
            start = probe.now()
            await asyncio.sleep(0.01)
            probe.rec(seq, t, start)

        self._types = {"noop": noop, "sleep10": sleep10}
        self._app = app
        app.database.prepare()

    @property
    def app(self) -> Latchwork:
        """The application in use."""
        if self._app is None:
            self.open_client()
        assert self._app is not None
        return self._app

    def reset(self) -> None:
        """Wipe the store."""
        if self._app is not None:
            self._app.database.dispose()
        self._reset()

    def enqueue_one(self, kind: str, seq: int, t: float) -> None:
        """One job, one transaction."""
        self.app.client.enqueue(self._types[kind].bind(seq=seq, t=t))

    def enqueue_bulk(self, kind: str, items: list[tuple[int, float]]) -> None:
        """A batch in one transaction."""
        bind = self._types[kind].bind
        self.app.client.enqueue_many(bind(seq=seq, t=t) for seq, t in items)

    def remaining(self) -> int:
        """Unfinished jobs in the store."""
        counts = self.app.monitor.counts().by_state
        return sum(number for state, number in counts.items() if not state.terminal)

    def run_worker(self, kind: str) -> None:
        """One worker until SIGTERM."""
        logging.getLogger("latchwork").setLevel(logging.WARNING)
        slots = SLEEP_SLOTS if kind == "sleep10" else self._slots
        self.app.worker(slots=slots).run()

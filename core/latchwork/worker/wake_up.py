"""A thread that passes wake-up hints on to the node; while it cannot, polling suffices."""

import logging
import threading
from collections.abc import Callable, Sequence

from latchwork.decisions.node import back_off_seconds
from latchwork.store import hints
from latchwork.store.database import Database

logger = logging.getLogger(__name__)

_LOOK_UP_SECONDS = 0.2
"""How often a listener that hears nothing looks whether it is to stop."""


class WakeUp:
    """Tells ``on_hint`` which queue may have due work, or None for any, from its own thread."""

    def __init__(
        self, database: Database, queues: Sequence[str], on_hint: Callable[[str | None], None]
    ) -> None:
        self._database = database
        self._queues = queues
        self._on_hint = on_hint
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="latchwork-wake-up", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        if hints.can_hint(self._database.engine):
            self._thread.start()

    def stop(self) -> None:
        """Listen no more; the thread ends within a moment."""
        self._stopping.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        faults = 0
        while not self._stopping.is_set():
            try:
                with hints.listening(self._database, self._queues) as heard:
                    faults = 0
                    self._on_hint(None)  # what was committed before is not told again
                    self._listen(heard)
            except Exception as error:  # noqa: BLE001 - polling goes on, whatever it was
                faults += 1
                if faults == 1:
                    logger.warning("Wake-up hints are gone, polling goes on: %s", error)
                self._stopping.wait(back_off_seconds(faults))

    def _listen(self, heard: hints.Hints) -> None:
        while not self._stopping.is_set():
            for queue in heard.wait(_LOOK_UP_SECONDS):
                self._on_hint(queue)

"""How a background service runs: again and again, in a thread of its own, whatever goes wrong."""

import logging
import threading
from typing import Protocol

logger = logging.getLogger(__name__)

MAX_PAUSE_SECONDS = 5.0
"""The longest pause after a fault, unless the service itself pauses longer."""


class Service(Protocol):
    """A small piece of work that some node must do every now and then."""

    name: str
    pause_seconds: float

    def run_once(self) -> bool:
        """Do a bounded part of the work; returns whether more is waiting."""


class ServiceThread:
    """Runs one service until it is stopped. A fault is logged and tried again."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"latchwork-{service.name}", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the part under way."""
        self._stopping.set()

    def join(self, timeout_seconds: float) -> None:
        """Wait until it has ended, but no longer than this."""
        if self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        pause_seconds, faults = 0.0, 0
        while not self._stopping.wait(pause_seconds):
            try:
                more = self._service.run_once()
                pause_seconds = 0.0 if more else self._service.pause_seconds
                faults = 0
            except Exception as error:  # noqa: BLE001 - the next round may do better
                faults += 1
                if faults == 1:
                    logger.warning("%s failed and is tried again: %s", self._service.name, error)
                pause_seconds = max(
                    self._service.pause_seconds,
                    min(MAX_PAUSE_SECONDS, 0.1 * 2.0 ** min(faults, 10)),
                )

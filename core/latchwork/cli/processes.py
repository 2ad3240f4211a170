"""Several worker nodes, each in a process of its own, kept running until they are told to stop."""

import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import FrameType

RESTART_SECONDS = 1.0
NEVER_AGAIN = {0, 2}
"""Exit codes after which a process is not started again: it ended well, or cannot start at all."""


def keep_running(arguments: Sequence[str], processes: int) -> int:
    """Run ``latchwork`` with ``arguments`` in so many processes; the worst exit code counts.

    A process that dies is replaced. SIGTERM and SIGINT are passed on; a second one makes the nodes
    hurry, as it does for one.
    """
    nodes = [_Node(arguments) for _ in range(processes)]

    def stop(_number: int, _frame: FrameType | None) -> None:
        for node in nodes:
            node.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        threads = [threading.Thread(target=node.keep_running) for node in nodes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return max(node.exit_code for node in nodes)


class _Node:
    """One node's process, and its successors when it dies."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.exit_code = 0
        self._command = [sys.executable, "-m", "latchwork", *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        # Reentrant: a signal handler asks for it, also while this thread holds it.
        self._changing = threading.RLock()
        self._stopped = threading.Event()

    def keep_running(self) -> None:
        """Start a process, wait for its end, start the next; until told to stop."""
        while self._start():
            assert self._process is not None  # noqa: S101 - just started
            code = self._process.wait()
            # A negative code is the signal that ended it; the shell's convention is above 128.
            self.exit_code = code if code >= 0 else 128 - code
            if self.exit_code in NEVER_AGAIN:
                return
            self._stopped.wait(RESTART_SECONDS)

    def stop(self) -> None:
        """Start no other process, and ask the one that runs to end."""
        with self._changing:
            self._stopped.set()
            if self._process is not None:
                self._process.terminate()

    def _start(self) -> bool:
        with self._changing:
            if self._stopped.is_set():
                return False
            # In a group of its own: the terminal's Ctrl-C reaches it through us alone, once.
            self._process = subprocess.Popen(self._command, process_group=0)  # noqa: S603
            return True

"""Runs the demo: two nodes, the traffic, the console; kills one of the nodes every minute."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from latchwork import LatchworkError
from latchwork.cli.beside import console_beside
from latchwork.demo.application import app
from latchwork.demo.place import Place
from latchwork.demo.traffic import Traffic

STEADY_SLOTS = 8
RESTLESS_SLOTS = 4
FIRST_KILL_SECONDS = 20
KILL_EVERY_SECONDS = 60
BUSY_SECONDS = 10
"""How long the killer waits for its victim to be busy; an idle one shows nothing."""
DOWN_SECONDS = 8
"""Longer than a lease and the sweep after it."""
RESTART_SECONDS = 1
LOOK_SECONDS = 0.25
END_SECONDS = 10


class NodeProcess:
    """A node in a process of its own, which ends with this one."""

    def __init__(self, slots: int, log: Path) -> None:
        self._command = [sys.executable, "-m", "latchwork.demo.node", "--slots", str(slots)]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at = 0.0

    @property
    def pid(self) -> int | None:
        """Its process id, while it runs."""
        return self._process.pid if self._process else None

    def keep_up(self) -> None:
        """Start it, unless it runs or is to stay down for a while yet."""
        if self._process is not None and self._process.poll() is not None:
            self._forget(RESTART_SECONDS)
        if self._process is None and time.monotonic() >= self._start_at:
            with self._log.open("ab") as log:
                # A session of its own: a Ctrl-C in the terminal reaches it through us.
                self._process = subprocess.Popen(  # noqa: S603
                    self._command, stdin=subprocess.PIPE, stdout=log, stderr=log,
                    start_new_session=True,
                )  # fmt: skip

    def kill(self) -> None:
        """Let it die without a word; it stays down for a while."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget(DOWN_SECONDS)

    def ask_to_stop(self) -> None:
        """Let it drain."""
        if self._process is not None:
            self._process.terminate()

    def wait(self, until: float) -> None:
        """Wait for its end, and make it end at ``until`` (monotonic)."""
        if self._process is None:
            return
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
        self._forget(0)

    def _forget(self, pause_seconds: float) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None
        self._start_at = time.monotonic() + pause_seconds


def run_demo(
    place: Place,
    directory: Path,
    port: int,
    stop: threading.Event,
    on_started: Callable[[str], None],
) -> None:
    """Run until ``stop`` is set; when this returns, nothing is left running.

    Raises:
        OSError: the port is taken.
    """
    app.database.prepare(upgrade=True)
    steady = NodeProcess(STEADY_SLOTS, place.node_log)
    restless = NodeProcess(RESTLESS_SLOTS, place.node_log)
    traffic = threading.Thread(
        target=Traffic(directory, place.results).run, args=(stop,), name="demo-traffic"
    )
    with console_beside(app, "127.0.0.1", port, on_started=on_started):
        traffic.start()
        try:
            _keep_going(steady, restless, stop)
        finally:
            stop.set()
            for node in (steady, restless):
                node.ask_to_stop()
            until = time.monotonic() + END_SECONDS
            for node in (steady, restless):
                node.wait(until)
            traffic.join()


def _keep_going(steady: NodeProcess, restless: NodeProcess, stop: threading.Event) -> None:
    kill_at = time.monotonic() + FIRST_KILL_SECONDS
    while not stop.wait(LOOK_SECONDS):
        steady.keep_up()
        restless.keep_up()
        late = time.monotonic() - kill_at
        if late >= 0 and (late >= BUSY_SECONDS or _busy(restless)):
            restless.kill()
            kill_at += KILL_EVERY_SECONDS


def _busy(node: NodeProcess) -> bool:
    """Whether the node runs a job, as the monitor sees it."""
    try:
        nodes = app.monitor.nodes()
    except LatchworkError:
        return False
    here = os.uname().nodename
    return any(one.running for one in nodes if (one.host, one.pid) == (here, node.pid))

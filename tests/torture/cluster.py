"""A handful of node processes that a run may kill, freeze and heal."""

import multiprocessing
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.torture.node import serve

PATIENCE_SECONDS = 30.0
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.torture.node", "latchwork.application", "psycopg"])

SAID_BY_A_BUG = (
    "Traceback",
    "ERROR ",
    "CRITICAL ",
    "sqlalchemy.exc",
    "sqlite3.",
    "psycopg.errors",
    "the database refused",
)
"""What no node may write to its log: a fault is told in our own words."""


class Cluster:
    """So many nodes on one database; a killed one is started again at once."""

    def __init__(self, database_url: str, folder: Path, *, count: int, **options: Any) -> None:
        self._url = database_url
        self._folder = folder
        self._options = options
        self._log = folder / "nodes.log"
        self.witness_path = folder / "witness"
        self.kills = 0
        self.freezes = 0
        self._frozen: set[int] = set()
        self.nodes: list[BaseProcess] = [self._start() for _ in range(count)]

    def _start(self) -> BaseProcess:
        arguments = (self._url, self.witness_path, self._log, self._options)
        node = FORKS.Process(target=serve, args=arguments, daemon=True)
        node.start()
        return node

    def pids(self) -> list[int]:
        """The processes that run now."""
        return [pid for node in self.nodes if (pid := node.pid) is not None]

    def kill(self, pid: int) -> None:
        """Kill -9 one node and start another in its place."""
        place = self._place(pid)
        os.kill(pid, signal.SIGKILL)
        self.nodes[place].join(PATIENCE_SECONDS)
        self._frozen.discard(pid)
        self.nodes[place] = self._start()
        self.kills += 1

    def terminate(self, pid: int) -> tuple[int | None, float]:
        """Tell one node to stop and start another; its exit code and how long it took."""
        place = self._place(pid)
        node = self.nodes[place]
        asked_at = time.monotonic()
        node.terminate()
        node.join(PATIENCE_SECONDS)
        seconds = time.monotonic() - asked_at
        self.nodes[place] = self._start()
        return node.exitcode, seconds

    def _place(self, pid: int) -> int:
        return next(place for place, node in enumerate(self.nodes) if node.pid == pid)

    def freeze(self, pid: int) -> None:
        """Stop a node where it is, whatever it holds."""
        os.kill(pid, signal.SIGSTOP)
        self._frozen.add(pid)
        self.freezes += 1

    def thaw(self, pid: int) -> None:
        """Let a frozen node go on, unless it was killed meanwhile."""
        if pid in self._frozen:
            os.kill(pid, signal.SIGCONT)
            self._frozen.discard(pid)

    def heal(self) -> None:
        """Let every frozen node go on."""
        for pid in list(self._frozen):
            self.thaw(pid)

    def stop(self) -> list[str]:
        """Drain all nodes; what went wrong on the way, and what their log should not hold."""
        self.heal()
        findings = [
            f"node {node.pid} ended by itself with {node.exitcode}"
            for node in self.nodes
            if not node.is_alive()
        ]
        for node in self.nodes:
            node.terminate()
        deadline = time.monotonic() + PATIENCE_SECONDS
        for node in self.nodes:
            node.join(max(0.1, deadline - time.monotonic()))
            if node.exitcode != 0 and not findings:
                findings.append(f"node {node.pid} did not drain: exit code {node.exitcode}")
        self.kill_all()
        return findings + self._said()

    def kill_all(self) -> None:
        """Leave no process behind."""
        for node in self.nodes:
            node.kill()
            node.join(PATIENCE_SECONDS)

    def _said(self) -> list[str]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        bad = [n for n, line in enumerate(lines) if any(word in line for word in SAID_BY_A_BUG)]
        if not bad:
            return []
        excerpt = " | ".join(lines[bad[0] : bad[0] + 40])
        return [f"{len(bad)} lines in the nodes' log that should not be there: {excerpt}"]

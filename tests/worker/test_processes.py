"""Several nodes from one command: a process that dies is replaced, a signal drains them all."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.worker.conftest import PATIENCE_SECONDS

CHILD = """
import os, pathlib, signal, sys, time
folder, code = pathlib.Path(sys.argv[1]), int(sys.argv[2])
def end(*_):
    (folder / f"{os.getpid()}.asked").touch()
    os._exit(code)
signal.signal(signal.SIGTERM, end)
(folder / str(os.getpid())).touch()
while True:
    time.sleep(0.01)
"""
PARENT = """
import sys
from latchwork.worker.shutdown import run_processes
child = [sys.executable, "-c", sys.argv[1], *sys.argv[2:4]]
raise SystemExit(run_processes(child, int(sys.argv[4])))
"""

StartProcesses = Callable[[int, int], subprocess.Popen[bytes]]


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[StartProcesses]:
    """Start so many processes that exit with a code when they are told to stop."""
    parents: list[subprocess.Popen[bytes]] = []

    def begin(count: int, code: int) -> subprocess.Popen[bytes]:
        words = [CHILD, str(tmp_path), str(code), str(count)]
        parents.append(subprocess.Popen([sys.executable, "-c", PARENT, *words]))
        return parents[-1]

    yield begin
    for parent in parents:
        parent.kill()
        parent.wait()
    for pid in started(tmp_path):
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


def started(folder: Path) -> set[int]:
    """The processes that have started so far."""
    return {int(path.name) for path in folder.iterdir() if path.name.isdigit()}


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_a_killed_process_is_replaced_and_the_others_stay(
    processes: StartProcesses, tmp_path: Path
) -> None:
    processes(2, 0)
    wait_until(lambda: len(started(tmp_path)) == 2)
    killed, kept = sorted(started(tmp_path))
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: len(started(tmp_path)) == 3)
    assert is_running(kept)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_to_all_and_a_clean_drain_ends_with_code_0(
    processes: StartProcesses, tmp_path: Path, number: signal.Signals
) -> None:
    parent = processes(3, 0)
    wait_until(lambda: len(started(tmp_path)) == 3)
    parent.send_signal(number)
    assert parent.wait(PATIENCE_SECONDS) == 0
    assert all((tmp_path / f"{pid}.asked").exists() for pid in started(tmp_path))
    assert not any(is_running(pid) for pid in started(tmp_path))


def test_a_process_that_does_not_end_cleanly_shows_in_the_exit_code(
    processes: StartProcesses, tmp_path: Path
) -> None:
    parent = processes(2, 3)
    wait_until(lambda: len(started(tmp_path)) == 2)
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(PATIENCE_SECONDS) == 3


def test_a_process_that_keeps_dying_is_not_started_again_without_a_pause(
    processes: StartProcesses, tmp_path: Path
) -> None:
    processes(1, 0)
    pauses: list[float] = []
    for number in (1, 2, 3):
        wait_until(partial(has_started, tmp_path, number))
        [alive] = filter(is_running, started(tmp_path))
        killed_at = time.monotonic()
        os.kill(alive, signal.SIGKILL)
        wait_until(partial(has_started, tmp_path, number + 1))
        pauses.append(time.monotonic() - killed_at)
    assert all(pause >= least for pause, least in zip(pauses, (0.1, 0.2, 0.4), strict=True))


def has_started(folder: Path, count: int) -> bool:
    return len(started(folder)) >= count

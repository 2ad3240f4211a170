"""A node works on uvloop where that is installed and on asyncio's own loop elsewhere."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
import uvloop

from latchwork import JobContext, Latchwork
from latchwork.decisions.node import NodePlan
from latchwork.decisions.node_messages import WakeAt
from latchwork.worker.pump import Pump
from latchwork.worker.shutdown import run_loop
from latchwork.worker.signals import WorkerSignals
from tests.worker.conftest import PATIENCE_SECONDS, Start, settled


async def kind_of_loop() -> type:
    return type(asyncio.get_running_loop())


def test_uvloop_is_used_when_it_is_installed() -> None:
    assert run_loop(kind_of_loop()) is uvloop.Loop


def test_without_uvloop_a_node_works_on_asyncio(
    app: Latchwork, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loops: list[type] = []

    @app.job("look")
    async def look(context: JobContext) -> None:
        loops.append(await kind_of_loop())

    settled(start(app), app.client.enqueue(look.bind()))
    assert not issubclass(loops[0], uvloop.Loop)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_alarm_for_a_time_that_has_passed_can_be_set_again(
    app: Latchwork, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def set_twice() -> None:
        plan = NodePlan(queues=("default",), slots=1, poll_seconds=1, grace_seconds=1)
        pump = Pump(plan, app.database, "node", lease_seconds=60, signals=WorkerSignals())
        now = asyncio.get_running_loop().time()
        for late_by_seconds in (1, 2):
            pump._carry_out(WakeAt(now - late_by_seconds))

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(set_twice())


def test_serve_works_on_the_loop_that_is_running(app: Latchwork) -> None:
    loops: list[type] = []
    ran = threading.Event()

    @app.job("look")
    async def look(context: JobContext) -> None:
        loops.append(await kind_of_loop())
        ran.set()

    app.client.enqueue(look.bind())
    worker = app.worker(poll_seconds=0.05)

    async def serve() -> type:
        serving = asyncio.create_task(worker.serve())
        await asyncio.to_thread(ran.wait, PATIENCE_SECONDS)
        worker.stop()
        await serving
        return await kind_of_loop()

    assert asyncio.run(serve()) is loops[0]
    app.database.dispose()


@pytest.mark.parametrize("without", ["", "sys.modules['uvloop'] = None"])
def test_a_signal_stops_an_idle_node_on_either_loop(app: Latchwork, without: str) -> None:
    url = app.engine.url.render_as_string(hide_password=False)
    code = f"import sys; {without}\nfrom latchwork import Latchwork\n"
    code += f"Latchwork({url!r}).worker(poll_seconds=60).run()"
    node = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not app.monitor.nodes():
        assert time.monotonic() < deadline, "the node did not introduce itself"
        time.sleep(0.02)
    node.send_signal(signal.SIGTERM)
    assert node.wait(PATIENCE_SECONDS) == 0

"""A node works on uvloop where that is installed and on asyncio's own loop elsewhere."""

import asyncio
import signal
import subprocess
import sys
import threading
import time

import pytest
import uvloop

from latchwork import JobContext, Latchwork
from latchwork.worker.shutdown import run_loop
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

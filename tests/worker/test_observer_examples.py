"""The examples of docs/observers.md, run as they stand."""

import json
import logging
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from latchwork import JobContext, JobState, Latchwork, RetryPolicy
from tests.packaging.files import ROOT
from tests.worker.conftest import PATIENCE_SECONDS, Start

ONCE = RetryPolicy(max_attempts=1)


class Receiver:
    """A web server that refuses its first request and keeps the others."""

    def __init__(self) -> None:
        self.met: list[tuple[dict[str, Any], str]] = []
        self.refused: list[str] = []
        self.arrived = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                key = self.headers["Idempotency-Key"]
                if not receiver.refused:
                    receiver.refused.append(key)
                    self.send_response(503)
                else:
                    receiver.met.append((body, key))
                    self.send_response(204)
                    receiver.arrived.set()
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever)
    thread.start()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
    thread.join()


def test_the_examples_post_to_a_webhook_and_write_to_a_log(
    database_url: str,
    start: Start,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("LATCHWORK_DATABASE_URL", database_url)
    monkeypatch.setenv("PAGER_URL", receiver.url)
    page = (ROOT / "docs/observers.md").read_text()
    names: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(example, names)  # noqa: S102 - our own page
    app: Latchwork = names["app"]

    @app.job("send", retry=ONCE)
    def send(context: JobContext) -> None:
        raise ConnectionError("no route")

    lines: list[str] = []
    with caplog.at_level(logging.INFO, "jobs"):
        job = app.client.enqueue(send.bind())
        start(app)
        assert receiver.arrived.wait(PATIENCE_SECONDS)
        wanted = [JobState.SCHEDULED, JobState.LEASED, JobState.DEAD_LETTERED]
        for _ in range(200):
            lines = [record.message for record in caplog.records if record.name == "jobs"]
            if len(lines) >= len(wanted):
                break
            threading.Event().wait(0.05)
    ((body, key),) = receiver.met
    assert body == {"job": str(job), "state": "dead_lettered"}
    assert receiver.refused == [key]
    assert [line.rpartition(": ")[2] for line in lines] == [state.label for state in wanted]

"""``/metrics`` is off unless turned on and has its own permission; ``/ready`` says ok or not."""

from collections.abc import Collection, Iterator

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from latchwork.application import Latchwork
from latchwork.settings import Settings
from latchwork.store.engines import writing
from latchwork.store.migrate import VERSION_TABLE
from latchwork_console.console import Permission
from latchwork_console.server import create_console
from tests.console.worlds import ADDRESS


def client_of(app: Latchwork, *permissions: Permission) -> TestClient:
    def have(_: object) -> Collection[Permission]:
        return permissions

    return TestClient(create_console(app, permissions=have), base_url=ADDRESS)


@pytest.fixture
def measured(sqlite_url: str) -> Iterator[Latchwork]:
    app = Latchwork(sqlite_url, settings=Settings(console_metrics=True))
    yield app
    app.database.dispose()


def test_metrics_are_off_by_default(sqlite_url: str) -> None:
    app = Latchwork(sqlite_url)
    assert client_of(app, Permission.METRICS).get("/metrics").status_code == 404
    app.database.dispose()


def test_metrics_need_their_own_permission(measured: Latchwork) -> None:
    others = set(Permission) - {Permission.METRICS}
    assert client_of(measured, *others).get("/metrics").status_code == 403
    answer = client_of(measured, Permission.METRICS).get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "latchwork_nodes 0.0" in answer.text


def test_metrics_without_the_extra_say_what_to_install(
    measured: Latchwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    answer = client_of(measured, Permission.METRICS).get("/metrics")
    assert answer.status_code == 503
    assert "latchwork[metrics]" in answer.text


def test_ready_needs_no_permission_and_says_nothing_but_ok(measured: Latchwork) -> None:
    answer = client_of(measured).get("/ready")
    assert (answer.status_code, answer.text) == (200, "ok")


@pytest.mark.no_audit("its schema's version is taken away")
def test_ready_refuses_a_schema_of_another_version(measured: Latchwork) -> None:
    with writing(measured.database.engine) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))
    answer = client_of(measured).get("/ready")
    assert (answer.status_code, answer.text) == (503, "unavailable")


def test_ready_refuses_while_the_database_cannot_be_reached() -> None:
    app = Latchwork("postgresql://nobody@127.0.0.1:1/nothing")
    answer = client_of(app).get("/ready")
    assert (answer.status_code, answer.text) == (503, "unavailable")
    app.database.dispose()

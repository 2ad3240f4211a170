"""A wrong command is one clear line on standard error and exit code 2."""

from pathlib import Path

import pytest

from tests.cli.conftest import Call

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

WRONG = {
    "no command": ((), "Missing command."),
    "an unknown command": (("nope",), "No such command 'nope'"),
    "an unknown option": (("jobs", "list", "--nope"), "No such option: --nope"),
    "an unknown state": (("jobs", "list", "--state", "asleep"), "'asleep' is not one of"),
    "a limit of nothing": (("jobs", "list", "--limit", "0"), "limit must be at least 1"),
    "a page that is none": (("jobs", "list", "--page", "x"), "page is not a place in a listing"),
    "a queue that cannot be": (("jobs", "list", "--queue", "\x07"), "queue"),
    "an id that is none": (("jobs", "show", "12"), "'ID'"),
    "no ids": (("requeue",), "Missing argument 'ID...'"),
    "an empty actor": (("cancel", f"{0:032x}", "--actor", ""), "actor"),
    "a token that is none": (("log", "--from", "12~"), "token is not a place"),
    "a database of another kind": (
        ("jobs", "list", "--database", "mysql://x"),
        "must begin with sqlite:// or postgresql://",
    ),
    "no database address": (("jobs", "list", "--database", "shop"), "is not a database address"),
    "an application without a name": (("worker", "shop"), "write MODULE:APP, as in shop:app"),
    "an unknown module": (("worker", "nowhere:app"), "No module named 'nowhere'"),
    "an unknown name": (("worker", "os:app"), "must be a Latchwork application, but is nothing"),
    "another object": (("console", "os:path"), "must be a Latchwork application, but is a module"),
}


@pytest.mark.parametrize(("arguments", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_one_line_says(latchwork: Call, arguments: tuple[str, ...], sentence: str) -> None:
    done = latchwork(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("latchwork: ")
    assert done.err.count("\n") == 1
    assert sentence in done.err


def test_no_database_at_all(latchwork: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LATCHWORK_DATABASE_URL")
    done = latchwork("jobs", "list")
    assert (done.code, "LATCHWORK_DATABASE_URL" in done.err) == (2, True)


def test_a_wrong_setting_is_named(latchwork: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LATCHWORK_POOL_SIZE", "many")
    done = latchwork("jobs", "list")
    assert done.code == 2
    assert done.err.startswith("latchwork: LATCHWORK_POOL_SIZE: ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--slots", "0"), "slots must be"),
        (("--lease-seconds", "-1"), "lease_seconds must be"),
        (("--heartbeat-seconds", "50"), "heartbeat_seconds must be at most a third"),
        (("--queues", "a,,b"), "queue"),
        (("--processes", "0"), "--processes"),
    ],
)
def test_a_worker_that_cannot_be(
    latchwork: Call,
    shop: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, str],
    sentence: str,
) -> None:
    monkeypatch.chdir(shop)
    done = latchwork("worker", "shop:app", *options)
    assert done.code == 2
    assert sentence in done.err


def test_a_module_that_fails_tells_why(
    latchwork: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_shop.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    done = latchwork("worker", "broken_shop:app")
    assert done.code == 2
    assert "cannot import 'broken_shop': ZeroDivisionError: division by zero" in done.err


def test_the_console_listens_on_this_machine_only(
    latchwork: Call, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    done = latchwork("console", "shop:app", "--host", "0.0.0.0")  # noqa: S104 - it is refused
    assert done.code == 1
    assert "has no sign-in yet" in done.err


def test_a_database_that_is_away_is_one_line(latchwork: Call) -> None:
    done = latchwork("jobs", "list", "--database", "postgresql://127.0.0.1:1/nowhere")
    assert done.code == 1
    assert done.err.startswith("latchwork: the database cannot be reached")
    assert done.err.count("\n") == 1

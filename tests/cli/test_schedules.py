"""``latchwork schedules`` and ``latchwork manifest``, as people and programs read them."""

import json
from pathlib import Path

import pytest

from latchwork import JobContext, Latchwork
from tests.cli.conftest import Call


@pytest.fixture(autouse=True)
def _nightly(app: Latchwork) -> None:
    @app.job("backup")
    def backup(context: JobContext) -> None:
        """Only enqueued here."""

    app.client.set_schedule("nightly", backup.bind(), cron="30 2 * * *", zone="Europe/Berlin")


def test_schedules_are_listed_with_their_next_tick(latchwork: Call) -> None:
    (shape,) = latchwork("schedules", "list", "--json").json
    assert (shape["id"], shape["zone"], shape["words"]) == (
        "nightly", "Europe/Berlin", "At 02:30 every day",
    )  # fmt: skip
    assert len(shape["next_ticks"]) == 5
    assert "nightly" in latchwork("schedules", "list").out


def test_a_schedule_is_previewed_triggered_and_shown(latchwork: Call) -> None:
    preview = latchwork("schedules", "trigger", "nightly", "--preview", "--json")
    assert preview.json["allowed"] is True
    done = latchwork("schedules", "trigger", "nightly", "--actor", "ann", "--json")
    assert (done.code, done.json["outcome"]) == (0, "triggered")
    refused = latchwork("schedules", "trigger", "nightly")
    assert refused.code == 1
    assert done.json["job_id"] in refused.err
    shown = latchwork("schedules", "show", "nightly", "--json").json
    (tick,) = shown["ticks"]
    assert (tick["outcome"], tick["job_id"]) == ("triggered", done.json["job_id"])
    assert "triggered by an operator" in latchwork("schedules", "show", "nightly").out


@pytest.mark.parametrize("command", ["show", "trigger"])
def test_an_unknown_schedule_is_one_line_and_exit_code_1(latchwork: Call, command: str) -> None:
    done = latchwork("schedules", command, "other")
    assert (done.code, done.out) == (1, "")
    assert done.err == "latchwork: schedule other is not known here\n"


def test_a_manifest_is_written_checked_and_its_changes_told(
    latchwork: Call, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop)
    monkeypatch.syspath_prepend(shop)
    assert latchwork("manifest", "write", "shop:app").code == 0
    assert latchwork("manifest", "check", "shop:app").code == 0
    path = shop / "latchwork-manifest.json"
    manifest = json.loads(path.read_text())
    manifest["jobs"]["gone"] = {}
    path.write_text(json.dumps(manifest))
    done = latchwork("manifest", "check", "shop:app", "--json")
    assert done.code == 1
    assert done.json["changes"] == [
        "gone: the job type is gone: breaks stored payloads (they end Quarantined)"
    ]

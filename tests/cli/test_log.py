"""``latchwork log`` prints the transition log, from any place, and follows it."""

import json
import signal
import subprocess
from collections.abc import Callable

from latchwork.decisions.states import JobState
from tests.cli.conftest import Call
from tests.store.builders import Store

S = JobState


def test_every_row_is_printed_with_its_token(latchwork: Call, store: Store) -> None:
    job_id = store.in_state(S.DEAD_LETTERED)
    rows = [json.loads(line) for line in latchwork("log", "--json").out.splitlines()]
    assert [row["state"] for row in rows] == ["scheduled", "leased", "dead_lettered"]
    assert {row["job_id"] for row in rows} == {str(job_id)}
    assert [row["token"] for row in rows] == [str(row["position"]) for row in rows]


def test_a_token_is_a_place_to_go_on_from(latchwork: Call, store: Store) -> None:
    store.in_state(S.SUCCEEDED)
    rows = [json.loads(line) for line in latchwork("log", "--json").out.splitlines()]
    rest = latchwork("log", "--from", rows[0]["token"], "--json").out.splitlines()
    assert [json.loads(line) for line in rest] == rows[1:]
    assert latchwork("log", "--from", rows[-1]["token"]).out == ""


def test_people_get_a_line_per_row(latchwork: Call, store: Store) -> None:
    job_id = store.in_state(S.SUCCEEDED)
    born, claimed, ended = latchwork("log").out.splitlines()
    assert f"{job_id}  pack  enqueued -> Scheduled  attempt 0" in born
    assert "Scheduled -> Leased  attempt 1" in claimed
    assert "Leased -> Succeeded  attempt 1" in ended


def test_following_shows_what_comes_and_ends_cleanly(
    start: Callable[..., "subprocess.Popen[str]"], store: Store
) -> None:
    first = store.enqueue()
    process = start("log", "--follow", "--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["job_id"] == str(first)
    second = store.enqueue()
    assert json.loads(process.stdout.readline())["job_id"] == str(second)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0

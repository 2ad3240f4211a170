"""``latchwork requeue`` and ``cancel`` act, say what they met, and leave an actor behind."""

import getpass
from uuid import uuid4

import pytest

from latchwork.decisions.states import JobState
from tests.cli.conftest import Call
from tests.store.builders import Store

S = JobState


@pytest.mark.parametrize("state", [S.DEAD_LETTERED, S.QUARANTINED])
def test_requeue_brings_a_job_back(latchwork: Call, store: Store, state: JobState) -> None:
    job_id = store.in_state(state)
    done = latchwork("requeue", job_id, "--actor", "anna", "--json")
    assert done.code == 0
    assert done.json == [{"id": str(job_id), "outcome": "requeued", "state": state.value}]
    assert store.state(job_id) is S.SCHEDULED
    assert [row.actor for row in store.audit_rows()] == ["anna"]


def test_a_refused_requeue_tells_the_state(latchwork: Call, store: Store) -> None:
    job_id = store.in_state(S.SUCCEEDED)
    done = latchwork("requeue", job_id)
    assert done.code == 1
    assert done.err == f"latchwork: job {job_id} is Succeeded: refused\n"
    assert store.audit_rows() == []


def test_cancel_stops_a_waiting_job_and_asks_a_running_one(latchwork: Call, store: Store) -> None:
    waiting, running = store.in_state(S.SCHEDULED), store.in_state(S.LEASED)
    done = latchwork("cancel", waiting, running)
    assert done.code == 0
    assert done.out.splitlines() == [
        f"{waiting} cancelled",
        f"{running} asked to stop; its worker hears of it with the next heartbeat",
    ]
    assert store.states(waiting, running) == [S.CANCELLED, S.LEASED]


def test_the_others_are_done_although_one_is_unknown(latchwork: Call, store: Store) -> None:
    unknown, known = uuid4(), store.in_state(S.DEAD_LETTERED)
    done = latchwork("requeue", unknown, known, "--json")
    assert done.code == 1
    assert [one["outcome"] for one in done.json] == ["not_found", "requeued"]
    assert done.json[0]["state"] is None


def test_an_unknown_job_is_told_in_one_line(latchwork: Call) -> None:
    unknown = uuid4()
    done = latchwork("cancel", unknown)
    assert (done.code, done.err) == (1, f"latchwork: job {unknown} is not stored here\n")


def test_the_user_of_the_shell_is_the_actor(latchwork: Call, store: Store) -> None:
    job_id = store.in_state(S.SCHEDULED)
    latchwork("cancel", job_id)
    assert [row.actor for row in store.audit_rows()] == [f"cli:{getpass.getuser()}"]

"""``latchwork workflows`` shows them and acts on them, as text and as JSON."""

from uuid import UUID, uuid4

import pytest

from latchwork.decisions.states import JobState
from tests.cli.conftest import Call
from tests.store.builders import Store
from tests.store.workflow_scene import Flow

S = JobState


@pytest.fixture
def flow(store: Store) -> Flow:
    return Flow(store)


def test_list_tells_status_and_steps_newest_first(latchwork: Call, flow: Flow) -> None:
    failed, running = flow.start(a="", b="a"), flow.start(a="")
    flow.end(failed.jobs["a"], S.DEAD_LETTERED)
    listed = latchwork("workflows", "list", "--json").json
    assert [(one["id"], one["status"]) for one in listed["workflows"]] == [
        (str(running.id), "running"), (str(failed.id), "failed")
    ]  # fmt: skip
    assert listed["workflows"][1]["counts"] == {"cancelled": 1, "dead_lettered": 1}
    only = latchwork("workflows", "list", "--status", "failed").out
    assert str(failed.id) in only
    assert "1 Cancelled, 1 Dead-Lettered" in only
    assert str(running.id) not in only


def test_list_goes_on_with_the_cursor_of_the_page_before(latchwork: Call, flow: Flow) -> None:
    older, newer = flow.start(a="").id, flow.start(a="").id
    first = latchwork("workflows", "list", "--limit", 1, "--name", "order", "--json").json
    assert [one["id"] for one in first["workflows"]] == [str(newer)]
    more = latchwork("workflows", "list", "--limit", 1, "--page", first["next"])
    assert str(older) in more.out
    assert latchwork("workflows", "list", "--page", "x").code == 2


def test_show_tells_steps_and_what_they_wait_for(latchwork: Call, flow: Flow) -> None:
    started = flow.start(a="", b="a")
    said = latchwork("workflows", "show", started.id)
    assert said.code == 0
    assert "Awaiting Parent" in said.out
    shape = latchwork("workflows", "show", started.id, "--json").json
    assert [member["step"] for member in shape["members"]] == ["a", "b"]
    assert shape["edges"] == [
        {"parent": str(started.jobs["a"]), "child": str(started.jobs["b"]), "open": True}
    ]
    assert (shape["status"], shape["restarted_as"]) == ("running", [])


def test_cancel_retry_and_restart_say_what_they_did(latchwork: Call, flow: Flow) -> None:
    started = flow.start(a="", b="a", c="a")
    flow.end(started.jobs["a"], S.DEAD_LETTERED)
    done = latchwork(
        "workflows", "retry", started.id, "--scope", "all", "--actor", "anna", "--json"
    )
    assert done.json == {"id": str(started.id), "outcome": "retried", "moved": 3, "live": []}
    refused = latchwork("workflows", "retry", started.id)
    assert refused.code == 1
    assert "a is Scheduled" in refused.err
    cancelled = latchwork("workflows", "cancel", started.id, "--actor", "ben")
    assert cancelled.out == f"{started.id} 3 cancelled, 0 running and asked to stop\n"
    assert latchwork("workflows", "cancel", started.id, "--json").json["outcome"] == "refused"
    restarted = latchwork("workflows", "restart", started.id, "--json").json
    assert restarted["outcome"] == "restarted"
    new = flow.monitor.workflow(UUID(restarted["workflow_id"]))
    assert new
    assert new.workflow.restarted_from == started.id
    actors = {row.action: row.actor for row in flow.store.audit_rows()}
    assert (actors["retry_workflow"], actors["cancel_workflow"]) == ("anna", "ben")
    assert actors["restart_workflow"].startswith("cli:")


@pytest.mark.parametrize("verb", ["show", "cancel", "retry", "restart"])
def test_an_unknown_workflow_is_said_so(latchwork: Call, flow: Flow, verb: str) -> None:
    unknown = uuid4()
    done = latchwork("workflows", verb, unknown)
    assert done.code == 1
    assert done.err == f"latchwork: workflow {unknown} is not stored here\n"
    assert flow.store.audit_rows() == []


def test_a_wrong_scope_is_a_wrong_command(latchwork: Call, flow: Flow) -> None:
    started = flow.start(a="")
    assert latchwork("workflows", "retry", started.id, "--scope", "some").code == 2

"""``latchwork jobs``, ``queues``, ``nodes`` and ``migrate`` say what is there."""

from uuid import uuid4

import pytest

from latchwork.application import Latchwork
from latchwork.decisions.states import JobState
from tests.cli.conftest import Call
from tests.store.builders import Store

JOB_KEYS = {
    "id", "wire_name", "queue", "state", "attempt", "claim_number", "enqueued_at", "due_at",
    "owner", "lease_expires_at", "parents_remaining", "cancel_pending", "cancel_requested_at",
    "cancel_delivered_at", "terminal_at", "cause", "tags",
}  # fmt: skip
S = JobState


def test_a_job_is_listed_with_all_its_facts(latchwork: Call, store: Store) -> None:
    job_id = store.enqueue(queue="mail", tags=("vip", ("tenant", "a")))
    listing = latchwork("jobs", "list", "--json").json
    [job] = listing["jobs"]
    assert job.keys() >= JOB_KEYS
    assert job["id"] == str(job_id)
    assert job["state"] == "scheduled"
    assert job["due_at"] == "2026-01-01T00:00:00.000000Z"
    assert job["tags"] == ["vip", ["tenant", "a"]]
    assert (listing["next"], listing["previous"]) == (None, None)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--state", "dead_lettered"),
        ("--queue", "mail"),
        ("--wire-name", "post"),
        ("--tag", "vip"),
        ("--tag", "tenant=a"),
        ("--tag", "=a=b"),
    ],
)
def test_a_listing_is_filtered(latchwork: Call, store: Store, option: str, value: str) -> None:
    store.enqueue()
    wanted = store.in_state(
        S.DEAD_LETTERED,
        queue="mail",
        wire_name="post",
        tags=("vip", ("tenant", "a"), "a=b"),
    )
    listing = latchwork("jobs", "list", option, value, "--json").json
    assert [job["id"] for job in listing["jobs"]] == [str(wanted)]


def test_several_states_are_listed_together(latchwork: Call, store: Store) -> None:
    for state in JobState:
        store.in_state(state)
    states = ("--state", "succeeded", "--state", "quarantined")
    listing = latchwork("jobs", "list", *states, "--json").json
    assert [job["state"] for job in listing["jobs"]] == ["quarantined", "succeeded"]


def test_pages_follow_each_other(latchwork: Call, store: Store) -> None:
    newest_first = [str(store.enqueue()) for _ in range(3)][::-1]
    first = latchwork("jobs", "list", "--limit", 2, "--json").json
    second = latchwork("jobs", "list", "--page", first["next"], "--json").json
    assert [job["id"] for job in first["jobs"] + second["jobs"]] == newest_first
    assert second["next"] is None


def test_people_get_a_table(latchwork: Call, store: Store) -> None:
    job_id = store.in_state(S.DEAD_LETTERED)
    done = latchwork("jobs", "list")
    assert f"{job_id}  Dead-Lettered  pack" in done.out
    assert latchwork("jobs", "list", "--queue", "none").out == "nothing to show\n"


def test_a_job_is_shown_with_payload_output_dependencies_and_history(
    latchwork: Call, store: Store
) -> None:
    parent = store.enqueue(payload='{"n":1}')
    child = store.enqueue(parent)
    store.end(parent, S.SUCCEEDED, output='"done"')
    shown = latchwork("jobs", "show", parent, "--json").json
    assert shown.keys() >= JOB_KEYS
    assert (shown["payload"], shown["output"]) == ('{"n":1}', '"done"')
    assert [one["id"] for one in shown["children"]] == [str(child)]
    path = [row["state"] for row in shown["transitions"]]
    assert path == ["scheduled", "leased", "succeeded"]
    text = latchwork("jobs", "show", parent).out
    assert "Succeeded" in text
    assert str(child) in text


def test_an_unknown_job_is_told_in_one_line(latchwork: Call) -> None:
    unknown = uuid4()
    done = latchwork("jobs", "show", unknown)
    assert done.code == 1
    assert done.err == f"latchwork: job {unknown} is not stored here\n"


def test_queues_show_their_depth(latchwork: Call, store: Store) -> None:
    store.in_state(S.SUCCEEDED, queue="mail")
    [queue] = latchwork("queues", "list", "--json").json
    assert (queue["name"], queue["counts"]["succeeded"]) == ("mail", 1)
    assert "mail" in latchwork("queues", "list").out


def test_there_are_no_nodes_yet(latchwork: Call) -> None:
    assert latchwork("nodes", "list", "--json").json == []
    assert latchwork("nodes", "list").out == "nothing to show\n"


def test_migrate_brings_up_to_date_and_checks(latchwork: Call, app: Latchwork) -> None:
    assert latchwork("migrate").code == 0
    assert latchwork("migrate", "--check").out == "the schema is up to date\n"


def test_version_is_printed(latchwork: Call) -> None:
    assert latchwork("version").out.count(".") == 2

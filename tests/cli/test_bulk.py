"""``latchwork failures`` and ``latchwork operations``: no node is needed to end it."""

from uuid import uuid4

from latchwork.decisions.states import JobState
from latchwork.store.moves import Cause
from tests.cli.conftest import Call
from tests.store.builders import Store

S = JobState


def fail(store: Store, text: str = "order 1 is gone", **given: str) -> object:
    """A job that failed for good."""
    job_id = store.enqueue(**given)
    cause = Cause("attempts_exhausted", "KeyError", text)
    store.end(job_id, S.DEAD_LETTERED, cause=cause)
    return job_id


def test_failures_are_listed_by_cause(latchwork: Call, store: Store) -> None:
    fail(store, "order 1 is gone")
    fail(store, "order 2 is gone")
    (group,) = latchwork("failures", "list", "--json").json["groups"]
    assert (group["count"], group["message"]) == (2, "order <n> is gone")
    assert group["key"] in latchwork("failures", "list").out


def test_one_of_a_cause_goes_first_and_the_rest_follows(latchwork: Call, store: Store) -> None:
    for _ in range(3):
        fail(store)
    (group,) = latchwork("failures", "list", "--json").json["groups"]
    begun = latchwork("failures", "requeue", group["key"], "--json").json
    assert (begun["state"], begun["done"], begun["total"]) == ("waiting", 1, 3)
    done = latchwork("operations", "continue", begun["id"])
    assert done.code == 0
    assert "finished" in done.out
    assert store.count(S.SCHEDULED) == 3


def test_all_jobs_of_a_filter_are_requeued(latchwork: Call, store: Store) -> None:
    fail(store, wire_name="pack")
    other = fail(store, wire_name="send")
    done = latchwork(
        "operations", "requeue", "--state", "dead_lettered", "--wire-name", "pack",
        "--actor", "anna", "--json",
    )  # fmt: skip
    assert (done.json["state"], done.json["outcomes"]) == ("finished", {"requeued": 1})
    assert store.state(other) is S.DEAD_LETTERED  # type: ignore[arg-type]
    assert {row.actor for row in store.audit_rows()} == {"anna"}
    shown = latchwork("operations", "show", done.json["id"], "--json").json
    assert [member["outcome"] for member in shown["members"]] == ["requeued"]
    assert len(latchwork("operations", "list", "--json").json) == 1


def test_all_jobs_of_a_filter_are_cancelled(latchwork: Call, store: Store) -> None:
    store.enqueue(queue="q")
    store.enqueue(queue="q")
    done = latchwork("operations", "cancel", "--queue", "q")
    assert done.code == 0
    assert store.count(S.CANCELLED) == 2


def test_all_jobs_there_are_must_be_asked_for_in_so_many_words(
    latchwork: Call, store: Store
) -> None:
    store.enqueue()
    done = latchwork("operations", "cancel")
    assert (done.code, store.count(S.SCHEDULED)) == (2, 1)
    assert "--everything" in done.err
    assert latchwork("operations", "cancel", "--everything").code == 0
    assert store.count(S.CANCELLED) == 1


def test_what_is_unknown_or_over_is_told_in_one_line(latchwork: Call, store: Store) -> None:
    unknown = uuid4()
    for words in (("show",), ("continue",), ("stop",)):
        done = latchwork("operations", *words, unknown)
        assert (done.code, done.err) == (
            1,
            f"latchwork: operation {unknown} is not stored here\n",
        )
    assert latchwork("failures", "requeue", "nothing").code == 1
    over = latchwork("operations", "cancel", "--queue", "q", "--json").json["id"]
    assert "refused" in latchwork("operations", "stop", over).err

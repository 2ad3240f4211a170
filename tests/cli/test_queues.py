"""``latchwork queues``, ``audit`` and ``jobs tags``."""

import getpass
from collections.abc import Mapping, Sequence

import pytest

from latchwork.cli.serving import _served
from latchwork.errors import InvalidValue
from tests.cli.conftest import Call
from tests.store.builders import Store


def test_a_queue_is_paused_and_resumed(latchwork: Call, store: Store) -> None:
    store.enqueue(queue="mail")
    done = latchwork("queues", "pause", "mail", "later")
    assert (done.code, done.out) == (0, "mail paused\nlater paused\n")
    assert store.claim("mail") == []
    again = latchwork("queues", "pause", "mail", "--json")
    assert again.json[0]["outcome"] == "unchanged"
    assert again.json[0]["paused_by"] == f"cli:{getpass.getuser()}"
    assert latchwork("queues", "resume", "mail").out == "mail resumed\n"
    assert len(store.claim("mail")) == 1


def test_a_limit_is_set_and_lifted(latchwork: Call, store: Store) -> None:
    done = latchwork("queues", "limit", "mail", 3, "--actor", "ann", "--json")
    assert done.json == [
        {
            "queue": "mail", "outcome": "limited", "paused_at": None, "paused_by": None,
            "concurrency_limit": 3,
        }
    ]  # fmt: skip
    assert latchwork("queues", "limit", "mail", "none").out == "mail has no limit any more\n"
    assert latchwork("queues", "list").out.startswith("queue")


@pytest.mark.parametrize("limit", ["0", "many", "2147483648", "1.5", ""])
def test_a_limit_that_is_none_is_one_line_on_standard_error(
    latchwork: Call, store: Store, limit: str
) -> None:
    done = latchwork("queues", "limit", "mail", limit)
    assert done.code == 2
    assert done.err.startswith("latchwork: limit must be")
    assert done.err.count("\n") == 1
    assert store.audit_rows() == []


def test_a_preview_changes_nothing(latchwork: Call, store: Store) -> None:
    store.enqueue(queue="mail")
    before = store.dump()
    done = latchwork("queues", "pause", "mail", "--preview")
    assert done.out.startswith("mail: None of its jobs is claimed any more: 1 job due will wait")
    latchwork("queues", "limit", "mail", 2, "--preview")
    assert not latchwork("queues", "resume", "mail", "--preview", "--json").json[0]["allowed"]
    assert store.dump() == before


def test_the_audit_trail_is_listed_and_filtered(latchwork: Call, store: Store) -> None:
    latchwork("queues", "pause", "mail", "--actor", "ann")
    latchwork("queues", "limit", "print", 2, "--actor", "ben")
    found = latchwork("audit", "--json").json
    assert [(row["actor"], row["action"], row["subject"]) for row in found["audit"]] == [
        ("ben", "set_limit", "print"), ("ann", "pause_queue", "mail"),
    ]  # fmt: skip
    assert len(latchwork("audit", "--actor", "ann", "--json").json["audit"]) == 1
    assert "more: --before 2" in latchwork("audit", "--limit", 1).out
    assert latchwork("audit", "--before", 1).out == "nothing to show\n"


def test_tags_are_listed_by_how_often_they_are_used(latchwork: Call, store: Store) -> None:
    for _ in range(2):
        store.enqueue(tags=(("customer", "7"),))
    store.enqueue(tags=("nightly",))
    assert latchwork("jobs", "tags", "--json").json == [
        {"tag": ["customer", "7"], "jobs": 2, "jobs_is_capped": False},
        {"tag": "nightly", "jobs": 1, "jobs_is_capped": False},
    ]
    assert "customer=7" in latchwork("jobs", "tags", "cust").out


@pytest.mark.parametrize(
    ("option", "served"),
    [
        (None, None),
        ("a", ("a",)),
        ("a, b", ("a", "b")),
        ("a=3, b=1", {"a": 3, "b": 1}),
        ("x=y=2", {"x=y": 2}),
    ],
)
def test_queues_are_an_order_or_weights(
    option: str | None, served: Sequence[str] | Mapping[str, int] | None
) -> None:
    assert _served(option) == served


@pytest.mark.parametrize("option", ["a=3,b", "a=x", "a=-1", "a=1.5", "a="])
def test_weights_are_whole_numbers_for_every_queue(option: str) -> None:
    with pytest.raises(InvalidValue):
        _served(option)

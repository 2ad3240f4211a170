"""Cascades: one transaction, and as many statements for ten thousand jobs as for ten."""

from typing import Any

import pytest

from latchwork.decisions.states import JobState
from tests.store.builders import FAILURE, LEASE_SECONDS, Store, counted_statements

S = JobState
WIDE = 10_000
DEEP = 5_000
SIZES = (10, 100, WIDE)
COMMON = {"queue": "cascade"}


def fan(store: Store, size: int) -> Any:
    """A root with ``size`` children; returns the root."""
    root = store.new_job()
    children = [store.new_job(root.id, **COMMON) for _ in range(size)]
    store.enqueue_all([root, *children])
    return root.id


def chain(store: Store, size: int) -> Any:
    """A root with ``size`` jobs below each other; returns the root."""
    jobs = [store.new_job()]
    for _ in range(size):
        jobs.append(store.new_job(jobs[-1].id, **COMMON))
    store.enqueue_all(jobs)
    return jobs[0].id


def fail(store: Store, root: Any) -> None:
    store.finish(store.hold(root), FAILURE)


def cancel(store: Store, root: Any) -> None:
    store.cancel(root)


def expire(store: Store, root: Any) -> None:
    store.wait(LEASE_SECONDS)
    store.sweep()


@pytest.mark.timeout(300)
def test_ending_the_root_takes_the_same_statements_at_any_width(store: Store) -> None:
    counts: dict[str, set[int]] = {}
    for end in (cancel, fail, expire):
        for size in SIZES if end is fail else SIZES[:2]:
            root = fan(store, size)
            if end is not cancel:
                store.lease(root)
            cancelled = store.count(S.CANCELLED)
            with counted_statements(store.database) as statements:
                end(store, root)
            counts.setdefault(end.__name__, set()).add(len(statements))
            assert store.count(S.CANCELLED) - cancelled == size + (end is cancel)
    assert all(len(of_end) == 1 for of_end in counts.values()), counts


@pytest.mark.timeout(300)
def test_ending_the_root_takes_the_same_statements_at_any_depth(store: Store) -> None:
    counts = set()
    for size in (10, 100, DEEP):
        root = chain(store, size)
        cancelled = store.count(S.CANCELLED)
        with counted_statements(store.database) as statements:
            cancel(store, root)
        counts.add(len(statements))
        assert store.count(S.CANCELLED) - cancelled == size + 1
    assert len(counts) == 1


def test_releasing_children_takes_the_same_statements_at_any_width(store: Store) -> None:
    counts = set()
    for size in (10, 100, 1_000):
        root = fan(store, size)
        hold = store.lease(root)
        with counted_statements(store.database) as statements:
            store.finish(hold)
        counts.add(len(statements))
        assert len(store.claim("cascade", limit=size + 1)) == size
    assert len(counts) == 1

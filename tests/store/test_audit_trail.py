"""The audit trail and the tags in use, as an operator looks through them."""

from typing import Any

import pytest

from latchwork.audit_views import AuditFilter
from latchwork.errors import InvalidValue, ValueTooLarge
from latchwork.monitor import Monitor
from latchwork.operations import Operator
from latchwork.tag_views import TagFacet
from latchwork.views import BoundedCount
from tests.store.builders import Store


@pytest.fixture
def monitor(store: Store) -> Monitor:
    return Monitor(store.database)


@pytest.fixture
def acted(store: Store) -> Store:
    """Ann and Ben take turns at two queues; Ann cancels a job."""
    operator = Operator(store.database)
    for number in range(6):
        actor, queue = ("ann", "mail") if number % 2 else ("ben", "print")
        operator.set_limit(queue, number + 1, actor=actor)
    store.cancel(store.enqueue(), actor="ann")
    return store


def every_page(monitor: Monitor, chosen: AuditFilter, limit: int) -> list[int]:
    page = monitor.audit_page(chosen, limit=limit)
    met = [row.id for row in page.rows]
    while page.older is not None:
        page = monitor.audit_page(chosen, before=page.older, limit=limit)
        met += [row.id for row in page.rows]
    back = page
    while back.newer is not None:
        back = monitor.audit_page(chosen, after=back.newer, limit=limit)
    assert [row.id for row in back.rows][: len(met)] == met[: len(back.rows)]
    return met


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (AuditFilter(), [7, 6, 5, 4, 3, 2, 1]),
        (AuditFilter(actor="ann"), [7, 6, 4, 2]),
        (AuditFilter(action="cancel"), [7]),
        (AuditFilter(subject_kind="queue", subject="print"), [5, 3, 1]),
        (AuditFilter(subject="mail"), [6, 4, 2]),
        (AuditFilter(actor="ben", subject_kind="queue", subject="mail"), []),
    ],
)
@pytest.mark.parametrize("limit", [2, 3, 200])
def test_the_trail_is_filtered_and_paged_both_ways(
    acted: Store, monitor: Monitor, chosen: AuditFilter, expected: list[int], limit: int
) -> None:
    assert every_page(monitor, chosen, limit) == expected


def test_the_names_to_filter_by_are_those_of_late(acted: Store, monitor: Monitor) -> None:
    names = monitor.audit_names()
    assert names.actors == ("ann", "ben")
    assert names.actions == ("cancel", "set_limit")


@pytest.mark.parametrize("given", [{"after": 1, "before": 2}, {"before": -1}, {"limit": 0}])
def test_a_place_that_is_none_is_refused(monitor: Monitor, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        monitor.audit_page(**given)


def tagged(store: Store) -> None:
    for _ in range(3):
        store.enqueue(tags=("nightly", ("customer", "7")))
    store.enqueue(tags=(("customer", "70"), "Night%ly", "a_b", "axb"))


def test_the_most_frequent_tags_come_first_with_their_counts(
    store: Store, monitor: Monitor
) -> None:
    tagged(store)
    found = monitor.tags(limit=2)
    assert found == (
        TagFacet(("customer", "7"), BoundedCount(3)), TagFacet("nightly", BoundedCount(3)),
    )  # fmt: skip
    assert len(monitor.tags()) == 6


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("night", {"nightly", "Night%ly"}),
        ("NIGHTL", {"nightly"}),
        ("night%", {"Night%ly"}),
        ("a_", {"a_b"}),
        ("customer=7", {("customer", "7"), ("customer", "70")}),
        ("customer=70", {("customer", "70")}),
        ("/", set()),
        ("\\", set()),
    ],
)
def test_a_suggestion_begins_with_what_was_typed_whatever_it_means_to_sql(
    store: Store, monitor: Monitor, prefix: str, expected: set[object]
) -> None:
    tagged(store)
    assert {facet.tag for facet in monitor.tags(prefix)} == expected


def test_a_count_stops_at_its_bound(store: Store, monitor: Monitor) -> None:
    store.enqueue_all([store.new_job(queue="q", tags=("bulk",)) for _ in range(1_001)])
    (facet,) = monitor.tags("bulk")
    assert str(facet.jobs) == "1,000+"


def test_a_prefix_no_tag_can_have_is_refused(monitor: Monitor) -> None:
    with pytest.raises(ValueTooLarge):
        monitor.tags("x" * 322)
    with pytest.raises(InvalidValue):
        monitor.tags("a\0")

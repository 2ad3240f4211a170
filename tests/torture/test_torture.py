"""A few faults of every kind; `make prove` brings hundreds about. Red is always a bug."""

from collections.abc import Iterator

import pytest

from tests.postgres_server import PostgresInstance, postgres_instance
from tests.torture.kills import kill_batch
from tests.torture.outages import backend_batch, cut_batch, restart_batch
from tests.torture.proxy import OPERATIONS
from tests.torture.runs import Batch, empty_database

KILLS = 10
STOPS = 3
ONE_AT_EACH = len(OPERATIONS)

pytestmark = [pytest.mark.timeout(300), pytest.mark.undisturbed]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresInstance]:
    """One server for all of them, stopped and started again by one."""
    with postgres_instance() as instance:
        yield instance


def check(batch: Batch, faults: int) -> None:
    assert batch.findings == []
    assert batch.faults == faults


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_killed_and_frozen_nodes_lose_nothing_and_run_nothing_twice(
    server: PostgresInstance, kind: str
) -> None:
    with empty_database(kind, server) as url:
        check(kill_batch(url, KILLS, seed=1), KILLS)


def test_nodes_outlive_immediate_stops_in_the_middle_of_operations(
    server: PostgresInstance,
) -> None:
    with empty_database("postgres", server) as url:
        check(restart_batch(server, url, STOPS, seed=1), STOPS)


def test_nodes_outlive_terminated_back_ends_in_the_middle_of_each_operation(
    server: PostgresInstance,
) -> None:
    with empty_database("postgres", server) as url:
        check(backend_batch(url, ONE_AT_EACH, seed=1), ONE_AT_EACH)


def test_an_answer_lost_after_commit_is_asked_for_again_and_nothing_happens_twice(
    server: PostgresInstance,
) -> None:
    with empty_database("postgres", server) as url:
        check(cut_batch(url, ONE_AT_EACH, seed=1), ONE_AT_EACH)

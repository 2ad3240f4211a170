"""The audit passes a healthy store, and each of its checks can fail."""

from uuid import uuid4

import pytest
from sqlalchemy import Connection, insert

from latchwork.decisions.states import JobState
from latchwork.store import schema
from latchwork.store.database import Database
from tests.audit import (
    CHECKS,
    Check,
    a_claim_has_one_outcome,
    actions_are_audited,
    attempts_and_claims_are_counted,
    audit,
    cascades_are_logged_after_their_parents,
    children_follow_their_parents,
    counters_are_exact,
    latches_count_open_edges,
    log_rows_are_legal_moves,
    log_rows_follow_each_other,
    read_tables,
    states_have_their_columns,
    the_row_is_its_last_log_row,
)
from tests.store.planting import START, plant_edge, plant_job

S = JobState
planted = pytest.mark.no_audit("plants the violation that the audit must find")


def plant_healthy_jobs(connection: Connection) -> None:
    """1 succeeded and released 2, which runs; 3 waits for 2; 4 failed and cancelled 5."""
    queue = {"name": "default", "created_at": START}
    connection.execute(insert(schema.queues), queue)
    plant_job(connection, 1, S.SCHEDULED, S.LEASED, S.SUCCEEDED)
    plant_job(connection, 2, S.AWAITING_PARENT, S.SCHEDULED, S.LEASED)
    plant_job(connection, 3, S.AWAITING_PARENT, parents_remaining=1)
    failed = plant_job(connection, 4, S.SCHEDULED, S.LEASED, S.DEAD_LETTERED, cause_code="error")
    cause = {"cause_parent_id": failed, "cause_parent_state": S.DEAD_LETTERED}
    plant_job(connection, 5, S.AWAITING_PARENT, S.CANCELLED, **cause)
    plant_edge(connection, 1, 2, is_open=False)
    plant_edge(connection, 2, 3, is_open=True)
    plant_edge(connection, 4, 5, is_open=False)


def test_a_healthy_store_passes(database: Database) -> None:
    database.write(plant_healthy_jobs)
    assert database.read(audit) == []


JOBS = "UPDATE latchwork_jobs SET"
LOG = "UPDATE latchwork_transitions SET"
VIOLATIONS: dict[Check, dict[str, str]] = {
    the_row_is_its_last_log_row: {
        "the row has another state than its log": (
            f"{JOBS} state = 'quarantined' WHERE sequence = 4"
        ),
        "the row has another attempt than its log": (f"{JOBS} attempt = 0 WHERE sequence = 1"),
        "the next ordinal jumps": (f"{JOBS} next_ordinal = 9 WHERE sequence = 1"),
        "the row changed later than its log": (f"{JOBS} state_since = 0 WHERE sequence = 1"),
        "a job has no log": ("DELETE FROM latchwork_transitions WHERE job_sequence = 3"),
        "a log has no job": (f"{LOG} job_sequence = 99 WHERE job_sequence = 3"),
    },
    log_rows_are_legal_moves: {
        "a move is not in the table": (
            f"{LOG} state = 'succeeded' WHERE job_sequence = 2 AND ordinal = 1"
        ),
        "a birth has a previous state": (f"{LOG} previous_state = 'leased' WHERE ordinal = 0"),
        "an ended job came back without a requeue": (
            f"{LOG} previous_state = 'succeeded', state = 'scheduled' "
            "WHERE job_sequence = 2 AND ordinal = 1"
        ),
        "a move is told of another event": (f"{LOG} event = 'requeue' WHERE state = 'succeeded'"),
        "a success has a failure detail": (f"{LOG} failure_detail = 'x' WHERE state = 'succeeded'"),
        "a row names another queue": (
            f"{LOG} queue = 'other' WHERE job_sequence = 1 AND ordinal = 0"
        ),
    },
    log_rows_follow_each_other: {
        "a move does not start where the last ended": (
            f"{LOG} previous_state = 'scheduled' WHERE job_sequence = 5 AND ordinal = 1"
        ),
        "a row in the middle is missing": (
            "DELETE FROM latchwork_transitions WHERE job_sequence = 1 AND ordinal = 1"
        ),
        "time goes back": (f"{LOG} at = 0 WHERE job_sequence = 1 AND ordinal = 1"),
        "a later row has a lower position": (
            f"{LOG} position = -1 WHERE job_sequence = 1 AND ordinal = 2"
        ),
    },
    attempts_and_claims_are_counted: {
        "a claim does not raise the attempt": (f"{LOG} attempt = 0 WHERE job_sequence = 1"),
        "an attempt rises without a claim": (
            f"{LOG} attempt = 1 WHERE job_sequence = 1 AND ordinal = 0"
        ),
        "the claim number is not the number of claims": (
            f"{JOBS} claim_number = 7 WHERE sequence = 1"
        ),
    },
    a_claim_has_one_outcome: {
        "an outcome was applied to a lease that still runs": (
            f"{JOBS} applied_claim = 1 WHERE sequence = 2"
        ),
        "a lease ended twice": (
            f"{LOG} previous_state = 'leased' WHERE job_sequence = 1 AND ordinal = 1"
        ),
    },
    states_have_their_columns: {
        "Leased without an owner": (f"{JOBS} owner = NULL WHERE sequence = 2"),
        "Leased without an expiry": (f"{JOBS} lease_expires_at = NULL WHERE sequence = 2"),
        "the log names another owner": (f"{JOBS} owner = 'other' WHERE sequence = 2"),
        "an ended job has an owner": (f"{JOBS} owner = 'node' WHERE sequence = 1"),
        "an ended job has no terminal time": (f"{JOBS} terminal_at = NULL WHERE sequence = 1"),
        "a live job has a terminal time": (f"{JOBS} terminal_at = 0 WHERE sequence = 3"),
        "Cancelled without a cause": (f"{JOBS} cause_code = NULL WHERE sequence = 5"),
        "a live job has a cause": (f"{JOBS} cause_code = 'operator' WHERE sequence = 3"),
        "a cancel is pending on an ended job": (f"{JOBS} cancel_pending = 1 WHERE sequence = 1"),
        "a failed job has an output": ("INSERT INTO latchwork_outputs VALUES (4, '1')"),
    },
    latches_count_open_edges: {
        "a latch counts too many": (f"{JOBS} parents_remaining = 2 WHERE sequence = 3"),
        "a latch is negative": (f"{JOBS} parents_remaining = -1 WHERE sequence = 1"),
        "a job waits with all its edges closed": ("UPDATE latchwork_edges SET is_open = 0"),
        "an edge of an ended parent is open": (
            "UPDATE latchwork_edges SET is_open = 1 WHERE parent_sequence = 4"
        ),
    },
    children_follow_their_parents: {
        "a child is older than its parent": ("INSERT INTO latchwork_edges VALUES (1, 3, 0)"),
        "a child ran before its parent succeeded": ("INSERT INTO latchwork_edges VALUES (4, 3, 0)"),
        "a member's parent is outside the workflow": (
            f"{JOBS} workflow_id = '{uuid4().hex}' WHERE sequence = 2"
        ),
    },
    cascades_are_logged_after_their_parents: {
        "a child was cancelled before its parent ended": (
            f"{LOG} position = -1 WHERE job_sequence = 5 AND ordinal = 1"
        ),
    },
    actions_are_audited: {
        "a requeue has no audit row": (
            f"{LOG} event = 'requeue' WHERE job_sequence = 1 AND ordinal = 2"
        ),
        "a retry has no audit row": (
            f"{LOG} event = 'workflow_retry' WHERE job_sequence = 1 AND ordinal = 2"
        ),
        "a cancel has no audit row": f"{JOBS} cause_code = 'operator_cancel' WHERE sequence = 5",
        "a cancel that was asked for has none": (
            f"{JOBS} cancel_requested_by = 'ann' WHERE sequence = 2"
        ),
    },
    counters_are_exact: {
        "the counters miss a job": ("UPDATE latchwork_counter_totals SET count = count + 1"),
        "a queue with jobs has no row": ("DELETE FROM latchwork_queues"),
    },
}
PLANTED = [
    pytest.param(check, statement, id=description)
    for check, violations in VIOLATIONS.items()
    for description, statement in violations.items()
]


def test_every_check_has_a_planted_violation() -> None:
    assert VIOLATIONS.keys() == set(CHECKS)


@planted
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("check", "statement"), PLANTED)
def test_the_audit_finds(database: Database, check: Check, statement: str) -> None:
    database.write(plant_healthy_jobs)
    # The database itself would refuse many of these.
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        assert connection.exec_driver_sql(statement).rowcount > 0
    assert list(check(database.read(read_tables)))

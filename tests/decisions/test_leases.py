from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from latchwork.decisions.leases import Fence, Hold, check_fence
from latchwork.decisions.states import JobState

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
HOLD = Hold(sequence=7, attempt=2, claim_number=5)


@dataclass(frozen=True)
class Row:
    state: JobState = JobState.LEASED
    owner: str | None = "w1"
    attempt: int = 2
    claim_number: int = 5
    lease_expires_at: datetime | None = NOW + timedelta(seconds=1)
    applied_claim: int | None = None
    applied_worker: str | None = None


def test_the_holder_of_exactly_this_claim_passes() -> None:
    assert check_fence(Row(), "w1", HOLD, NOW) is Fence.HELD


@pytest.mark.parametrize(
    "row",
    [
        Row(state=JobState.SCHEDULED, owner=None, lease_expires_at=None),
        Row(owner="w2"),
        Row(attempt=3),
        Row(claim_number=6),
        Row(lease_expires_at=NOW),
        Row(lease_expires_at=NOW - timedelta(microseconds=1)),
    ],
)
def test_any_difference_is_stale(row: Row) -> None:
    assert check_fence(row, "w1", HOLD, NOW) is Fence.STALE


def test_one_microsecond_before_expiry_the_lease_still_stands() -> None:
    row = Row(lease_expires_at=NOW + timedelta(microseconds=1))
    assert check_fence(row, "w1", HOLD, NOW) is Fence.HELD


def test_attempt_one_of_an_earlier_life_is_refused_by_its_claim_number() -> None:
    requeued = Row(attempt=1, claim_number=6)
    assert check_fence(requeued, "w1", Hold(7, 1, 5), NOW) is Fence.STALE


def test_an_answer_lost_after_the_commit_is_recognised() -> None:
    row = Row(
        state=JobState.SUCCEEDED, owner=None, lease_expires_at=None,
        applied_claim=5, applied_worker="w1",
    )  # fmt: skip
    assert check_fence(row, "w1", HOLD, NOW) is Fence.ALREADY_APPLIED
    assert check_fence(row, "w2", HOLD, NOW) is Fence.STALE

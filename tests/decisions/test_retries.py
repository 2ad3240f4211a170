from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latchwork.decisions.retries import RetryPolicy, delay_seconds, next_due

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)


def test_the_default_delays_double_up_to_five_minutes() -> None:
    delays = [delay_seconds(RetryPolicy(), attempt) for attempt in range(1, 11)]
    assert delays == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_at_the_ceiling_there_is_no_next_time() -> None:
    policy = RetryPolicy(max_attempts=3)
    assert next_due(policy, 2, NOW) == NOW + timedelta(seconds=4)
    assert next_due(policy, 3, NOW) is None
    assert next_due(policy, 3, NOW, after_seconds=1) is None


def test_a_delay_asked_for_by_the_handler_replaces_the_policy() -> None:
    assert next_due(RetryPolicy(), 1, NOW, after_seconds=90) == NOW + timedelta(seconds=90)
    assert next_due(RetryPolicy(), 1, NOW, after_seconds=0) == NOW


def test_jitter_takes_away_at_most_its_share() -> None:
    policy = RetryPolicy(jitter=0.5)
    assert delay_seconds(policy, 3, chance=0.0) == 8
    assert delay_seconds(policy, 3, chance=0.999999) == pytest.approx(4, abs=0.001)


@given(
    attempt=st.integers(1, 1000),
    base=st.floats(0, 10**9),
    factor=st.floats(1, 10**9),
    cap=st.floats(0, 10**9),
)
def test_no_policy_overflows_or_passes_its_cap(
    attempt: int, base: float, factor: float, cap: float
) -> None:
    policy = RetryPolicy(max_attempts=1000, base_seconds=base, factor=factor, cap_seconds=cap)
    assert 0 <= delay_seconds(policy, attempt) <= cap


@pytest.mark.parametrize(
    "fields",
    [
        {"max_attempts": 0},
        {"max_attempts": 1001},
        {"max_attempts": True},
        {"base_seconds": -1},
        {"base_seconds": float("nan")},
        {"factor": 0.5},
        {"cap_seconds": float("inf")},
        {"jitter": 1.1},
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused(fields: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        RetryPolicy(**fields)  # type: ignore[arg-type]

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


def test_without_a_chance_handed_in_jitter_takes_nothing_away() -> None:
    policy = RetryPolicy(jitter=0.5)
    assert next_due(policy, 1, NOW) == NOW + timedelta(seconds=2)
    assert next_due(policy, 1, NOW, chance=0.5) == NOW + timedelta(seconds=1.5)


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


BOUNDS = {
    "max_attempts": (1, 1000),
    "base_seconds": (0, 10**9),
    "factor": (1, 10**9),
    "cap_seconds": (0, 10**9),
    "jitter": (0, 1),
}


@pytest.mark.parametrize("field", BOUNDS)
def test_a_policy_at_its_bounds_is_fine_and_beyond_them_refused_by_name(field: str) -> None:
    lowest, highest = BOUNDS[field]
    for value in (lowest, highest):
        assert getattr(RetryPolicy(**{field: value}), field) == value
    message = f"^{field} must be from {lowest} to {highest}$"
    for value in (lowest - 1, highest + 1):
        with pytest.raises(ValueError, match=message):
            RetryPolicy(**{field: value})


@pytest.mark.parametrize("value", [True, 2.0, "3"])
def test_attempts_are_counted_in_whole_numbers(value: object) -> None:
    with pytest.raises(ValueError, match=r"^max_attempts must be a whole number$"):
        RetryPolicy(max_attempts=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="base_seconds"):
        RetryPolicy(base_seconds=value)

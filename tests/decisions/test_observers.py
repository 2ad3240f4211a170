"""When a delivery is tried again, when it is dead, what is started together, who is active."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from latchwork.decisions.observers import (
    ACTIVE_FOR,
    called_together,
    is_active,
    next_try,
    worn_out,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Delivery:
    starts: int = 0
    failures: int = 0


@pytest.mark.parametrize(("failures", "seconds"), [(1, 2), (2, 4), (8, 256), (9, 300)])
def test_the_back_off_is_that_of_a_job(failures: int, seconds: float) -> None:
    assert next_try(failures, NOW) == NOW + timedelta(seconds=seconds)


def test_the_tenth_failure_is_the_last() -> None:
    assert next_try(10, NOW) is None


@pytest.mark.parametrize(
    ("starts", "failures", "worn"), [(19, 0, False), (20, 0, True), (20, 1, False), (29, 9, True)]
)
def test_only_starts_that_never_ended_wear_a_delivery_out(
    starts: int, failures: int, *, worn: bool
) -> None:
    assert worn_out(Delivery(starts, failures)) is worn


def test_a_delivery_whose_start_never_ended_is_called_alone() -> None:
    clean, failed, lost = Delivery(), Delivery(3, 3), Delivery(2, 1)
    assert called_together([]) == []
    assert called_together([clean, failed]) == [clean, failed]
    assert called_together([clean, failed, lost, clean]) == [clean, failed]
    assert called_together([lost, lost, clean]) == [lost]


def test_an_observer_is_active_until_retired_or_not_seen_for_seven_days() -> None:
    moment = timedelta(microseconds=1)
    assert is_active(None, NOW - ACTIVE_FOR + moment, NOW)
    assert not is_active(None, NOW - ACTIVE_FOR, NOW)
    assert not is_active(NOW, NOW, NOW)

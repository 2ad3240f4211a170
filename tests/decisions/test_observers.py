"""When a delivery is tried again, when it is dead, and who holds back the log."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from latchwork.decisions.observers import (
    ACTIVE_FOR,
    MAX_LOST_STARTS,
    called_together,
    is_active,
    lost_starts,
    next_try,
    worn_out,
)

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Tried:
    starts: int = 0
    failures: int = 0


def test_a_delivery_is_tried_ten_times_ever_later() -> None:
    waits = [next_try(failures, NOW) for failures in range(1, 11)]
    seconds = [wait and (wait - NOW).total_seconds() for wait in waits]
    assert seconds == [2, 4, 8, 16, 32, 64, 128, 256, 300, None]
    assert next_try(3, NOW, chance=0.9) == NOW + timedelta(seconds=8)


def test_twenty_starts_that_never_ended_are_enough() -> None:
    assert lost_starts(Tried(starts=7, failures=3)) == 4
    assert not worn_out(Tried(starts=MAX_LOST_STARTS - 1))
    assert worn_out(Tried(starts=MAX_LOST_STARTS))
    assert not worn_out(Tried(starts=MAX_LOST_STARTS, failures=1))
    assert MAX_LOST_STARTS == 20


def test_what_may_have_killed_its_process_is_called_alone() -> None:
    well, failed, lost = Tried(), Tried(2, 2), Tried(3, 2)
    assert list(called_together([])) == []
    assert list(called_together([well, failed])) == [well, failed]
    assert list(called_together([well, failed, lost, well])) == [well, failed]
    assert list(called_together([lost, well])) == [lost]


def test_an_observer_holds_back_the_log_until_it_is_retired_or_seven_days_unseen() -> None:
    assert is_active(None, NOW, NOW)
    assert is_active(None, NOW - ACTIVE_FOR + MICROSECOND, NOW)
    assert not is_active(None, NOW - ACTIVE_FOR, NOW)
    assert not is_active(NOW, NOW, NOW)
    assert timedelta(days=7) == ACTIVE_FOR

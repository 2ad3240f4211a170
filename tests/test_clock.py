"""The node's clock: the host's, or the database's once it was measured (contract section 4)."""

from datetime import UTC, datetime, timedelta

from latchwork.clock import SystemClock

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
AN_HOUR = timedelta(hours=1)


class Host:
    """A host whose wall clock can be set, and another that cannot."""

    def __init__(self) -> None:
        self.wall = NOON
        self.steady = 100.0
        self.clock = SystemClock(lambda: self.wall, lambda: self.steady)

    def pass_seconds(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.steady += seconds


def test_before_a_measurement_time_is_the_wall_clock() -> None:
    host = Host()
    host.wall += AN_HOUR
    assert host.clock.now() == NOON + AN_HOUR


def test_a_measured_clock_shows_the_database_time_as_it_goes_on() -> None:
    host = Host()
    host.clock.correct(lambda: NOON - AN_HOUR)
    host.pass_seconds(7)
    assert host.clock.now() == NOON - AN_HOUR + timedelta(seconds=7)


def test_the_database_is_taken_to_answer_in_the_middle_of_the_round_trip() -> None:
    host = Host()

    def ask() -> datetime:
        host.pass_seconds(0.5)
        theirs = host.wall + AN_HOUR
        host.pass_seconds(0.5)
        return theirs

    host.clock.correct(ask)
    assert host.clock.now() == host.wall + AN_HOUR


def test_a_step_of_the_wall_clock_does_not_move_a_measured_clock() -> None:
    for step in (timedelta(minutes=10), -AN_HOUR, timedelta(days=3652)):
        host = Host()
        host.clock.correct(lambda: NOON)
        host.wall += step
        assert host.clock.now() == NOON
        host.clock.correct(lambda: NOON)
        assert host.clock.now() == NOON

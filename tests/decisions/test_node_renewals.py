from datetime import UTC, datetime, timedelta

from latchwork.decisions.leases import Hold
from latchwork.decisions.renewals import RETRY_SECONDS, Renewals

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
ONE, TWO = Hold(1, 1, 1), Hold(2, 1, 1)


def moment(seconds: float) -> tuple[datetime, float]:
    return START + timedelta(seconds=seconds), seconds


def lease(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_every_lease_is_renewed_at_the_regular_beat() -> None:
    renewals = Renewals(20, 0)
    renewals.hold([ONE, TWO], lease(60))
    assert renewals.wait_seconds(*moment(5)) == 15
    beat = renewals.beat(*moment(20))
    assert set(beat.due) == {ONE, TWO}
    assert beat.regular
    assert renewals.wait_seconds(*moment(20)) == 20


def test_between_beats_there_is_nothing_to_do() -> None:
    renewals = Renewals(20, 0)
    renewals.hold([ONE], lease(60))
    beat = renewals.beat(*moment(10))
    assert (beat.due, beat.lapsed, beat.regular) == ((), [], False)


def test_a_busy_row_is_tried_again_each_second_until_its_lease_ends() -> None:
    renewals = Renewals(20, 0)
    renewals.hold([ONE, TWO], lease(23))
    renewals.beat(*moment(20))
    renewals.renewed([TWO], lease(80))
    renewals.not_renewed([ONE], 20)
    assert renewals.wait_seconds(*moment(20)) == RETRY_SECONDS
    assert renewals.beat(*moment(21)).due == (ONE,)
    renewals.not_renewed([ONE], 21)
    assert renewals.beat(*moment(22)).due == (ONE,)
    renewals.not_renewed([ONE], 22)
    assert renewals.beat(*moment(23)).lapsed == [ONE]
    assert renewals.held == 1


def test_at_the_instant_of_expiry_a_lease_has_lapsed_and_is_not_renewed() -> None:
    renewals = Renewals(20, 0)
    renewals.hold([ONE], lease(20))
    beat = renewals.beat(*moment(20))
    assert (beat.lapsed, beat.due) == ([ONE], ())


def test_a_forgotten_lease_is_neither_renewed_nor_lost() -> None:
    renewals = Renewals(20, 0)
    renewals.hold([ONE], lease(60))
    renewals.forget([ONE])
    renewals.renewed([ONE], lease(80))
    renewals.not_renewed([ONE], 5)
    beat = renewals.beat(*moment(100))
    assert (beat.lapsed, beat.due, beat.regular) == ([], (), True)


def test_a_row_that_was_busy_is_left_alone_until_a_second_has_passed() -> None:
    renewals = Renewals(20, 0)
    renewals.hold([ONE], lease(60))
    renewals.beat(*moment(20))
    renewals.not_renewed([ONE], 20)
    beat = renewals.beat(*moment(20.5))
    assert (beat.lapsed, beat.due, beat.regular) == ([], (), False)
    renewals.forget([ONE])
    assert renewals.beat(*moment(21)).due == ()


def test_a_beat_that_is_late_waits_for_nothing() -> None:
    assert Renewals(20, 0).wait_seconds(*moment(25)) == 0

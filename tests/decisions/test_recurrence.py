"""When schedules tick: golden instants over both switches of several zones, and what is missed."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from latchwork.decisions.recurrence import (
    MAX_COUNTED,
    ON_TIME,
    BadCron,
    CatchUp,
    DueTick,
    Recurrence,
    due_ticks,
)

BERLIN, NEW_YORK, LORD_HOWE = "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"

# cron, zone, from (wall time of UTC), the ticks that follow as wall times with their offsets
GOLDEN = [
    # A skipped time runs once, right after the jump; the next day as always.
    ("30 2 * * *", BERLIN, "2026-03-28 00:00",
     ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]),
    ("30 2 * * *", NEW_YORK, "2026-03-07 00:00",
     ["03-07 02:30-0500", "03-08 03:00-0400", "03-09 02:30-0400"]),
    ("15 2 * * *", LORD_HOWE, "2026-10-02 00:00",
     ["10-03 02:15+1030", "10-04 02:30+1100", "10-05 02:15+1100"]),
    ("0 0 * * *", "Africa/Cairo", "2026-04-22 00:00",
     ["04-23 00:00+0200", "04-24 01:00+0300", "04-25 00:00+0300"]),
    ("0 12 * * *", "Pacific/Apia", "2011-12-29 00:00",
     ["12-29 12:00-1000", "12-31 00:00+1400", "12-31 12:00+1400"]),
    # Several skipped times of one fixed hour are one run; so are six fields.
    ("*/30 2 * * *", BERLIN, "2026-03-28 12:00",
     ["03-29 03:00+0200", "03-30 02:00+0200", "03-30 02:30+0200"]),
    ("0 30 2 * * *", BERLIN, "2026-03-28 12:00", ["03-29 03:00+0200", "03-30 02:30+0200"]),
    # A repeated time of a fixed hour runs the first time only.
    ("30 2 * * *", BERLIN, "2026-10-24 12:00", ["10-25 02:30+0200", "10-26 02:30+0100"]),
    ("*/30 2 * * *", BERLIN, "2026-10-24 12:00",
     ["10-25 02:00+0200", "10-25 02:30+0200", "10-26 02:00+0100"]),
    ("30 1 * * *", NEW_YORK, "2026-10-31 12:00", ["11-01 01:30-0400", "11-02 01:30-0500"]),
    ("45 1 * * *", LORD_HOWE, "2026-04-04 00:00", ["04-05 01:45+1100", "04-06 01:45+1030"]),
    # An hour field of * or */n follows elapsed time.
    ("30 * * * *", BERLIN, "2026-03-29 00:00", ["03-29 01:30+0100", "03-29 03:30+0200"]),
    ("30 * * * *", BERLIN, "2026-10-24 23:00",
     ["10-25 01:30+0200", "10-25 02:30+0200", "10-25 02:30+0100", "10-25 03:30+0100"]),
    ("*/30 * * * *", NEW_YORK, "2026-11-01 04:59",
     ["11-01 01:00-0400", "11-01 01:30-0400", "11-01 01:00-0500", "11-01 01:30-0500",
      "11-01 02:00-0500"]),
    ("0 */2 * * *", LORD_HOWE, "2026-04-04 12:00",
     ["04-05 00:00+1100", "04-05 02:00+1030", "04-05 04:00+1030"]),
    ("45 */1 * * *", LORD_HOWE, "2026-04-04 14:00",
     ["04-05 01:45+1100", "04-05 01:45+1030", "04-05 02:45+1030"]),
    # Far apart, and no switch at all.
    ("0 0 29 2 *", BERLIN, "2026-12-01 00:00",
     ["02-29 00:00+0100", "02-29 00:00+0100"]),
    ("0 9 * * MON", "UTC", "2026-12-01 00:00", ["12-07 09:00+0000", "12-14 09:00+0000"]),
]  # fmt: skip


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(("cron", "zone", "start", "expected"), GOLDEN)
def test_ticks_are_those_of_the_golden_table_forwards_and_backwards(
    cron: str, zone: str, start: str, expected: list[str]
) -> None:
    recurrence = Recurrence(cron, ZoneInfo(zone))
    ticks = list(islice(recurrence.following(utc(start)), len(expected)))
    assert [at.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M%z") for at in ticks] == expected
    moment, back = ticks[-1], []
    while moment > utc(start):
        back.append(moment)
        before = recurrence.until(moment - timedelta(microseconds=1))
        assert before is not None
        moment = before
    assert back[::-1] == ticks
    assert all(recurrence.until(at) == at for at in ticks)


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, LORD_HOWE])
def test_a_nightly_schedule_ticks_once_on_every_local_day_of_a_year(zone: str) -> None:
    recurrence = Recurrence("30 2 * * *", ZoneInfo(zone))
    start = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone))
    ticks = list(islice(recurrence.following(start), 365))
    days = [at.astimezone(ZoneInfo(zone)).date() for at in ticks]
    assert days == [start.date() + timedelta(days=n) for n in range(365)]


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, LORD_HOWE])
def test_every_half_hour_counts_real_time_through_a_year(zone: str) -> None:
    recurrence = Recurrence("*/30 * * * *", ZoneInfo(zone))
    start = utc("2026-03-01 00:00")
    ticks = list(islice(recurrence.following(start), 48 * 60))
    assert {b - a for a, b in pairwise(ticks)} == {timedelta(minutes=30)}


@pytest.mark.parametrize(
    "cron",
    [
        "", "x", "* * * *", "* * * * * * *", "61 * * * *", "* 24 * * *", "* * 0 * *",
        "* * 31 2 *", "* * 30 2 *", "* * * 13 *", "* * * * 8", "every day", "@daily", "*/0 * * * *",
        "5-1 * * * *", "MON * * * *", "-1 * * * *", "1,,2 * * * *", "9" * 300, "٣ * * * *",
        "* * * * L", "* * * * MON#6",
    ],
)  # fmt: skip
def test_what_is_no_cron_expression_is_refused(cron: str) -> None:
    with pytest.raises(BadCron):
        Recurrence(cron, UTC)


@given(st.text(alphabet="0123456789*/,-#LW MONJAN", max_size=40))
@example("L/2 * * * *")
@example("* * LW/2 * MON#2/2")
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    try:
        recurrence = Recurrence(text, UTC)
    except BadCron:
        return
    moment = utc("2026-01-01 00:00")
    following = recurrence.after(moment)
    assert following is None or following > moment


@given(
    st.sampled_from(["30 2 * * *", "*/20 * * * *", "0 */3 * * *", "15 1,2,3 * * *", "0 0 1 * *"]),
    st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, "Africa/Casablanca", "America/St_Johns"]),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),  # noqa: DTZ001 - naive by name
)
@settings(max_examples=200, deadline=None)
def test_the_last_tick_and_the_next_leave_nothing_between(
    cron: str, zone: str, naive: datetime
) -> None:
    moment = naive.replace(tzinfo=UTC)
    recurrence = Recurrence(cron, ZoneInfo(zone))
    last, following = recurrence.until(moment), recurrence.after(moment)
    assert last is not None
    assert following is not None
    assert last <= moment < following
    assert recurrence.after(last) == following
    assert recurrence.until(following - timedelta(microseconds=1)) == last


def test_ticks_that_are_on_time_each_mint() -> None:
    every_second = Recurrence("* * * * * *", UTC)
    now = utc("2026-01-01 00:00:05.5")
    due = due_ticks(every_second, after=utc("2026-01-01 00:00:02"), now=now, catch_up=CatchUp.SKIP)
    assert [(tick.at.second, tick.mints) for tick in due.ticks] == [(3, True), (4, True), (5, True)]
    assert due.next_at == utc("2026-01-01 00:00:06")


def test_an_outage_is_skipped_but_for_a_last_tick_that_is_on_time() -> None:
    hourly, after = Recurrence("0 * * * *", UTC), utc("2026-01-01 00:00")
    on_time = due_ticks(
        hourly, after=after, now=utc("2026-01-01 05:00") + ON_TIME, catch_up=CatchUp.SKIP
    )
    assert on_time.ticks == (
        DueTick(utc("2026-01-01 04:00"), mints=False, count=4),
        DueTick(utc("2026-01-01 05:00"), mints=True),
    )
    late = due_ticks(hourly, after=after, now=utc("2026-01-01 05:02"), catch_up=CatchUp.SKIP)
    assert late.ticks == (DueTick(utc("2026-01-01 05:00"), mints=False, count=5),)
    assert late.next_at == utc("2026-01-01 06:00")


@pytest.mark.parametrize("minute", ["05:00", "05:30"])
def test_an_outage_is_coalesced_to_exactly_one_at_its_last_tick(minute: str) -> None:
    due = due_ticks(
        Recurrence("0 * * * *", UTC),
        after=utc("2026-01-01 00:00"),
        now=utc(f"2026-01-01 {minute}"),
        catch_up=CatchUp.COALESCE,
    )
    assert due.ticks == (DueTick(utc("2026-01-01 05:00"), mints=True, count=5),)


def test_ten_years_of_outage_of_every_second_are_bounded_work() -> None:
    recurrence = Recurrence("* * * * * *", UTC)
    due = due_ticks(
        recurrence,
        after=utc("2016-01-01 00:00"),
        now=utc("2026-01-01 00:10"),
        catch_up=CatchUp.COALESCE,
    )
    (tick,) = due.ticks
    assert (tick.at, tick.count) == (utc("2026-01-01 00:10"), MAX_COUNTED + 1)


def test_a_clock_that_stepped_back_makes_nothing_due() -> None:
    minutely = Recurrence("* * * * *", UTC)
    due = due_ticks(
        minutely,
        after=utc("2026-01-01 00:10"),
        now=utc("2026-01-01 00:08:30"),
        catch_up=CatchUp.COALESCE,
    )
    assert due.ticks == ()
    assert due.next_at == utc("2026-01-01 00:11")


def test_an_expression_that_has_no_further_tick_ends() -> None:
    assert Recurrence("0 0 1 1 *", UTC).after(datetime(9999, 12, 31, tzinfo=UTC)) is None
    assert Recurrence("0 0 1 1 *", UTC).until(datetime(1, 1, 1, 0, tzinfo=UTC)) == datetime(
        1, 1, 1, tzinfo=UTC
    )

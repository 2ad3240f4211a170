from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import Event
from latchwork.views import History, TransitionView
from latchwork_console.formatting import happened
from latchwork_console.timeline_drawing import (
    ATTEMPTS_DRAWN_MAX,
    Attempt,
    attempts_of,
    draw_timeline,
)
from tests.store.planting import event_between

START = datetime(2026, 11, 30, 14, 29, 10, tzinfo=UTC)
TRACEBACK = "Traceback (most recent call last):\n  File x\nOSError: disk on fire"


def row(
    ordinal: int,
    seconds: float,
    state: JobState,
    previous: JobState | None,
    *,
    attempt: int = 0,
    due: float | None = None,
    failure: str | None = None,
    event: Event | None = None,
) -> TransitionView:
    return TransitionView(
        position=ordinal,
        job_id=UUID(int=1),
        ordinal=ordinal,
        at=START + timedelta(seconds=seconds),
        state=state,
        previous_state=previous,
        event=event_between(previous, state) if event is None else event,
        attempt=attempt,
        queue="default",
        wire_name="scan",
        worker="node-a",
        due_at=None if due is None else START + timedelta(seconds=due),
        failure_detail=failure,
    )


FAILED_ONCE = (
    row(0, 0, JobState.SCHEDULED, None, due=10),
    row(1, 20, JobState.LEASED, JobState.SCHEDULED, attempt=1),
    row(2, 50, JobState.SCHEDULED, JobState.LEASED, attempt=1, due=60, failure=TRACEBACK),
    row(3, 60, JobState.LEASED, JobState.SCHEDULED, attempt=2),
)


def test_waits_and_runs_are_to_scale() -> None:
    timeline = draw_timeline(History(FAILED_ONCE, 0), START + timedelta(seconds=100))
    assert timeline is not None
    waits, first, second = timeline.lanes
    assert [(one.kind, one.left, one.width) for one in waits.stretches] == [
        ("delay", 0, 10), ("wait", 10, 10), ("delay", 50, 10),
    ]  # fmt: skip
    assert [(one.left, one.width) for one in first.stretches] == [(20, 30)]
    assert [(one.left, one.width) for one in second.stretches] == [(60, 40)]
    assert timeline.live
    assert timeline.ticks[-1].label == "now"


def test_a_failed_attempt_looks_failed_though_it_is_retried() -> None:
    first, second = attempts_of(History(FAILED_ONCE, 0))
    assert first.outcome_state is JobState.DEAD_LETTERED
    assert first.outcome == "failed, retried"
    assert first.failure == "OSError: disk on fire"
    assert second.outcome_state is JobState.LEASED
    assert second.outcome == "running"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (JobState.SUCCEEDED, "succeeded"),
        (JobState.CANCELLED, "cancelled"),
        (JobState.QUARANTINED, "quarantined"),
        (JobState.DEAD_LETTERED, "failed for good"),
    ],
)
def test_an_ended_job_ends_its_timeline(state: JobState, words: str) -> None:
    ended = (*FAILED_ONCE, row(4, 80, state, JobState.LEASED, attempt=2))
    timeline = draw_timeline(History(ended, 0), START + timedelta(days=9))
    assert timeline is not None
    assert timeline.ends_at == START + timedelta(seconds=80)
    assert not timeline.live
    assert timeline.lanes[-1].words == f"20 s, {words}"
    assert timeline.lanes[-1].state is state


def test_the_time_between_an_end_and_its_requeue_is_shown() -> None:
    rows = (
        *FAILED_ONCE,
        row(4, 80, JobState.DEAD_LETTERED, JobState.LEASED, attempt=2),
        row(5, 90, JobState.SCHEDULED, JobState.DEAD_LETTERED, due=90),
    )
    timeline = draw_timeline(History(rows, 0), START + timedelta(seconds=100))
    assert timeline is not None
    kinds = [(one.kind, one.state) for one in timeline.lanes[0].stretches]
    assert ("ended", JobState.DEAD_LETTERED) in kinds
    assert timeline.lanes[0].words == "40 s"


def test_a_clock_behind_the_log_makes_nothing_negative() -> None:
    timeline = draw_timeline(History(FAILED_ONCE, 0), START - timedelta(hours=1))
    assert timeline is not None
    assert all(one.width >= 0 for lane in timeline.lanes for one in lane.stretches)
    assert Attempt(1, None, START, None, None, None).seconds(START - timedelta(hours=1)) == 0


def test_a_job_without_kept_rows_has_no_timeline() -> None:
    assert draw_timeline(History((), 12), START) is None


def test_a_job_that_was_just_enqueued_has_one() -> None:
    timeline = draw_timeline(History(FAILED_ONCE[:1], 0), START)
    assert timeline is not None
    assert timeline.seconds == 0


@pytest.mark.parametrize("seconds", [0.004, 0.9, 7, 59, 300, 7_000, 90_000, 3_000_000, 10**9])
def test_ticks_are_few_and_in_order_at_any_length(seconds: float) -> None:
    timeline = draw_timeline(History(FAILED_ONCE[:1], 0), START + timedelta(seconds=seconds))
    assert timeline is not None
    places = [tick.left for tick in timeline.ticks]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, 100)
    assert 2 <= len(places) <= 8


def test_only_the_latest_attempts_are_drawn_and_the_rest_is_counted() -> None:
    rows = [row(0, 0, JobState.SCHEDULED, None, due=0)]
    for number in range(1, 31):
        rows.append(
            row(2 * number - 1, 2 * number, JobState.LEASED, JobState.SCHEDULED, attempt=number)
        )
        rows.append(
            row(2 * number, 2 * number + 1, JobState.SCHEDULED, JobState.LEASED, attempt=number)
        )
    timeline = draw_timeline(History(tuple(rows), 0), START + timedelta(seconds=70))
    assert timeline is not None
    assert len(timeline.lanes) == 1 + ATTEMPTS_DRAWN_MAX
    assert timeline.attempts_left_out == 30 - ATTEMPTS_DRAWN_MAX
    assert timeline.lanes[-1].label == "attempt 30"


def test_a_lapsed_lease_is_not_told_as_a_failure() -> None:
    lapse = row(
        2, 50, JobState.SCHEDULED, JobState.LEASED, attempt=1, due=52, event=Event.LEASE_EXPIRED
    )
    (attempt,) = attempts_of(History((*FAILED_ONCE[:2], lapse), 0))
    assert attempt.outcome == "lease lapsed, retried"
    assert happened(lapse) == "attempt 1 cut off: its lease lapsed, retry 2 s later"
    assert happened(FAILED_ONCE[2]) == "attempt 1 failed, retry 10 s later"
    for_good = row(
        2, 50, JobState.DEAD_LETTERED, JobState.LEASED, attempt=3, event=Event.LEASE_EXPIRED
    )
    assert happened(for_good) == "last attempt cut off: its lease lapsed"

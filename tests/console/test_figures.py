"""How times, figures, forecasts and charts read."""

from datetime import UTC, datetime, timedelta

import pytest

from latchwork.decisions.states import JobState
from latchwork.pace_views import RatePoint
from latchwork.views import BoundedCount, QueueView
from latchwork_console.charts import draw_outcomes, nice_top
from latchwork_console.formatting import figure, relative, short_figure, span, visible
from latchwork_console.pages.queues import forecast

NOW = datetime(2026, 11, 30, 14, 30, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 ms"), (0.41, "410 ms"), (3.14, "3.1 s"), (38, "38 s"), (59.7, "1 min"),
        (119, "1 min"), (3_600, "1 h"), (3_840, "1 h 4 min"), (90_000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_spans(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "just now"), (-0.9, "just now"), (4.2, "4 s ago"), (-240, "in 4 min")],
)
def test_moments(seconds: float, text: str) -> None:
    assert relative(NOW - timedelta(seconds=seconds), NOW) == text


def test_figures() -> None:
    assert [figure(value) for value in (0, 0.84, 3.0, 1204551)] == ["0", "0.8", "3", "1,204,551"]
    assert [short_figure(value) for value in (864, 12_345, 1_240_000)] == ["864", "12k", "1.2M"]


def test_invisible_characters_are_written_out() -> None:
    assert visible("a\u202eb\x00c") == "a\\u202eb\\u0000c"
    assert visible("naïve 🚀 עברית") == "naïve 🚀 עברית"


def queue(**given: object) -> QueueView:
    values: dict[str, object] = {
        "name": "q", "counts": {}, "due": BoundedCount(100), "oldest_due_at": NOW,
        "paused_at": None, "paused_by": None, "concurrency_limit": None, "served_by": ("n",),
        "outcomes_per_minute": 20.0, "enqueued_per_minute": 10.0,
    }  # fmt: skip
    return QueueView(**(values | given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "clears in about 10 min"),
        ({"due": BoundedCount(1_000, capped=True)}, "clears in more than 1 h 40 min"),
        ({"enqueued_per_minute": 54.0}, "growing by 34 a minute"),
        ({"enqueued_per_minute": 20.0}, "holding steady"),
        ({"outcomes_per_minute": 0.0}, "nothing has ended lately"),
        ({"served_by": ()}, "will not drain"),
        ({"due": BoundedCount(0), "served_by": ()}, "nothing is due"),
        ({"paused_at": NOW, "paused_by": "ann"}, "paused by ann"),
        ({"due": BoundedCount(1_000), "enqueued_per_minute": 18.0, "outcomes_per_minute": 19.0},
         "clears in about 16 h 40 min"),
    ],
)  # fmt: skip
def test_forecasts(given: dict[str, object], sentence: str) -> None:
    assert forecast(queue(**given)).sentence == sentence


@pytest.mark.parametrize(("largest", "top"), [(0, 3), (3, 3), (4, 6), (16, 30), (900, 1_500)])
def test_the_scale_ends_on_a_round_number(largest: int, top: int) -> None:
    assert nice_top(largest) == top


def test_a_chart_stacks_what_ended_and_fills_its_span() -> None:
    start = NOW.replace(second=0)
    point = RatePoint(
        starts_at=start, succeeded=80, failed=15, dead_lettered=5, cancelled=0, quarantined=0,
        enqueued=0, started=0,
    )  # fmt: skip
    chart = draw_outcomes([point], until=NOW, step=MINUTE, count=60, title="t")
    assert len(chart.columns) == 60
    assert chart.scale == ("150", "100", "50", "0")
    bars = chart.columns[-1].bars
    assert [bar.kind for bar in bars] == ["succeeded", "failed", "dead_lettered"]
    assert bars[0].y + bars[0].height == pytest.approx(100)
    assert sum(bar.height for bar in bars) == pytest.approx(95 * 100 / 150, abs=0.1)
    assert not chart.columns[0].bars
    assert {one.state: one.count for one in chart.totals}[JobState.SUCCEEDED] == 80


def test_a_chart_of_nothing_says_so() -> None:
    assert draw_outcomes([], until=NOW, step=MINUTE, count=60, title="t").empty

"""Draw a job's life to scale: how long it waited, how long each attempt ran, and how each ended.

Places are percentages of the width, so one drawing fits a phone and a wide screen. Pure: the
moment "now" is handed in.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from latchwork.decisions.states import JobState
from latchwork.views import History, TransitionView
from latchwork_console.formatting import span

ATTEMPTS_DRAWN_MAX = 12
CHARACTER_PERCENT = 2.2
"""How much of the axis a character of a label takes where the drawing is narrowest."""
_STEPS_SECONDS = tuple(
    step * unit
    for unit, steps in (
        (0.001, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (1, (1, 2, 5, 10, 15, 30)),
        (60, (1, 2, 5, 10, 15, 30)),
        (3_600, (1, 2, 3, 6, 12)),
        (86_400, (1, 2, 7, 14, 30, 90, 365)),
    )
    for step in steps
)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A bar: one stay in one state. ``kind`` names its look, ``state`` its hue."""

    kind: str
    state: JobState
    left: float
    width: float
    seconds: float
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One row: the waits of a life, or one attempt. ``words`` say what the bars show."""

    label: str
    words: str
    state: JobState
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on the time axis."""

    left: float
    label: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lanes over one time axis; ``attempts_left_out`` earlier attempts are not drawn."""

    starts_at: datetime
    ends_at: datetime
    live: bool
    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    attempts_left_out: int

    @property
    def seconds(self) -> float:
        """The length of the drawn life."""
        return (self.ends_at - self.starts_at).total_seconds()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of the handler, from its claim to its end, as far as the log still says."""

    number: int
    worker: str | None
    started_at: datetime
    ended_at: datetime | None
    result: JobState | None
    """The state the run ended in: Scheduled means that it failed and will be tried again."""
    failure_detail: str | None
    lapsed: bool = False
    """Whether its lease ran out before an outcome came."""
    end_logged: bool = True
    """Whether the log tells how it ended, or that it runs still."""

    @property
    def failed(self) -> bool:
        """Whether the run ended in a failure, retried or not."""
        return self.result in (JobState.SCHEDULED, JobState.DEAD_LETTERED)

    @property
    def outcome_state(self) -> JobState:
        """The state whose hue shows the outcome: a failed try looks failed, also if retried."""
        if self.result is None:
            return JobState.LEASED
        return JobState.DEAD_LETTERED if self.failed else self.result

    @property
    def failure(self) -> str | None:
        """The line that names the failure: the detail's first, or a traceback's last."""
        lines = [line.strip() for line in (self.failure_detail or "").splitlines() if line.strip()]
        if not lines:
            return None
        return lines[-1] if lines[0].startswith("Traceback") else lines[0]

    @property
    def outcome(self) -> str:
        """The outcome in a word or two."""
        match self.result:
            case _ if not self.end_logged:
                return "end not logged"
            case None:
                return "running"
            case _ if self.lapsed:
                good = self.result is JobState.DEAD_LETTERED
                return "lease lapsed for good" if good else "lease lapsed, retried"
            case JobState.SCHEDULED:
                return "failed, retried"
            case JobState.DEAD_LETTERED:
                return "failed for good"
            case _:
                return self.result.label.lower()

    def seconds(self, now: datetime) -> float:
        """How long it ran, until ``now`` if it still runs."""
        return max(0.0, ((self.ended_at or now) - self.started_at).total_seconds())


def attempts_of(history: History) -> tuple[Attempt, ...]:
    """The attempts that the kept log rows tell of, oldest first."""
    found = []
    for row, after, known in _followed(history):
        if row.state is JobState.LEASED:
            found.append(
                Attempt(
                    number=row.attempt,
                    worker=row.worker,
                    started_at=row.at,
                    # What is not known to have lasted is drawn without a length.
                    ended_at=after.at if after else None if known else row.at,
                    result=after.state if after else None,
                    failure_detail=after.failure_detail if after else None,
                    lapsed=after is not None and after.lapsed,
                    end_logged=known,
                )
            )
    return tuple(found)


def _followed(history: History) -> Iterator[tuple[TransitionView, TransitionView | None, bool]]:
    """Each row, the one that followed it if that was logged, and whether it is known what did."""
    rows = history.transitions
    for row, after in pairwise(rows):
        known = after.ordinal == row.ordinal + 1
        yield row, after if known else None, known
    if rows:
        yield rows[-1], None, history.logged_to_end


def draw_timeline(history: History, now: datetime) -> Timeline | None:
    """Draw the kept rows of one job's log.

    Args:
        history: the job's kept transitions, oldest first.
        now: where a live job's last bar ends.

    Returns:
        None if no row is kept, so there is nothing to draw.
    """
    rows = history.transitions
    if not rows:
        return None
    live = not rows[-1].state.terminal and history.logged_to_end
    starts_at = rows[0].at
    ends_at = max(now, rows[-1].at) if live else rows[-1].at
    scale = _Scale(starts_at, max((ends_at - starts_at).total_seconds(), 0.001))
    attempts = attempts_of(history)
    drawn = attempts[-ATTEMPTS_DRAWN_MAX:]
    lanes = [_waiting_lane(history, ends_at, scale)]
    lanes.extend(_attempt_lane(one, ends_at, scale) for one in drawn)
    return Timeline(
        starts_at=starts_at,
        ends_at=ends_at,
        live=live,
        lanes=tuple(lane for lane in lanes if lane.stretches),
        ticks=_ticks(scale, live=live),
        attempts_left_out=len(attempts) - len(drawn),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    starts_at: datetime
    seconds: float

    def percent(self, at: datetime) -> float:
        share = (at - self.starts_at).total_seconds() / self.seconds
        return round(100 * min(1.0, max(0.0, share)), 3)

    def stretch(
        self, kind: str, state: JobState, begins: datetime, ends: datetime, title: str
    ) -> Stretch:
        left = self.percent(begins)
        width = round(self.percent(ends) - left, 3)
        seconds = max(0.0, (ends - begins).total_seconds())
        return Stretch(kind, state, left, width, seconds, f"{title}, {span(seconds)}")


def _waiting_lane(history: History, ends_at: datetime, scale: _Scale) -> Lane:
    stretches: list[Stretch] = []
    for row, after, known in _followed(history):
        ends = after.at if after else ends_at if known else row.at
        match row.state:
            case JobState.AWAITING_PARENT:
                stretches.append(
                    scale.stretch("wait", row.state, row.at, ends, "waited for parents")
                )
            case JobState.SCHEDULED:
                due_at = min(max(row.due_at or row.at, row.at), ends)
                if due_at > row.at:
                    words = "waited to retry" if row.attempt else "not due yet"
                    stretches.append(scale.stretch("delay", row.state, row.at, due_at, words))
                if ends > due_at:
                    words = "due, waited for a node"
                    stretches.append(scale.stretch("wait", row.state, due_at, ends, words))
            case JobState.LEASED:
                pass
            case ended:
                if ends > row.at:
                    words = f"{ended.label} until it was requeued"
                    stretches.append(scale.stretch("ended", ended, row.at, ends, words))
    waited = sum(stretch.seconds for stretch in stretches if stretch.kind != "ended")
    return Lane("waited", span(waited), JobState.SCHEDULED, tuple(stretches))


def _attempt_lane(attempt: Attempt, ends_at: datetime, scale: _Scale) -> Lane:
    words = f"{span(attempt.seconds(ends_at))}, {attempt.outcome}"
    label = f"attempt {attempt.number}"
    title = f"{label} {attempt.outcome}"
    stretch = scale.stretch(
        "run", attempt.outcome_state, attempt.started_at, attempt.ended_at or ends_at, title
    )
    return Lane(label, words, attempt.outcome_state, (stretch,))


def _ticks(scale: _Scale, *, live: bool) -> tuple[Tick, ...]:
    """Round times along the axis, and its right end."""
    years = _STEPS_SECONDS[-1] * math.ceil(scale.seconds / _STEPS_SECONDS[-1])
    step = next(
        (one for one in _STEPS_SECONDS if 100 * one / scale.seconds > _label_percent(one)), years
    )
    # The first label begins at the left end and the last ends at the right one.
    room = 1.5 * _label_percent(step)
    midnight = scale.starts_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = math.floor((scale.starts_at - midnight).total_seconds() / step) + 1
    ends_at = scale.starts_at + timedelta(seconds=scale.seconds)
    rounds = (midnight + timedelta(seconds=step * number) for number in range(first, first + 8))
    moments = [scale.starts_at, *(at for at in rounds if room < scale.percent(at) < 100 - room)]
    ticks = [Tick(scale.percent(at), _tick_label(at, step)) for at in moments]
    return (*ticks, Tick(100.0, "now" if live else _tick_label(ends_at, step)))


def _label_percent(step_seconds: float) -> float:
    return CHARACTER_PERCENT * (len(_tick_label(datetime.now(UTC), step_seconds)) + 1)


def _tick_label(at: datetime, step_seconds: float) -> str:
    at = at.astimezone(UTC)
    if step_seconds >= 86_400:
        return f"{at:%d %b}"
    if step_seconds >= 3_600:
        return f"{at:%d %b %H:%M}"
    if step_seconds >= 60:
        return f"{at:%H:%M}"
    if step_seconds >= 1:
        return f"{at:%H:%M:%S}"
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03d}"

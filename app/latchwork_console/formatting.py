"""How times, spans and figures read on screen: pure functions, used as template filters."""

import unicodedata
from datetime import UTC, datetime

from latchwork.decisions.states import JobState
from latchwork.decisions.transitions import Event
from latchwork.views import Tag, TransitionView

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(seconds: float) -> str:
    """A length of time in at most two units: ``410 ms``, ``38 s``, ``3 min``, ``2 h 4 min``."""
    seconds = max(0.0, seconds)
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    for index, (size, unit) in enumerate(_UNITS):
        if whole >= size:
            count, rest = divmod(whole, size)
            text = f"{count:,} {unit}"
            if index + 1 < len(_UNITS) and unit != "min":
                smaller_size, smaller_unit = _UNITS[index + 1]
                if rest // smaller_size:
                    text += f" {rest // smaller_size} {smaller_unit}"
            return text
    return "0 s"


def relative(at: datetime, now: datetime) -> str:
    """A moment seen from ``now``: ``just now``, ``3 min ago``, ``in 4 s``.

    Anything within a second of now, on either side, is "just now": clocks never agree better.
    """
    seconds = (now - at).total_seconds()
    if abs(seconds) < 1:
        return "just now"
    whole = float(int(abs(seconds)))
    return f"{span(whole)} ago" if seconds > 0 else f"in {span(whole)}"


def exact(at: datetime) -> str:
    """A moment in full, for tooltips: ``2026-11-30 14:30:07.412 UTC``."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} UTC"


def clock_time(at: datetime) -> str:
    """The time of day to the millisecond, for log rows: ``14:30:07.412``."""
    return f"{at.astimezone(UTC):%H:%M:%S}.{at.microsecond // 1000:03d}"


def rfc3339(at: datetime) -> str:
    """A moment for ``<time datetime>`` and JSON, in UTC with ``Z``."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def figure(value: float) -> str:
    """A number with separators: ``1,204,551``; one decimal under ten when there is one."""
    if 0 < value < 10 and value != round(value):
        return f"{value:.1f}"
    return f"{round(value):,}"


def short_figure(value: int) -> str:
    """A number for a badge: ``864``, ``3,118``, ``12k``, ``1.2M``."""
    if value < 10_000:
        return f"{value:,}"
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if value >= size:
            short = value / size
            return f"{short:.1f}{unit}" if short < 10 else f"{int(short)}{unit}"
    return f"{value:,}"


def visible(text: str) -> str:
    """Text with its invisible characters written out, so that no name can pose as another.

    Control characters and direction overrides become ``\\u202e``; letters, emoji and spaces stay.
    """
    return "".join(
        f"\\u{ord(char):04x}"
        if unicodedata.category(char) in _HIDDEN and char != "\u200d"
        else char
        for char in text
    )


_HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})


def last_name(dotted: str) -> str:
    """The part of a dotted name that tells most: ``ValidationError`` of ``pydantic_core.X``."""
    return dotted.rpartition(".")[2] or dotted


def short_id(job_id: object) -> str:
    """The end of a job id, which is its random part: enough to tell rows apart."""
    return f"…{str(job_id)[-8:]}"


def tag_text(tag: Tag) -> str:
    """A tag as it is written: ``nightly`` or ``tenant=acme``."""
    return tag if isinstance(tag, str) else f"{tag[0]}={tag[1]}"


def tag_parameter(tag: Tag) -> str:
    """A tag as the ``tag`` parameter of an address: a label with a ``=`` gets one before it."""
    return f"={tag}" if isinstance(tag, str) and "=" in tag else tag_text(tag)


def plural(count: int, noun: str, plural_noun: str | None = None) -> str:
    """A count with its noun: ``1 job``, ``3,118 jobs``."""
    return f"{count:,} {noun if count == 1 else plural_noun or noun + 's'}"


_HAPPENED: dict[tuple[Event, JobState], str] = {
    (Event.ENQUEUE, JobState.SCHEDULED): "enqueued{delay}",
    (Event.ENQUEUE, JobState.AWAITING_PARENT): "enqueued, waits for its parents",
    (Event.ENQUEUE, JobState.CANCELLED): "enqueued after a parent had already failed",
    (Event.PARENTS_SETTLED, JobState.SCHEDULED): "released: its parents have settled{delay}",
    (Event.PARENT_FAILED, JobState.CANCELLED): "cancelled: a parent did not succeed",
    (Event.OPERATOR_CANCEL, JobState.CANCELLED): "cancelled as asked",
    (Event.CLAIM, JobState.LEASED): "attempt {attempt} claimed",
    (Event.SUCCESS, JobState.SUCCEEDED): "attempt {attempt} succeeded",
    (Event.FAILURE, JobState.SCHEDULED): "attempt {attempt} failed{delay}",
    (Event.FAILURE, JobState.DEAD_LETTERED): "attempt {attempt} failed for good",
    (Event.LEASE_EXPIRED, JobState.SCHEDULED): "attempt {attempt} cut off: its lease lapsed{delay}",
    (Event.LEASE_EXPIRED, JobState.DEAD_LETTERED): "last attempt cut off: its lease lapsed",
    (Event.CANCELLED, JobState.CANCELLED): "attempt {attempt} stopped as asked",
    (Event.UNROUTABLE, JobState.QUARANTINED): "no handler could take it",
    (Event.REQUEUE, JobState.SCHEDULED): "requeued",
}


def happened(transition: TransitionView) -> str:
    """What a log row says happened, in a few words; its worker and times stand beside it."""
    words = _HAPPENED.get((transition.event, transition.state), "retried with its workflow")
    return words.format(attempt=transition.attempt, delay=_delay(transition))


def _delay(transition: TransitionView) -> str:
    """How long after the row the job becomes due, if that is later: it stays true with time."""
    if transition.due_at is None or transition.due_at <= transition.at:
        return ""
    word = "retry" if transition.attempt else "due"
    # A worker reckons from the failure, a moment before the row: tenths are exact enough.
    seconds = round((transition.due_at - transition.at).total_seconds(), 1)
    return f", {word} {span(seconds)} later"


FILTERS = {
    "happened": happened,
    "span": span,
    "exact": exact,
    "clock_time": clock_time,
    "rfc3339": rfc3339,
    "figure": figure,
    "short_figure": short_figure,
    "visible": visible,
    "last_name": last_name,
    "short_id": short_id,
    "tag_text": tag_text,
    "tag_parameter": tag_parameter,
    "plural": plural,
}
"""What templates may pipe a value through, by name."""

"""Reading the transition log without missing a row, though PostgreSQL shows rows out of order.

A position is given out at insert and seen at commit, so 12 can be seen before 11. The reader
delivers every row as it becomes visible and remembers the gaps it passed. For each it asks, in a
statement after the one that met the gap, which transactions hold RowExclusiveLock on the log: a
writer takes it before its position and lets go of it after its rows are visible. Once all of those
are gone, a gap that is still empty in a later statement was rolled back.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, overload

from sqlalchemy import Connection, Select, bindparam, cast, func, select, union_all

from latchwork.store.dialects import BIG, Batch, log_writers
from latchwork.store.log_place import MAX_GAPS, Place, Range, without
from latchwork.store.schema import facts, transitions
from latchwork.views import TransitionView

PURGED_POSITION = "purged_position"
"""The fact that names the last position of the log that was purged."""

START_WINDOW = 10_000
"""How far below the log's end a new reader looks for positions whose transactions are open."""

LIST_COLUMNS = tuple(
    transitions.c[name]
    for name in (
        "position", "job_id", "ordinal", "at", "state", "previous_state", "event", "attempt",
        "queue", "wire_name", "worker", "due_at",
    )
)  # fmt: skip
"""What lists read of a row, in the order of ``TransitionView``: all but the failure detail."""

_COLUMNS = (*LIST_COLUMNS, transitions.c.failure_detail)


@dataclass(frozen=True, slots=True)
class Gap:
    """Positions that were passed unseen, and the transactions that may still fill them.

    ``writers`` is None until they are known.
    """

    ranges: tuple[Range, ...]
    writers: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader knows between two batches: where it is and what it waits for."""

    position: int
    gaps: tuple[Gap, ...] = ()

    @classmethod
    def at(cls, place: Place) -> "Reading":
        """A reading that goes on from ``place``."""
        return cls(place.position, (Gap(place.gaps),) if place.gaps else ())

    @property
    def place(self) -> Place:
        """The reader's place."""
        return Place(self.position, tuple(sorted(one for gap in self.gaps for one in gap.ranges)))


@dataclass(frozen=True, slots=True)
class LogBatch(Sequence[TransitionView]):
    """A sequence of rows in the order of their positions, and the reading after them.

    ``gone_before`` is set when rows the reader had not seen are no longer kept: those before that
    position.
    """

    transitions: tuple[TransitionView, ...]
    reading: Reading
    gone_before: int | None = None

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.transitions)

    @overload
    def __getitem__(self, index: int) -> TransitionView: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TransitionView]: ...
    def __getitem__(self, index: int | slice) -> TransitionView | Sequence[TransitionView]:
        """The row or rows at ``index``."""
        return self.transitions[index]

    def places(self, start: Reading) -> Iterator[tuple[TransitionView, Place]]:
        """Each row with the reader's place once it, and no later row, is delivered."""
        gaps = self.reading.place.gaps
        for index, row in enumerate(self.transitions):
            position = max(start.position, row.position)
            below = [gap for gap in gaps if gap[1] < position]
            for later in self.transitions[index + 1 :]:
                if later.position > position:
                    break
                below.append((later.position, later.position))
            yield row, Place(position, tuple(sorted(below)))


def read_batch(connection: Connection, reading: Reading, *, limit: int) -> LogBatch:
    """The next rows, at most ``limit``: new ones and those that filled a gap, in one statement."""
    writers = log_writers(connection, transitions) if reading.gaps else None
    rows = _read_rows(connection, reading, limit)
    examined = rows[-1].position if len(rows) == limit else None
    closed: list[Range] = []
    waiting: list[Gap] = []
    for gap in reading.gaps:
        left = _unfilled(gap.ranges, rows)
        over = gap.writers is not None and (writers is None or not gap.writers & writers)
        if over and (examined is None or gap.ranges[-1][1] <= examined):
            closed += left
        elif left:
            waiting.append(replace(gap, ranges=left))
    passed = _passed(reading.position, rows)
    if passed or any(gap.writers is None for gap in waiting):
        waiting = _with_writers(connection, waiting, passed, closed)
    position = max(reading.position, rows[-1].position) if rows else reading.position
    return LogBatch(
        transitions=tuple(rows),
        reading=Reading(position, tuple(waiting)),
        gone_before=_gone_before(connection, closed),
    )


def end_of_log(connection: Connection) -> Place:
    """The place of a reader that begins now: what is visible is passed, what is open is not."""
    position = connection.scalar(select(func.max(transitions.c.position))) or 0
    if not log_writers(connection, transitions):
        return Place(position)
    column = transitions.c.position
    seen = (
        select(column, func.lag(column).over(order_by=column).label("previous"))
        .where(column > position - START_WINDOW, column <= position)
        .subquery("seen")
    )
    gaps = connection.execute(
        select(seen.c.previous + 1, seen.c.position - 1)
        .where(seen.c.position > seen.c.previous + 1)
        .order_by(seen.c.position.desc())
        .limit(MAX_GAPS)
    )
    return Place(position, tuple(sorted((low, high) for low, high in gaps)))


def _read_rows(connection: Connection, reading: Reading, limit: int) -> list[TransitionView]:
    if not reading.gaps:
        parameters = {"position": reading.position, "limit": limit}
        return [TransitionView(*row) for row in connection.execute(_new_rows(), parameters)]
    batch, statement = _new_rows_and_gaps(connection.dialect.name)
    ranges = reading.place.gaps
    bounds = [[low for low, _ in ranges], [high for _, high in ranges]]
    parameters = {"position": reading.position, "limit": limit, **batch.parameters(bounds)}
    return [TransitionView(*row) for row in connection.execute(statement, parameters)]


@cache
def _new_rows() -> Select[Any]:
    return (
        select(*_COLUMNS)
        .where(transitions.c.position > bindparam("position", type_=BIG))
        .order_by(transitions.c.position)
        .limit(bindparam("limit"))
    )


@cache
def _new_rows_and_gaps(dialect_name: str) -> tuple[Batch, Any]:
    batch = Batch(dialect_name, "gaps", {"low": BIG, "high": BIG})
    inside = transitions.c.position.between(batch.rows.c.low, batch.rows.c.high)
    fresh = _new_rows().subquery("fresh")
    filled = select(*_COLUMNS).join_from(batch.rows, transitions, inside)
    both = union_all(select(fresh), filled).subquery("both")
    return batch, select(both).order_by(both.c.position).limit(bindparam("limit"))


def _unfilled(ranges: tuple[Range, ...], rows: Iterable[TransitionView]) -> tuple[Range, ...]:
    for row in rows:
        if not ranges or row.position > ranges[-1][1]:
            break
        ranges = without(ranges, row.position)
    return ranges


def _passed(position: int, rows: Iterable[TransitionView]) -> list[Range]:
    """The positions between new rows, and between them and the reader's position."""
    passed = []
    for row in rows:
        if row.position > position + 1:
            passed.append((position + 1, row.position - 1))
        position = max(position, row.position)
    return passed


def _with_writers(
    connection: Connection, waiting: list[Gap], passed: list[Range], closed: list[Range]
) -> list[Gap]:
    """``waiting`` and ``passed`` with the transactions to wait for.

    Where the order of positions is the order of commits, nothing is waited for.
    """
    writers = log_writers(connection, transitions)
    if writers is None:
        closed += [one for gap in waiting for one in gap.ranges] + passed
        return []
    known = [gap for gap in waiting if gap.writers is not None]
    unknown = [one for gap in waiting if gap.writers is None for one in gap.ranges]
    return [*known, Gap((*unknown, *passed), writers)]


def _gone_before(connection: Connection, closed: list[Range]) -> int | None:
    """Before which position rows are gone, if a closed gap lies before it.

    Not only the oldest rows go: a purge leaves those of jobs that stay.
    """
    if not closed:
        return None
    kept = connection.scalar(select(func.min(transitions.c.position))) or 0
    gone_before = max(kept, read_purged_position(connection) + 1)
    return gone_before if min(closed)[0] < gone_before else None


def read_purged_position(connection: Connection) -> int:
    """The last position that was purged; 0 while nothing was."""
    value = select(cast(facts.c.value, BIG)).where(facts.c.name == PURGED_POSITION)
    return connection.scalar(value) or 0

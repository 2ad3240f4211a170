"""The counter ledger: every batch of moves appends a few rows, so no page ever counts jobs.

One row says: in this minute, so many jobs of this queue and wire name went from one state to
another, having spent so long in the first. Births have no from, purges no to.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, insert, select

from latchwork.decisions.states import JobState
from latchwork.store.dialects import BatchWrite
from latchwork.store.schema import counter_entries

Passage = tuple[str, str, JobState | None, JobState | None, datetime, datetime]
"""Queue, wire name, from, to, when, and since when the job had been in from."""


_Key = tuple[tuple[int, int, int, int, int], str, str, JobState | None, JobState | None]


def bucket(seconds: float) -> int:
    """The power-of-two bucket of a duration: n holds 2**(n-1) to 2**n milliseconds, 0 below one."""
    return int(seconds * 1000).bit_length()


def append(connection: Connection, passages: Iterable[Passage]) -> None:
    """Append the ledger rows of one batch of moves, in the batch's own transaction."""
    statement, values = entries(connection, passages)
    statement.execute(connection, values)


def entries(
    connection: Connection, passages: Iterable[Passage]
) -> tuple[BatchWrite, Sequence[Sequence[Any]]]:
    """What ``append`` writes, to be written together with something else."""
    spent: defaultdict[_Key, list[float]] = defaultdict(list)
    for queue, wire_name, source, target, at, since in passages:
        minute = (at.year, at.month, at.day, at.hour, at.minute)
        key = (minute, queue, wire_name, source, target)
        spent[key].append((at - since).total_seconds())
    rows = [_entry(key, seconds) for key, seconds in spent.items()]
    return _append_statement(connection.dialect.name), list(zip(*rows, strict=True))


_COLUMNS = tuple(column for column in counter_entries.c if not column.primary_key)


@cache
def _append_statement(dialect: str) -> BatchWrite:
    columns = {column.name: column.type for column in _COLUMNS}

    def build(row: Any) -> Any:
        source = select(*(getattr(row, name) for name in columns))
        return insert(counter_entries).from_select(list(columns), source, include_defaults=False)

    return BatchWrite(dialect, columns, build, name="counted")


def _entry(key: _Key, seconds: list[float]) -> tuple[Any, ...]:
    """The ledger row of ``key``, in the order of the table's columns."""
    minute, queue, wire_name, source, target = key
    # A birth comes from nowhere: no time was spent there.
    buckets = Counter(map(bucket, seconds)) if source is not None else {}
    return (
        datetime(*minute, tzinfo=UTC), queue, wire_name, source, target, len(seconds),
        sum(seconds), json.dumps(buckets, separators=(",", ":")),
    )  # fmt: skip

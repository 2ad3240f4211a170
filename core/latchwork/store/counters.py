"""The counter ledger: every batch of moves appends a few rows, so no page ever counts jobs.

One row says: in this minute, so many jobs of this queue and wire name went from one state to
another, having spent so long in the first. Births have no from, purges no to.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime

from sqlalchemy import Connection, insert

from latchwork.decisions.states import JobState
from latchwork.store.schema import counter_entries

Passage = tuple[str, str, JobState | None, JobState | None, datetime, datetime]
"""Queue, wire name, from, to, when, and since when the job had been in from."""


_Key = tuple[tuple[int, int, int, int, int], str, str, JobState | None, JobState | None]


def bucket(seconds: float) -> int:
    """The power-of-two bucket of a duration: n holds 2**(n-1) to 2**n milliseconds, 0 below one."""
    return int(seconds * 1000).bit_length()


def append(connection: Connection, passages: Iterable[Passage]) -> None:
    """Append the ledger rows of one batch of moves, in the batch's own transaction."""
    spent: defaultdict[_Key, list[float]] = defaultdict(list)
    for queue, wire_name, source, target, at, since in passages:
        minute = (at.year, at.month, at.day, at.hour, at.minute)
        key = (minute, queue, wire_name, source, target)
        spent[key].append((at - since).total_seconds())
    connection.execute(insert(counter_entries), [_entry(key, spent[key]) for key in spent])


def _entry(key: _Key, seconds: list[float]) -> dict[str, object]:
    minute, queue, wire_name, source, target = key
    # A birth comes from nowhere: no time was spent there.
    buckets = Counter(map(bucket, seconds)) if source is not None else {}
    return {
        "minute": datetime(*minute, tzinfo=UTC),
        "queue": queue,
        "wire_name": wire_name,
        "from_state": source,
        "to_state": target,
        "count": len(seconds),
        "seconds": sum(seconds),
        "buckets": json.dumps(buckets, separators=(",", ":")),
    }

"""The counter ledger: every batch of moves appends a few rows, so no page ever counts jobs.

One row says: in this minute, so many jobs of this queue and wire name went from one state to
another, having spent so long in the first. Births have no from, purges no to.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, insert

from latchwork.decisions.states import JobState
from latchwork.store.schema import counter_entries

Passage = tuple[str, str, JobState | None, JobState | None, datetime, datetime]
"""Queue, wire name, from, to, when, and since when the job had been in from."""


@dataclass(slots=True)
class _Sum:
    count: int = 0
    seconds: float = 0.0
    buckets: Counter[int] = field(default_factory=Counter)


def bucket(seconds: float) -> int:
    """The power-of-two bucket of a duration: n holds 2**(n-1) to 2**n milliseconds, 0 below one."""
    return max(0, int(seconds * 1000)).bit_length()


def append(connection: Connection, passages: Iterable[Passage]) -> None:
    """Append the ledger rows of one batch of moves, in the batch's own transaction."""
    sums: dict[tuple[datetime, str, str, JobState | None, JobState | None], _Sum] = {}
    minutes: dict[datetime, datetime] = {}
    for queue, wire_name, source, target, at, since in passages:
        minute = minutes.get(at)
        if minute is None:
            minute = minutes[at] = at.replace(second=0, microsecond=0)
        key = (minute, queue, wire_name, source, target)
        total = sums.get(key)
        if total is None:
            total = sums[key] = _Sum()
        total.count += 1
        if source is not None:
            seconds = (at - since).total_seconds()
            total.seconds += seconds
            total.buckets[bucket(seconds)] += 1
    connection.execute(
        insert(counter_entries),
        [
            {
                "minute": minute,
                "queue": queue,
                "wire_name": wire_name,
                "from_state": source,
                "to_state": target,
                "count": total.count,
                "seconds": total.seconds,
                "buckets": json.dumps(total.buckets, separators=(",", ":")),
            }
            for (minute, queue, wire_name, source, target), total in sums.items()
        ],
    )

"""Follow the transition log from a place, without missing a committed row and without stalling.

The console's live pages, ``latchwork log --follow`` and observers all read through here.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Protocol

from latchwork.errors import StoreBusy, StoreUnavailable
from latchwork.store.database import Database
from latchwork.store.log_place import Place
from latchwork.store.log_watch import LogWatch
from latchwork.store.transition_log import LogBatch, Reading, end_of_log, read_batch
from latchwork.views import TransitionView

__all__ = ["LogBatch", "LogTail", "Place", "PlacedRows"]

POLL_SECONDS = 0.05
BATCH_ROWS = 1_000
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
"""How long a follower waits for a database that is away; twice as long each time."""


class HasDatabase(Protocol):
    """An application, for all that a tail needs of it."""

    @property
    def database(self) -> Database: ...


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows, each with the place it leaves its reader at, and the place after all of them."""

    rows: tuple[tuple[TransitionView, Place], ...]
    place: Place
    gone_before: int | None = None


class LogTail:
    """A reader of the log. Iterate over it with ``for`` or ``async for`` to follow for ever.

    Args:
        app: The application whose log is read.
        after: The token to go on from; None starts at the log's end.

    Raises:
        InvalidValue: ``after`` is no token.

    Following waits out a database that is away. ``close`` ends it, also from another thread or
    task. One thread or task at a time reads from a tail.
    """

    def __init__(self, app: HasDatabase, after: str | None = None) -> None:
        self._database = app.database
        place = self._database.read(end_of_log) if after is None else Place.parse(after)
        self._place = place
        self._reading = Reading.at(place)
        self._pending: deque[tuple[TransitionView, Place]] = deque()
        self._watch = LogWatch(self._database.engine)
        self._turn = threading.Lock()
        self._closed = threading.Event()
        self._unread = True
        self._pause_seconds = 0.0
        self.gone_before: int | None = None
        """Set when rows the tail had not read are no longer kept: those before this position."""

    @property
    def token(self) -> str:
        """The tail's place after the last row it gave out: the only thing to store or hand on."""
        return str(self._place)

    def read(self, limit: int = BATCH_ROWS) -> LogBatch:
        """The rows that are there now and were not given out yet, at most ``limit``; maybe none.

        Raises StoreUnavailable or StoreBusy when the database cannot be read.
        """
        given, gone_before = self._take(limit)
        return LogBatch(tuple(row for row, _ in given), self._reading, gone_before)

    def read_placed(self, limit: int = BATCH_ROWS) -> PlacedRows:
        """As ``read``, each row with the tail's place once it, and no later row, was given out."""
        given, gone_before = self._take(limit)
        return PlacedRows(tuple(given), self._place, gone_before)

    def close(self) -> None:
        """End every iteration over this tail."""
        self._closed.set()

    def __iter__(self) -> Iterator[TransitionView]:
        """Follow the log until the tail is closed."""
        try:
            while not self._closed.is_set():
                yield from self._give_out()
                self._follow_once()
                if not self._pending:
                    self._closed.wait(self._pause_seconds or POLL_SECONDS)
        finally:
            self._watch.close()

    async def __aiter__(self) -> AsyncIterator[TransitionView]:
        """Follow the log until the tail is closed."""
        try:
            while not self._closed.is_set():
                for row in self._give_out():
                    yield row
                await asyncio.to_thread(self._follow_once)
                if not self._pending:
                    await asyncio.sleep(self._pause_seconds or POLL_SECONDS)
        finally:
            self._watch.close()

    def _take(self, limit: int) -> tuple[list[tuple[TransitionView, Place]], int | None]:
        with self._turn:
            gone_before = None if self._pending else self._fetch(limit).gone_before
            given = [self._pending.popleft() for _ in range(min(limit, len(self._pending)))]
            self._place = given[-1][1] if self._pending else self._reading.place
            return given, gone_before

    def _give_out(self) -> Iterator[TransitionView]:
        while self._pending and not self._closed.is_set():
            row, self._place = self._pending.popleft()
            yield row

    def _follow_once(self) -> None:
        """Read a batch if there may be one; a database that is away only lengthens the pause."""
        with self._turn:
            self._unread = self._watch.may_have_news() or self._unread or bool(self._reading.gaps)
            if self._pending or not self._unread:
                return
            try:
                self._fetch(BATCH_ROWS)
            except (StoreUnavailable, StoreBusy):
                longer = self._pause_seconds * 2 or FIRST_PAUSE_SECONDS
                self._pause_seconds = min(longer, LONGEST_PAUSE_SECONDS)
            else:
                self._pause_seconds = 0.0

    def _fetch(self, limit: int) -> LogBatch:
        """Read on from where reading stands; the rows are then pending."""
        batch = self._database.read(read_batch, self._reading, limit=limit)
        self._pending.extend(batch.places(self._reading))
        self._reading = batch.reading
        self._unread = len(batch) == limit
        if not batch:
            self._place = batch.reading.place
        if batch.gone_before is not None:
            self.gone_before = batch.gone_before
        return batch

"""Keyset paging over filtered rows, as quickly at any table size.

No index serves every combination of filters, so a search walks the index of one filter and tests
the others on the way. The walk is bounded: first by a few hundred candidates, which nearly always
fill the page; then by many more, along each filter's index in turn. A search that meets its bound
says where it stopped, and the page's cursor goes on from there.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, literal, select, tuple_, union_all

from latchwork.views import SEARCH_BOUND

MAX_PAGE_ROWS = 200
WALK_BOUNDS = (500, SEARCH_BOUND)
"""Candidates that a filtered search looks at: in its first try, and at most."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place between rows: the page after it (newer rows) or before it (older rows)."""

    key: int
    newer: bool

    def turned(self) -> "Cursor":
        """The cursor of the other direction that meets the row this one stands on."""
        return Cursor(self.key + (1 if self.newer else -1), not self.newer)


@dataclass(frozen=True, slots=True)
class Walk:
    """Rows that an index gives in the order of ``key``, a unique number.

    ``prefix`` are the index's columns before ``key``, with their values.
    """

    rows: Select[Any]
    key: ColumnElement[int]
    prefix: tuple[tuple[ColumnElement[Any], Any], ...] = ()

    def from_cursor(self, cursor: Cursor | None, limit: int) -> Select[Any]:
        """The first ``limit`` rows from ``cursor`` on.

        The prefix is bounded from both sides instead of set equal, and ordered by: so no planner
        prefers to walk another index of the key through rows that do not match.
        """
        columns = [column for column, _ in self.prefix]
        values = [literal(value, column.type) for column, value in self.prefix]
        rows = self.rows
        newer = cursor is not None and cursor.newer
        if columns:
            low, high = tuple_(*columns) >= tuple_(*values), tuple_(*columns) <= tuple_(*values)
            rows = rows.where(*([low, high] if cursor is None else [high if newer else low]))
        if cursor is not None:
            place = tuple_(*columns, self.key)
            edge = tuple_(*values, literal(cursor.key, self.key.type))
            rows = rows.where(place > edge if newer else place < edge)
        return rows.order_by(*(_direction(one, cursor) for one in (*columns, self.key))).limit(
            limit
        )


@dataclass(frozen=True, slots=True)
class Term:
    """One filter: a test on candidates, and the walks that meet every row it lets pass, if any.

    ``columns`` are what the test looks at: a candidate is no wider than the tests need.
    """

    test: Callable[[Any], ColumnElement[bool]]
    columns: tuple[ColumnElement[Any], ...]
    walks: tuple[Walk, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """What a search met, in its direction; at ``stopped_at`` its bound ended it."""

    rows: Sequence[Any]
    more: bool
    stopped_at: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, newest first, and the cursors to both sides, None at the ends."""

    rows: Sequence[Any]
    older: Cursor | None
    newer: Cursor | None
    partial: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """A filtered table: ``everything`` walks all of it, ``name`` is its key in the rows.

    Every walk's rows have the same columns.
    """

    everything: Walk
    name: str
    terms: tuple[Term, ...]

    def page(self, connection: Connection, cursor: Cursor | None, *, limit: int) -> Page:
        """The page at ``cursor``, or the newest."""
        limit = min(limit, MAX_PAGE_ROWS)
        newer = cursor is not None and cursor.newer
        found = self.search(connection, cursor, limit)
        keys = [getattr(row, self.name) for row in found.rows]
        onward = found.stopped_at or (keys[-1] if found.more else None)
        ahead = None if onward is None else Cursor(onward, newer)
        back = None if cursor is None else self._back(connection, keys, cursor)
        return Page(
            rows=found.rows[::-1] if newer else found.rows,
            older=back if newer else ahead,
            newer=ahead if newer else back,
            partial=found.stopped_at is not None,
        )

    def _back(self, connection: Connection, keys: list[int], cursor: Cursor) -> Cursor | None:
        """The cursor to the side the reader came from, if anything is still there."""
        back = Cursor(keys[0], not cursor.newer) if keys else cursor.turned()
        found = self.search(connection, back, 1)
        return back if found.rows or found.stopped_at is not None else None

    def search(self, connection: Connection, cursor: Cursor | None, limit: int) -> Found:
        """The next ``limit`` rows from ``cursor`` on, or those found before a bound was met."""
        drivers = [term for term in self.terms if term.walks]
        if not self.terms or self.terms == tuple(drivers[:1]):
            walks = drivers[0].walks if drivers else (self.everything,)
            rows = connection.execute(_along(walks, cursor, limit + 1)).all()
            return Found(rows[:limit], more=len(rows) > limit)
        stopped: list[Found] = []
        for bound in WALK_BOUNDS:
            stopped = []
            for driver in drivers or (None,):
                found = self._walk(connection, driver, cursor, limit, bound)
                if found.stopped_at is None:
                    return found
                stopped.append(found)
        # Every walk met its bound: the one that came farthest has looked at the most.
        farthest = max if cursor is not None and cursor.newer else min
        return farthest(stopped, key=lambda found: found.stopped_at or 0)

    def _walk(
        self,
        connection: Connection,
        driver: Term | None,
        cursor: Cursor | None,
        limit: int,
        bound: int,
    ) -> Found:
        walks = (self.everything,) if driver is None else driver.walks
        others = [term for term in self.terms if term is not driver]
        tested = dict.fromkeys(column for term in others for column in term.columns)
        candidates = self._keys(walks, cursor, bound, tested).subquery("candidates")
        key = candidates.c[self.name]
        hits = (
            select(key)
            .where(*(term.test(candidates.c) for term in others))
            .order_by(_direction(key, cursor))
            .limit(limit + 1)
            .subquery("hits")
        )
        whole = self.everything.rows.join(hits, self.everything.key == hits.c[self.name])
        rows = connection.execute(whole.order_by(_direction(self.everything.key, cursor))).all()
        if len(rows) > limit:
            return Found(rows[:limit], more=True)
        last = self._keys(walks, cursor, bound, ()).subquery("last")
        key = last.c[self.name]
        stopped_at = connection.scalar(
            select(key).order_by(_direction(key, cursor)).offset(bound - 1).limit(1)
        )
        return Found(rows, more=False, stopped_at=stopped_at)

    def _keys(
        self,
        walks: tuple[Walk, ...],
        cursor: Cursor | None,
        limit: int,
        columns: Iterable[ColumnElement[Any]],
    ) -> Select[Any]:
        narrow = [
            replace(walk, rows=walk.rows.with_only_columns(walk.key.label(self.name), *columns))
            for walk in walks
        ]
        return _along(tuple(narrow), cursor, limit)


def _along(walks: tuple[Walk, ...], cursor: Cursor | None, limit: int) -> Select[Any]:
    """The first ``limit`` rows of ``walks`` from ``cursor`` on, each along its own index."""
    limited = [walk.from_cursor(cursor, limit) for walk in walks]
    if len(limited) == 1:
        return limited[0]
    merged = union_all(*(select(rows.subquery()) for rows in limited)).subquery("merged")
    key = merged.c[walks[0].key.key or 0]
    return select(merged).order_by(_direction(key, cursor)).limit(limit)


def _direction(key: ColumnElement[Any], cursor: Cursor | None) -> ColumnElement[Any]:
    return key.asc() if cursor is not None and cursor.newer else key.desc()

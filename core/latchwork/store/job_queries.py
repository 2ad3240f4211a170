"""Listing jobs: newest first, paged by enqueue number both ways, as quickly at any table size.

No index serves every combination of filters, so a listing walks the index of one filter and tests
the others on the way. The walk is bounded: first by a few hundred candidates, which nearly always
fill the page; then by many more, along each filter's index in turn. A walk that meets its bound
returns a partial page whose cursor goes on from there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, exists, literal_column, select, union_all
from sqlalchemy.sql.elements import ColumnElement

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.store.job_rows import LIST_COLUMNS, job_view
from latchwork.store.schema import State, job_tags, jobs
from latchwork.views import JobFilter, JobPage, JobView, Tag

MAX_PAGE_ROWS = 200
WALK_BOUNDS = (500, 20_000)
"""Candidates that a filtered listing looks at: in its first try, and at most."""

_CAUSED_STATES = (JobState.CANCELLED, JobState.DEAD_LETTERED, JobState.QUARANTINED)
_LARGEST_SEQUENCE = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Cursor:
    """A place in a listing: rows after (newer) or before (older than) an enqueue number."""

    sequence: int
    newer: bool

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """The cursor that ``after:SEQUENCE`` or ``before:SEQUENCE`` names.

        Raises InvalidValue for anything else.
        """
        direction, colon, number = text.partition(":")
        plain = number.isascii() and number.isdigit() and len(number) < 20
        if direction not in ("after", "before") or not colon or not plain:
            raise InvalidValue("page", "is not a place in a listing")
        if int(number) > _LARGEST_SEQUENCE:
            raise InvalidValue("page", "is not a place in a listing")
        return cls(int(number), newer=direction == "after")

    def __str__(self) -> str:
        """The cursor as links carry it."""
        return f"{'after' if self.newer else 'before'}:{self.sequence}"


@dataclass(frozen=True, slots=True)
class _Walk:
    """Jobs that an index gives in the order of ``key``, which is their enqueue number."""

    rows: Select[Any]
    key: ColumnElement[int]


@dataclass(frozen=True, slots=True)
class _Term:
    """One filter: a test on candidates, and the walks that meet every job it lets pass, if any."""

    test: Callable[[Any], ColumnElement[bool]]
    walks: tuple[_Walk, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    """What a search met: ``stopped_at`` is the enqueue number at which its bound ended it."""

    rows: list[Row[Any]]
    more: bool
    stopped_at: int | None = None


def list_jobs(
    connection: Connection, job_filter: JobFilter, cursor: Cursor | None, *, limit: int
) -> JobPage:
    """One page of the jobs that match ``job_filter``."""
    limit = min(limit, MAX_PAGE_ROWS)
    newer = cursor is not None and cursor.newer
    found = _search(connection, job_filter, cursor, limit)
    page = [job_view(row) for row in found.rows]
    if newer:
        page.reverse()
    onward = _onward(page, found, newer=newer)
    back = None if cursor is None else _back(connection, job_filter, page, cursor)
    following, preceding = (back, onward) if newer else (onward, back)
    return JobPage(
        jobs=tuple(page),
        next=None if following is None else str(following),
        previous=None if preceding is None else str(preceding),
        partial=found.stopped_at is not None,
    )


def _onward(page: list[JobView], found: _Found, *, newer: bool) -> Cursor | None:
    if found.stopped_at is not None:
        return Cursor(found.stopped_at, newer)
    if not found.more:
        return None
    return Cursor(page[0].sequence if newer else page[-1].sequence, newer)


def _back(
    connection: Connection, job_filter: JobFilter, page: list[JobView], cursor: Cursor
) -> Cursor | None:
    """The cursor to the side the reader came from, if anything is still there."""
    if page:
        edge = page[-1].sequence if cursor.newer else page[0].sequence
    else:
        edge = cursor.sequence + (1 if cursor.newer else -1)
    back = Cursor(edge, not cursor.newer)
    found = _search(connection, job_filter, back, 1)
    return back if found.rows or found.stopped_at is not None else None


def _search(
    connection: Connection, job_filter: JobFilter, cursor: Cursor | None, limit: int
) -> _Found:
    terms = list(_terms(job_filter))
    if len(terms) < 2:
        walks = terms[0].walks if terms else (_along(),)
        rows = connection.execute(_ordered(walks, cursor, limit + 1)).all()
        return _Found(list(rows[:limit]), len(rows) > limit)
    stopped: list[_Found] = []
    for bound in WALK_BOUNDS:
        stopped = []
        for driver in (term for term in terms if term.walks):
            found = _walk(connection, driver, terms, cursor, limit, bound)
            if found.stopped_at is None:
                return found
            stopped.append(found)
    # Every walk met its bound: the one that came farthest has looked at the most.
    newer = cursor is not None and cursor.newer
    farthest = max if newer else min
    return farthest(stopped, key=lambda found: found.stopped_at or 0)


def _walk(
    connection: Connection,
    driver: _Term,
    terms: list[_Term],
    cursor: Cursor | None,
    limit: int,
    bound: int,
) -> _Found:
    candidates = _ordered(driver.walks, cursor, bound).subquery("candidates")
    order = candidates.c.sequence
    newer = cursor is not None and cursor.newer
    rows = connection.execute(
        select(candidates)
        .where(*(term.test(candidates.c) for term in terms if term is not driver))
        .order_by(order if newer else order.desc())
        .limit(limit + 1)
    ).all()
    if len(rows) > limit:
        return _Found(list(rows[:limit]), more=True)
    last = _ordered(driver.walks, cursor, bound, only_sequence=True).subquery("last")
    stopped_at = connection.scalar(
        select(last.c.sequence)
        .order_by(last.c.sequence if newer else last.c.sequence.desc())
        .offset(bound - 1)
    )
    return _Found(list(rows), more=False, stopped_at=stopped_at)


def _ordered(
    walks: tuple[_Walk, ...],
    cursor: Cursor | None,
    limit: int,
    *,
    only_sequence: bool = False,
) -> Select[Any]:
    """The first ``limit`` rows of ``walks`` from ``cursor`` on, each along its own index."""
    newer = cursor is not None and cursor.newer
    limited = []
    for walk in walks:
        key, one = walk.key, walk.rows
        if only_sequence:
            one = one.with_only_columns(key.label("sequence"))
        if cursor is not None:
            one = one.where(key > cursor.sequence if newer else key < cursor.sequence)
        limited.append(one.order_by(key if newer else key.desc()).limit(limit))
    if len(limited) == 1:
        return limited[0]
    merged = union_all(*(select(one.subquery()) for one in limited)).subquery("merged")
    order = merged.c.sequence if newer else merged.c.sequence.desc()
    return select(merged).order_by(order).limit(limit)


def _terms(job_filter: JobFilter) -> Iterator[_Term]:
    """The filters in force; those that are walked along come first."""
    if job_filter.tag is not None:
        yield _tag_term(job_filter.tag)
    states = job_filter.states
    if not states and (job_filter.cause_code is not None or job_filter.cause_type is not None):
        states = _CAUSED_STATES
    if states:
        words = [literal_column(f"'{state.value}'", State) for state in dict.fromkeys(states)]
        yield _Term(
            lambda row: row.state.in_(words), tuple(_along(jobs.c.state == word) for word in words)
        )
    if job_filter.wire_name is not None:
        yield _equals(jobs.c.wire_name, job_filter.wire_name, walked=True)
    if job_filter.queue is not None:
        yield _equals(jobs.c.queue, job_filter.queue, walked=True)
    if job_filter.cause_code is not None:
        yield _equals(jobs.c.cause_code, job_filter.cause_code, walked=False)
    if job_filter.cause_type is not None:
        yield _equals(jobs.c.cause_type, job_filter.cause_type, walked=False)


def _along(*conditions: ColumnElement[bool]) -> _Walk:
    return _Walk(select(*LIST_COLUMNS).where(*conditions), jobs.c.sequence)


def _equals(column: ColumnElement[Any], value: str, *, walked: bool) -> _Term:
    walks = (_along(column == value),) if walked else ()
    return _Term(lambda row: row[column.key] == value, walks)


def _tag_term(tag: Tag) -> _Term:
    key, value = (tag, "") if isinstance(tag, str) else tag
    same = (job_tags.c.key == key, job_tags.c.value == value)
    tagged = select(*LIST_COLUMNS).join(job_tags, job_tags.c.job_sequence == jobs.c.sequence)
    return _Term(
        lambda row: exists().where(job_tags.c.job_sequence == row.sequence, *same),
        (_Walk(tagged.where(*same), job_tags.c.job_sequence),),
    )

"""Listing jobs: newest first by enqueue number, filtered, paged both ways."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, select

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.store.failure_grouping import FAILED
from latchwork.store.job_rows import LIST_COLUMNS, job_view
from latchwork.store.keyset import Cursor, Found, Listing, Term, Walk
from latchwork.store.schema import job_tags, jobs
from latchwork.store.tags import split_tag
from latchwork.views import JobFilter, JobPage, Tag

_CAUSED_STATES = (JobState.CANCELLED, JobState.DEAD_LETTERED, JobState.QUARANTINED)
_LARGEST_SEQUENCE = 2**63 - 1

Columns = Sequence[ColumnElement[Any]]
MEMBER_COLUMNS = (jobs.c.sequence, jobs.c.id, jobs.c.state)


def list_jobs(
    connection: Connection, job_filter: JobFilter, cursor: Cursor | None, *, limit: int
) -> JobPage:
    """One page of the jobs that match ``job_filter``."""
    page = _listing(job_filter, LIST_COLUMNS).page(connection, cursor, limit=limit)
    return JobPage(
        jobs=tuple(job_view(row) for row in page.rows),
        next=None if page.older is None else f"before:{page.older.key}",
        previous=None if page.newer is None else f"after:{page.newer.key}",
        partial=page.partial,
    )


def find_members(
    connection: Connection, job_filter: JobFilter, *, before: int | None, limit: int
) -> Found:
    """The next jobs that match, newest first, by ``MEMBER_COLUMNS``: for acting on all of them."""
    cursor = None if before is None else Cursor(before, newer=False)
    return _listing(job_filter, MEMBER_COLUMNS).search(connection, cursor, limit)


def parse_cursor(text: str) -> Cursor:
    """The cursor that ``after:SEQUENCE`` or ``before:SEQUENCE`` names.

    Raises InvalidValue for anything else.
    """
    direction, _, number = text.partition(":")
    plain = number.isascii() and number.isdigit() and len(number) < 20
    if direction not in ("after", "before") or not plain or int(number) > _LARGEST_SEQUENCE:
        raise InvalidValue("page", "is not a place in a listing")
    return Cursor(int(number), newer=direction == "after")


def _listing(job_filter: JobFilter, columns: Columns) -> Listing:
    return Listing(_along(columns), "sequence", tuple(_terms(job_filter, columns)))


def _terms(job_filter: JobFilter, columns: Columns) -> Iterator[Term]:
    """The filters in force."""
    if job_filter.tag is not None:
        yield _tag_term(job_filter.tag, columns)
    if job_filter.cause_group is not None:
        yield _group_term(job_filter.cause_group, columns)
    states = job_filter.states
    if not states and (job_filter.cause_code is not None or job_filter.cause_type is not None):
        states = _CAUSED_STATES
    if states:
        chosen = list(dict.fromkeys(states))
        yield Term(
            lambda row: row.state.in_(chosen),
            (jobs.c.state,),
            tuple(_along(columns, (jobs.c.state, state)) for state in chosen),
        )
    if job_filter.wire_name is not None:
        walks = (_along(columns, (jobs.c.wire_name, job_filter.wire_name)),)
        yield _equals(jobs.c.wire_name, job_filter.wire_name, walks)
    for column, value in (
        (jobs.c.queue, job_filter.queue),
        (jobs.c.cause_code, job_filter.cause_code),
        (jobs.c.cause_type, job_filter.cause_type),
    ):
        if value is not None:
            yield _equals(column, value)


def _along(columns: Columns, *prefix: tuple[ColumnElement[Any], Any]) -> Walk:
    return Walk(select(*columns), jobs.c.sequence, prefix)


def _equals(column: ColumnElement[Any], value: str, walks: tuple[Walk, ...] = ()) -> Term:
    return Term(lambda row: row[column.key] == value, (column,), walks)


def _group_term(key: str, columns: Columns) -> Term:
    """Only failed jobs are in a group: its index holds no others."""
    grouped = select(*columns).where(jobs.c.cause_group.is_not(None), FAILED)
    return Term(
        lambda row: row.cause_group == key,
        (jobs.c.cause_group,),
        (Walk(grouped, jobs.c.sequence, ((jobs.c.cause_group, key),)),),
    )


def _tag_term(tag: Tag, columns: Columns) -> Term:
    key, value = split_tag(tag)
    find = ((job_tags.c.key, key), (job_tags.c.value, value))
    same = tuple(column == wanted for column, wanted in find)
    tagged = select(*columns).join(job_tags, job_tags.c.job_sequence == jobs.c.sequence)
    return Term(
        lambda row: exists().where(job_tags.c.job_sequence == row.sequence, *same),
        (),
        (Walk(tagged, job_tags.c.job_sequence, find),),
    )

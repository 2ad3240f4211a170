"""Listing jobs: newest first by enqueue number, filtered, paged both ways."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, select

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.store.job_rows import LIST_COLUMNS, job_view
from latchwork.store.keyset import Cursor, Listing, Term, Walk
from latchwork.store.schema import job_tags, jobs
from latchwork.store.tags import split_tag
from latchwork.views import JobFilter, JobPage, Tag

_CAUSED_STATES = (JobState.CANCELLED, JobState.DEAD_LETTERED, JobState.QUARANTINED)
_LARGEST_SEQUENCE = 2**63 - 1


def list_jobs(
    connection: Connection, job_filter: JobFilter, cursor: Cursor | None, *, limit: int
) -> JobPage:
    """One page of the jobs that match ``job_filter``."""
    listing = Listing(_along(), "sequence", tuple(_terms(job_filter)))
    page = listing.page(connection, cursor, limit=limit)
    return JobPage(
        jobs=tuple(job_view(row) for row in page.rows),
        next=None if page.older is None else f"before:{page.older.key}",
        previous=None if page.newer is None else f"after:{page.newer.key}",
        partial=page.partial,
    )


def parse_cursor(text: str) -> Cursor:
    """The cursor that ``after:SEQUENCE`` or ``before:SEQUENCE`` names.

    Raises InvalidValue for anything else.
    """
    direction, _, number = text.partition(":")
    plain = number.isascii() and number.isdigit() and len(number) < 20
    if direction not in ("after", "before") or not plain or int(number) > _LARGEST_SEQUENCE:
        raise InvalidValue("page", "is not a place in a listing")
    return Cursor(int(number), newer=direction == "after")


def _terms(job_filter: JobFilter) -> Iterator[Term]:
    """The filters in force."""
    if job_filter.tag is not None:
        yield _tag_term(job_filter.tag)
    states = job_filter.states
    if not states and (job_filter.cause_code is not None or job_filter.cause_type is not None):
        states = _CAUSED_STATES
    if states:
        chosen = list(dict.fromkeys(states))
        yield Term(
            lambda row: row.state.in_(chosen),
            (jobs.c.state,),
            tuple(_along((jobs.c.state, state)) for state in chosen),
        )
    if job_filter.wire_name is not None:
        yield _equals(jobs.c.wire_name, job_filter.wire_name, walked=True)
    if job_filter.queue is not None:
        yield _equals(jobs.c.queue, job_filter.queue, walked=False)
    if job_filter.cause_code is not None:
        yield _equals(jobs.c.cause_code, job_filter.cause_code, walked=False)
    if job_filter.cause_type is not None:
        yield _equals(jobs.c.cause_type, job_filter.cause_type, walked=False)


def _along(*prefix: tuple[ColumnElement[Any], Any]) -> Walk:
    return Walk(select(*LIST_COLUMNS), jobs.c.sequence, prefix)


def _equals(column: ColumnElement[Any], value: str, *, walked: bool) -> Term:
    walks = (_along((column, value)),) if walked else ()
    return Term(lambda row: row[column.key] == value, (column,), walks)


def _tag_term(tag: Tag) -> Term:
    key, value = split_tag(tag)
    find = ((job_tags.c.key, key), (job_tags.c.value, value))
    same = tuple(column == wanted for column, wanted in find)
    tagged = select(*LIST_COLUMNS).join(job_tags, job_tags.c.job_sequence == jobs.c.sequence)
    return Term(
        lambda row: exists().where(job_tags.c.job_sequence == row.sequence, *same),
        (),
        (Walk(tagged, job_tags.c.job_sequence, find),),
    )

"""Pages of the transition log, one job's history, and where in the log a moment is."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, and_, func, literal_column, select

from latchwork.decisions.states import JobState
from latchwork.store.keyset import Cursor, Listing, Term, Walk
from latchwork.store.log_writing import KEPT_ROWS_PER_JOB
from latchwork.store.schema import NOT_FAILED, State, jobs, transitions
from latchwork.store.transition_log import LIST_COLUMNS, end_of_log
from latchwork.views import History, LogFilter, TransitionPage, TransitionView


def read_history(connection: Connection, job_id: UUID) -> History:
    """The kept log rows of one job, oldest first, with their failure details."""
    of_job = transitions.c.job_sequence == jobs.c.sequence
    rows = connection.execute(
        select(jobs.c.next_ordinal, *LIST_COLUMNS, transitions.c.failure_detail)
        .join_from(jobs, transitions, of_job, isouter=True)
        .where(jobs.c.id == job_id)
        .order_by(transitions.c.ordinal)
    ).all()
    written = rows[0].next_ordinal if rows else 0
    kept = tuple(TransitionView(*row[1:]) for row in rows if row.position is not None)
    first = kept[0].ordinal if kept else 0
    # Below the cap nothing was dropped: what is missing was never logged.
    dropped = first if written > KEPT_ROWS_PER_JOB else 0
    return History(
        kept,
        dropped,
        unlogged=written - dropped - len(kept),
        logged_to_end=not kept or kept[-1].ordinal == written - 1,
    )


def list_transitions(
    connection: Connection, log_filter: LogFilter, cursor: Cursor | None, *, limit: int
) -> TransitionPage:
    """One page of the log, newest first, and the place to follow it from.

    The place is read before the rows: a row committed between the two is on the page and comes
    again, never in neither.
    """
    place = end_of_log(connection)
    listing = Listing(_along(), "position", tuple(_terms(connection, log_filter)))
    page = listing.page(connection, cursor, limit=limit)
    kept = connection.execute(
        select(transitions.c.position, transitions.c.at).order_by(transitions.c.position).limit(1)
    ).first()
    return TransitionPage(
        transitions=tuple(TransitionView(*row) for row in page.rows),
        token=str(place),
        older=None if page.older is None else page.older.key,
        newer=None if page.newer is None else page.newer.key,
        kept_from=None if kept is None else kept.position,
        kept_since=None if kept is None else kept.at,
        partial=page.partial,
    )


def position_at(connection: Connection, moment: datetime) -> int:
    """The last position written at or before ``moment``; 0 if there is none.

    Times rise with positions but for small differences between nodes, so halving finds it in a few
    look-ups by primary key, without an index on times.
    """
    position = transitions.c.position
    first, last = connection.execute(select(_edge(func.min), _edge(func.max))).one()
    if first is None:
        return 0
    low, high = first - 1, last
    while low < high:
        middle = (low + high + 1) // 2
        found, at = connection.execute(
            select(position, transitions.c.at).where(position >= middle).order_by(position).limit(1)
        ).one()
        if at <= moment:
            low = min(found, high)
        else:
            high = middle - 1
    return low if low >= first else 0


def _edge(which: Any) -> Any:
    return select(which(transitions.c.position)).scalar_subquery()


def _along(*conditions: ColumnElement[bool]) -> Walk:
    return Walk(select(*LIST_COLUMNS).where(*conditions), transitions.c.position)


def _terms(connection: Connection, log_filter: LogFilter) -> Iterator[Term]:
    columns = transitions.c
    if log_filter.job_id is not None:
        # One job has few rows, found by its own index.
        found = select(jobs.c.sequence).where(jobs.c.id == log_filter.job_id)
        sequence = connection.scalar(found) or 0
        same = transitions.c.job_sequence == sequence
        yield Term(lambda row: row.job_id == log_filter.job_id, (columns.job_id,), (_along(same),))
    if log_filter.failing:
        yield Term(_failing, (columns.previous_state, columns.state), (_along(_failing(columns)),))
    if log_filter.states:
        states = set(log_filter.states)
        yield Term(lambda row: row.state.in_(states), (columns.state,))
    if log_filter.queue is not None:
        yield Term(lambda row: row.queue == log_filter.queue, (columns.queue,))
    if log_filter.wire_name is not None:
        yield Term(lambda row: row.wire_name == log_filter.wire_name, (columns.wire_name,))


def _failing(row: Any) -> ColumnElement[bool]:
    """``TransitionView.failing``, written out as the partial index has it."""
    leased = row.previous_state == literal_column(f"'{JobState.LEASED.value}'", State)
    return and_(
        leased, *(row.state != literal_column(f"'{end.value}'", State) for end in NOT_FAILED)
    )

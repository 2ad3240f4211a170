"""Reading workflows: their status is derived, from an index that holds the state of each member."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Exists,
    Uuid,
    and_,
    exists,
    func,
    literal,
    not_,
    select,
    type_coerce,
)

from latchwork.decisions.states import JobState
from latchwork.decisions.workflows import DECIDING_STATES, WorkflowStatus
from latchwork.errors import InvalidValue
from latchwork.store.column_types import IdNumber
from latchwork.store.dialects import array, in_array
from latchwork.store.keyset import Cursor, Listing, Term, Walk
from latchwork.store.queue_queries import COUNT_BOUND, bounded
from latchwork.store.schema import in_state, jobs, workflows
from latchwork.views import BoundedCount
from latchwork.workflow_views import WorkflowDetail, WorkflowPage, WorkflowView

MAX_RESTARTS = 20
"""Restarts of one workflow that its page links to."""

_ID: Uuid[UUID] = Uuid()
_KEY = type_coerce(workflows.c.id, IdNumber)
"""Ids are UUIDv7: newest first is the order of the key itself."""

_ROWS = select(
    _KEY.label("key"), workflows.c.name, workflows.c.created_at, workflows.c.restarted_from
)


def list_workflows(
    connection: Connection,
    *,
    status: WorkflowStatus | None,
    name: str | None,
    cursor: Cursor | None,
    limit: int,
) -> WorkflowPage:
    """One page of the workflows of this status and name, if any are given."""
    terms = [] if name is None else [_name_term(name)]
    terms += [] if status is None else [_status_term(status)]
    listing = Listing(Walk(_ROWS, _KEY), "key", tuple(terms))
    page = listing.page(connection, cursor, limit=limit)
    return WorkflowPage(
        workflows=_views(connection, page.rows),
        next=None if page.older is None else f"before:{UUID(int=page.older.key)}",
        previous=None if page.newer is None else f"after:{UUID(int=page.newer.key)}",
        partial=page.partial,
    )


def find_workflow(
    connection: Connection, workflow_id: UUID, *, with_input: bool
) -> WorkflowDetail | None:
    """One workflow, and those that restart it; None if it is unknown."""
    of_id = workflows.c.id == workflow_id
    row = connection.execute(_ROWS.add_columns(workflows.c.input).where(of_id)).one_or_none()
    if row is None:
        return None
    restarts = (
        select(workflows.c.id)
        .where(workflows.c.restarted_from == workflow_id)
        .order_by(workflows.c.id.desc())
        .limit(MAX_RESTARTS)
    )
    (view,) = _views(connection, [row])
    return WorkflowDetail(
        workflow=view,
        input=row.input if with_input else None,
        restarted_as=tuple(connection.scalars(restarts)),
    )


def parse_cursor(text: str) -> Cursor:
    """The cursor that ``after:ID`` or ``before:ID`` names; raises InvalidValue otherwise."""
    direction, _, place = text.partition(":")
    try:
        key = UUID(place).int
    except ValueError:
        key = -1
    if direction not in ("after", "before") or key < 0:
        raise InvalidValue("page", "is not a place in a listing")
    return Cursor(key, newer=direction == "after")


def _name_term(name: str) -> Term:
    walk = Walk(_ROWS, _KEY, ((workflows.c.name, name),))
    return Term(lambda one: one.name == name, (workflows.c.name,), (walk,))


def _status_term(status: WorkflowStatus) -> Term:
    """Workflows with a member in a deciding state, and none in a state that decides before it."""
    order = list(DECIDING_STATES)
    earlier = frozenset().union(*(DECIDING_STATES[one] for one in order[: order.index(status)]))

    def test(one: Any) -> ColumnElement[bool]:
        workflow_id = type_coerce(one.key, _ID)
        decided = _has_member(workflow_id, DECIDING_STATES[status])
        return and_(not_(_has_member(workflow_id, earlier)), decided) if earlier else decided

    return Term(test, ())


def _has_member(workflow_id: ColumnElement[UUID], states: Collection[JobState]) -> Exists:
    of_states = jobs.c.state.in_(sorted(states))
    return exists().where(jobs.c.workflow_id == workflow_id, of_states)


def _views(connection: Connection, rows: Any) -> tuple[WorkflowView, ...]:
    ids = [UUID(int=row.key) for row in rows]
    counts = count_members(connection, ids)
    return tuple(
        WorkflowView(
            id=id_,
            name=row.name,
            created_at=row.created_at,
            restarted_from=row.restarted_from,
            counts=counts[id_],
        )
        for id_, row in zip(ids, rows, strict=True)
    )


def count_members(
    connection: Connection, workflow_ids: list[UUID]
) -> dict[UUID, dict[JobState, BoundedCount]]:
    """How many members of each workflow are in each state, every count stopped at its bound."""
    if not workflow_ids:
        return {}
    found = in_array(connection.dialect.name, workflows.c.id, "ids", _ID)
    columns = [_bounded_count(state).label(state.value) for state in JobState]
    rows = connection.execute(
        select(workflows.c.id, *columns).where(found),
        {"ids": array(connection, workflow_ids, _ID)},
    )
    return {
        row.id: {
            state: bounded(count) for state in JobState if (count := row._mapping[state.value])
        }
        for row in rows
    }


def _bounded_count(state: JobState) -> Any:
    """Counted along the index of workflow and state, up to the bound."""
    some = (
        select(literal(1))
        .where(jobs.c.workflow_id == workflows.c.id, in_state(state))
        .correlate(workflows)
        .limit(COUNT_BOUND + 1)
        .subquery()
    )
    return select(func.count()).select_from(some).scalar_subquery()

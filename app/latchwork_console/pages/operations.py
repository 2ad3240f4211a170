"""``/operations``: requeues and cancels of many jobs, how far each is and what it met."""

from dataclasses import fields
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from latchwork.bulk_shapes import member_shape, operation_shape
from latchwork.bulk_views import BulkMember, BulkOperation
from latchwork_console.console import Console, console_of, permits
from latchwork_console.job_filters import job_chips, read_position
from latchwork_console.live_views import LiveView, subject_id
from latchwork_console.operation_contexts import (
    PERMISSIONS,
    MemberRow,
    OperationContext,
    OperationRow,
    OperationsContext,
    progress_of,
    sentence_of,
    words_of,
    words_of_filter,
)
from latchwork_console.rendering import Surroundings, respond, respond_json, wants_json

PAGE_MEMBERS = 50


def show(request: Request) -> Response:
    """Answer the newest operations."""
    found = console_of(request).app.monitor.bulk_operations()
    if wants_json(request):
        return respond_json({"operations": [operation_shape(one) for one in found]})
    rows = tuple(
        OperationRow(one, sentence_of(one), words_of_filter(one.job_filter)) for one in found
    )
    return respond(request, page="pages/operations.html", context=OperationsContext(rows))


def show_one(request: Request) -> Response:
    """Answer one operation: its progress, its canary, and a page of its members."""
    console = console_of(request)
    operation = operation_of(request)
    after = read_position(request.query_params, "after") or 0
    if wants_json(request):
        members = console.app.monitor.bulk_members(operation.id, after=after, limit=PAGE_MEMBERS)
        return respond_json(
            operation_shape(operation) | {"members": [member_shape(one) for one in members]}
        )
    permitted = permits(request, PERMISSIONS[operation.action])
    context = read_operation(console, operation, after, permitted=permitted)
    return respond(request, page="pages/operation.html", context=context)


def read_operation(
    console: Console, operation: BulkOperation, after: int, *, permitted: bool
) -> OperationContext:
    """What the page of an operation shows, with its members from after number ``after`` on."""
    monitor = console.app.monitor
    found = monitor.bulk_members(operation.id, after=after, limit=PAGE_MEMBERS + 1)
    members = found[:PAGE_MEMBERS]
    progress = progress_of(operation, canary_of(console, operation), permitted=permitted)
    return OperationContext(
        **{one.name: getattr(progress, one.name) for one in fields(progress)},
        chips=job_chips(operation.job_filter),
        members=tuple(MemberRow(one, words_of(operation.action, one.outcome)) for one in members),
        after=after,
        next_after=members[-1].number if len(found) > len(members) else None,
    )


def operation_of(request: Request) -> BulkOperation:
    """The operation of the address.

    Raises:
        HTTPException: 404, there is none.
    """
    operation_id: UUID = request.path_params["operation_id"]
    operation = console_of(request).app.monitor.bulk_operation(operation_id)
    if operation is None:
        raise HTTPException(404, "There is no such operation; they are kept for 14 days.")
    return operation


def canary_of(console: Console, operation: BulkOperation) -> BulkMember | None:
    """The member that went first alone, if one did or does."""
    if operation.allowed is None or operation.total is None:
        return None
    members = console.app.monitor.bulk_members(operation.id, limit=1)
    return members[0] if members else None


def _regions(console: Console, around: Surroundings, subject: str) -> str:
    operation_id = subject_id(subject)
    operation = console.app.monitor.bulk_operation(operation_id) if operation_id else None
    if operation is None:
        return ""
    permitted = PERMISSIONS[operation.action] in around.permissions
    context = read_operation(console, operation, 0, permitted=permitted)
    return console.renderer.render("partials/operation_regions.html", context, around)


LIVE = LiveView(regions=_regions)

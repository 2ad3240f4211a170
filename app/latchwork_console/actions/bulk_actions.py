"""Acting on all jobs of a filter or group as one operation, and a word on one that runs."""

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.bulk_shapes import operation_shape
from latchwork.bulk_views import BulkAction, BulkOperation, BulkOutcome
from latchwork.views import JobFilter
from latchwork_console.actions.selections import MAX_SELECTED
from latchwork_console.console import console_of, permits
from latchwork_console.job_filters import job_chips, read_job_filter
from latchwork_console.operation_contexts import PERMISSIONS, MatchingContext
from latchwork_console.pages.failures import group_of
from latchwork_console.pages.operations import operation_of
from latchwork_console.rendering import link, respond, respond_json, wants_json


async def requeue_matching(request: Request) -> Response:
    """``POST /jobs/requeue-matching``: every failed job of the listing's filter."""
    return await _act_on_matching(request, BulkAction.REQUEUE)


async def cancel_matching(request: Request) -> Response:
    """``POST /jobs/cancel-matching``: every live job of the listing's filter."""
    return await _act_on_matching(request, BulkAction.CANCEL)


async def requeue_group(request: Request) -> Response:
    """``POST /failures/{key}/requeue``: one job of the group first, or all with ``all=yes``."""
    console = console_of(request)
    group = await run_in_threadpool(group_of, request)
    form = await request.form()
    return await _begin(
        request,
        lambda: console.app.operator.requeue_group(
            group.key, actor=console.actor, canary=form.get("all") != "yes"
        ),
    )


async def let_follow(request: Request) -> Response:
    """``POST /operations/{operation_id}/continue``: the rest follows the canary."""
    return await _say(request, console_of(request).app.operator.continue_operation)


async def stop(request: Request) -> Response:
    """``POST /operations/{operation_id}/stop``: no further member is acted on."""
    return await _say(request, console_of(request).app.operator.stop_operation)


async def _act_on_matching(request: Request, action: BulkAction) -> Response:
    """Show what acting on every matching job would do; begin once it is confirmed.

    A program that asks for JSON has no page to confirm on: its request begins at once.
    """
    console = console_of(request)
    operator, actor = console.app.operator, console.actor
    # The listing's own form carries its ticks along; they say nothing here.
    form = await request.form(max_fields=MAX_SELECTED + 20)
    back = _text(form, "back")
    job_filter = read_job_filter(QueryParams(back))
    if not wants_json(request) and form.get("confirmed") != "yes":
        return await run_in_threadpool(_ask, request, action, job_filter, back)
    if action is BulkAction.CANCEL:
        return await _begin(request, lambda: operator.cancel_matching(job_filter, actor=actor))
    canary = form.get("canary") == "yes"
    return await _begin(
        request, lambda: operator.requeue_matching(job_filter, actor=actor, canary=canary)
    )


def _ask(request: Request, action: BulkAction, job_filter: JobFilter, back: str) -> Response:
    operator = console_of(request).app.operator
    preview = (
        operator.preview_requeue_matching
        if action is BulkAction.REQUEUE
        else operator.preview_cancel_matching
    )
    return respond(
        request,
        page="pages/matching.html",
        context=MatchingContext(
            preview=preview(job_filter),
            chips=job_chips(job_filter),
            route=f"{action.value}_matching",
            back=back,
        ),
    )


async def _begin(request: Request, begin: Callable[[], BulkOperation]) -> Response:
    console_of(request).start_upkeep()
    operation = await run_in_threadpool(begin)
    if wants_json(request):
        return respond_json(operation_shape(operation), 202)
    return RedirectResponse(link(request, "operation", operation_id=operation.id), 303)


async def _say(request: Request, say: Callable[..., BulkOutcome]) -> Response:
    """Pass on the operator's word, if its sender may do what the operation does."""
    console = console_of(request)
    operation = await run_in_threadpool(operation_of, request)
    needed = PERMISSIONS[operation.action]
    if not permits(request, needed):
        raise HTTPException(403, f"This needs the permission {needed.value}.")
    console.start_upkeep()
    outcome = await run_in_threadpool(say, operation.id, actor=console.actor)
    if wants_json(request):
        status = 409 if outcome is BulkOutcome.REFUSED else 200
        return respond_json({"id": str(operation.id), "outcome": outcome.value}, status)
    result = f"operation:{outcome.value}"
    return RedirectResponse(
        link(request, "operation", operation_id=operation.id, result=result), 303
    )


def _text(form: FormData, name: str) -> str:
    value = form.get(name)
    return value if isinstance(value, str) else ""

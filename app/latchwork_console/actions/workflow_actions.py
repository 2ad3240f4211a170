"""Retry, restart or cancel a whole workflow."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.decisions.workflows import RetryScope
from latchwork.workflow_shapes import workflow_result_shape
from latchwork.workflow_views import (
    CancelWorkflowResult,
    RestartWorkflowResult,
    RetryWorkflowResult,
    WorkflowOutcome,
)
from latchwork_console.actions.forms import answered, respond_unanswered
from latchwork_console.console import console_of
from latchwork_console.job_filters import BadParameter
from latchwork_console.rendering import link, respond_json, wants_json

Result = TypeVar("Result", CancelWorkflowResult, RetryWorkflowResult, RestartWorkflowResult)


async def cancel(request: Request) -> Response:
    """``POST /workflows/{workflow_id}/cancel``."""
    result = await _act(request, console_of(request).app.operator.cancel_workflow)
    return _answer(request, "cancel", result)


async def retry(request: Request) -> Response:
    """``POST /workflows/{workflow_id}/retry``, with the ``scope``; UNFINISHED if left out."""
    form = await request.form()
    try:
        scope = RetryScope(str(form.get("scope", RetryScope.UNFINISHED)))
    except ValueError:
        raise BadParameter("scope", f"must be one of {', '.join(RetryScope)}") from None
    result = await _act(
        request, partial(console_of(request).app.operator.retry_workflow, scope=scope)
    )
    return _answer(request, "retry", result)


async def restart(request: Request) -> Response:
    """``POST /workflows/{workflow_id}/restart``; 303 to the new workflow."""
    result = await _act(request, console_of(request).app.operator.restart_workflow)
    return _answer(request, "restart", result, None if result is None else result.workflow_id)


async def _act(request: Request, act: Callable[..., Result]) -> Result | None:
    """What the operator answers; None when the database does not."""
    workflow_id: UUID = request.path_params["workflow_id"]
    return await answered(partial(act, workflow_id, actor=console_of(request).actor))


def _answer(request: Request, action: str, result: Any, place: UUID | None = None) -> Response:
    """303 to the workflow, or to another place that came of it; JSON to those who ask for it."""
    workflow_id: UUID = request.path_params["workflow_id"]
    if result is None:
        if wants_json(request):
            return respond_unanswered()
        said = "workflow:unavailable"
    else:
        outcome: WorkflowOutcome = result.outcome
        if wants_json(request):
            status = {WorkflowOutcome.REFUSED: 409, WorkflowOutcome.NOT_FOUND: 404}
            return respond_json(
                workflow_result_shape(str(workflow_id), result), status.get(outcome, 200)
            )
        if outcome is WorkflowOutcome.NOT_FOUND:
            raise HTTPException(404, "There is no such workflow; it may have been purged.")
        refused = outcome is WorkflowOutcome.REFUSED
        said = f"workflow:{action}-refused" if refused else f"workflow:{outcome.value}"
    return RedirectResponse(
        link(request, "workflow", workflow_id=place or workflow_id, result=said), 303
    )

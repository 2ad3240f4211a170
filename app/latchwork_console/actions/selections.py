"""What the two job actions share: reading the form, acting, and the answer."""

from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import UUID

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.decisions.states import JobState
from latchwork.errors import OutcomeUnknown, StoreBusy
from latchwork_console.actions.previews import Preview, preview_selection
from latchwork_console.actions.results import Outcome, encode
from latchwork_console.job_filters import (
    MAX_CURSOR_CHARACTERS,
    job_query,
    read_job_filter,
    read_text,
)
from latchwork_console.rendering import link, respond, respond_json, wants_json

MAX_SELECTED = 200


class ActionResult(Protocol):
    """What the operator answers: an outcome and the state that was met."""

    @property
    def outcome(self) -> object:
        """One of the action's outcomes."""

    @property
    def state(self) -> JobState | None:
        """The state the job was met in."""


Act = Callable[[UUID], ActionResult]


async def act_on_one(request: Request, action: str, act: Act) -> Response:
    """Act on the job of the address; 303 back to it, or JSON to those who ask for it."""
    job_id: UUID = request.path_params["job_id"]
    outcome = await run_in_threadpool(_outcome, act, job_id)
    if wants_json(request):
        status = {"refused": 409, "not_found": 404, "unavailable": 503}.get(outcome.name, 200)
        return respond_json(_shape(job_id, outcome), status)
    if outcome.name == "not_found":
        raise HTTPException(404, "There is no such job; it may have been purged.")
    form = await request.form()
    place = "graph" if form.get("back") == "graph" else "job"
    return _see_other(link(request, place, job_id=job_id, result=encode(action, [outcome])))


async def act_on_selected(request: Request, action: str, act: Act, preview: Preview) -> Response:
    """Show what acting on the selected jobs would do; act, one by one, once it is confirmed.

    A program that asks for JSON has no page to confirm on: its request acts at once.
    """
    form = await request.form(max_fields=MAX_SELECTED + 20)
    job_ids = _selected([value for value in form.getlist("job") if isinstance(value, str)])
    if job_ids and not wants_json(request) and form.get("confirmed") != "yes":
        back = form.get("back")
        context = await run_in_threadpool(
            preview_selection, action, job_ids, preview, back if isinstance(back, str) else ""
        )
        return await run_in_threadpool(
            respond, request, page="pages/selection.html", context=context
        )
    outcomes = await run_in_threadpool(lambda: [_outcome(act, job_id) for job_id in job_ids])
    if wants_json(request):
        shapes = [_shape(job_id, one) for job_id, one in zip(job_ids, outcomes, strict=True)]
        return respond_json({"results": shapes})
    back = form.get("back")
    query = QueryParams(back if isinstance(back, str) else "")
    return _see_other(
        link(
            request,
            "jobs",
            **job_query(read_job_filter(query)),
            after=read_text(query, "after", MAX_CURSOR_CHARACTERS),
            before=read_text(query, "before", MAX_CURSOR_CHARACTERS),
            result=encode(action, outcomes),
        )
    )


def _selected(texts: Sequence[str]) -> list[UUID]:
    if len(texts) > MAX_SELECTED:
        raise HTTPException(400, f"At most {MAX_SELECTED} jobs can be selected at once.")
    try:
        return list(dict.fromkeys(UUID(text) for text in texts))
    except ValueError:
        raise HTTPException(400, "One of the selected values is not a job id.") from None


def _outcome(act: Act, job_id: UUID) -> Outcome:
    try:
        result = act(job_id)
    except (StoreBusy, OutcomeUnknown):
        return Outcome("unavailable", None)
    return Outcome(str(getattr(result.outcome, "name", result.outcome)).lower(), result.state)


def _shape(job_id: UUID, outcome: Outcome) -> dict[str, object]:
    state = outcome.state
    return {
        "id": str(job_id),
        "outcome": outcome.name,
        "state": None if state is None else state.value,
    }


def _see_other(address: str) -> RedirectResponse:
    return RedirectResponse(address, 303)

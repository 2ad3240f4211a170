"""Retire an observer, replay a dead delivery, set the history policy."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.decisions.states import HistoryPolicy
from latchwork.observer_views import ReplayOutcome, RetireOutcome
from latchwork_console.actions.forms import read_field
from latchwork_console.console import console_of
from latchwork_console.job_filters import BadParameter
from latchwork_console.rendering import link, respond_json, wants_json

T = TypeVar("T")

REFUSED = 409


async def retire(request: Request) -> Response:
    """``POST /observers/retire`` with the observer's name in ``observer``."""
    name = read_field(await request.form(), "observer")
    answer = await _act(request, partial(console_of(request).app.operator.retire_observer, name))
    if answer.outcome is RetireOutcome.NOT_FOUND:
        raise HTTPException(404, "No observer of this name was ever registered here.")
    if wants_json(request):
        refused = answer.outcome is RetireOutcome.REFUSED
        shape = {"name": name, "outcome": answer.outcome.value, "given_up": answer.given_up}
        return respond_json(shape, REFUSED if refused else 200)
    said = f"observer:{answer.outcome.value}"
    return RedirectResponse(link(request, "observer", observer=name, result=said), 303)


async def replay(request: Request) -> Response:
    """``POST /deliveries/{delivery_id}/replay``."""
    number: int = request.path_params["delivery_id"]
    answer = await _act(request, partial(console_of(request).app.operator.replay_delivery, number))
    if answer.outcome is ReplayOutcome.NOT_FOUND or answer.observer is None:
        raise HTTPException(404, "There is no such delivery; it may have been made meanwhile.")
    if wants_json(request):
        refused = answer.outcome is ReplayOutcome.REFUSED
        shape = {"id": number, "outcome": answer.outcome.value, "observer": answer.observer}
        return respond_json(shape, REFUSED if refused else 200)
    said = f"delivery:{answer.outcome.value}"
    return RedirectResponse(link(request, "observer", observer=answer.observer, result=said), 303)


async def set_history_policy(request: Request) -> Response:
    """``POST /history-policy`` with the ``policy`` to set."""
    form = await request.form()
    try:
        policy = HistoryPolicy(str(form.get("policy")))
    except ValueError:
        raise BadParameter("policy", "is none of the three") from None
    answer = await _act(
        request, partial(console_of(request).app.operator.set_history_policy, policy)
    )
    if wants_json(request):
        shape = {
            "outcome": answer.outcome.value,
            "policy": answer.policy.value,
            "observers": list(answer.observers),
        }
        return respond_json(shape, REFUSED if answer.observers else 200)
    said = f"history:{answer.outcome.value}"
    return RedirectResponse(link(request, "observers", result=said), 303)


async def _act(request: Request, act: Callable[..., T]) -> T:
    return await run_in_threadpool(partial(act, actor=console_of(request).actor))

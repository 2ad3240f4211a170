"""Errors as pages: a status, a sentence, and what to do next; JSON for those who ask for it."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from latchwork.errors import InvalidValue, SchemaOutdated, StoreError
from latchwork_console.contexts import ProblemContext
from latchwork_console.rendering import respond, respond_json, wants_json
from latchwork_console.security import harden


def show_http_problem(request: Request, error: Exception) -> Response:
    """A refusal by a route, by the router, or by a parameter's bounds."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    plain = error.detail == HTTPStatus(error.status_code).phrase
    sentence = _SENTENCES.get(error.status_code, error.detail) if plain else error.detail
    return _problem(request, error.status_code, sentence, error.headers)


def show_invalid_value(request: Request, error: Exception) -> Response:
    """A value the core refuses, such as a malformed cursor."""
    return _problem(request, 400, f"{str(error)[:300]}.")


def show_store_problem(request: Request, error: Exception) -> Response:
    """The database did not answer; the page says so and what to try."""
    if isinstance(error, SchemaOutdated):
        return _problem(request, 503, f"{error}.")
    return _problem(
        request,
        503,
        "The database cannot be read right now. Nothing was changed by looking; "
        "jobs go on as soon as it is back. Reload in a moment.",
    )


def show_failure(_: Request, __: Exception) -> Response:
    """A defect of the console itself: said plainly, without details, hardened like any answer."""
    answer = PlainTextResponse(
        "The console failed to answer this request; its log says why. No job is affected.\n",
        500,
    )
    harden(answer.headers)
    return answer


PROBLEM_HANDLERS: Mapping[Any, Any] = {
    HTTPException: show_http_problem,
    InvalidValue: show_invalid_value,
    StoreError: show_store_problem,
    Exception: show_failure,
}

_SENTENCES = {
    404: "There is nothing at this address. A job that was here may have been purged.",
    405: "This address does not answer to that method.",
    413: "The request is larger than 64 kB.",
}
_TITLES = {
    400: "That request cannot be right",
    403: "Not allowed",
    404: "Not found",
    405: "Not allowed here",
    409: "Not possible now",
    503: "The database is not answering",
}


def _problem(
    request: Request, status: int, sentence: str, headers: Mapping[str, str] | None = None
) -> Response:
    if wants_json(request):
        answer = respond_json({"error": sentence}, status)
    else:
        title = _TITLES.get(status, HTTPStatus(status).phrase)
        answer = respond(
            request,
            page="pages/problem.html",
            context=ProblemContext(status=status, title=title, sentence=sentence),
            status=status,
        )
    answer.headers.update(headers or {})
    return answer

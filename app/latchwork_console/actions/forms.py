"""What actions on named things share: a form's fields, and an answer that may be missing."""

from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.responses import Response

from latchwork.errors import OutcomeUnknown, StoreBusy
from latchwork_console.rendering import respond_json

Result = TypeVar("Result")


def read_field(form: FormData, name: str) -> str:
    """A field the form must have.

    Raises:
        HTTPException: 400, it is missing or a file.
    """
    value = form.get(name)
    if not isinstance(value, str):
        raise HTTPException(400, f"The field “{name}” is missing.")
    return value


async def answered(act: Callable[[], Result]) -> Result | None:
    """What the operator answers; None when the database does not: nobody knows what was done."""

    def answer() -> Result | None:
        try:
            return act()
        except (StoreBusy, OutcomeUnknown):
            return None

    return await run_in_threadpool(answer)


def respond_unanswered() -> Response:
    """The JSON answer for an action the database did not answer."""
    return respond_json({"error": "The database did not answer."}, 503)

"""Job types and calls: what ``@app.job`` makes of a function, what ``bind`` makes of arguments."""

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NotRequired, ParamSpec, TypeVar

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from latchwork.decisions.retries import RetryPolicy
from latchwork.errors import InvalidValue
from latchwork.values import (
    MAX_PAYLOAD_BYTES,
    checked_bytes,
    checked_name,
    checked_tags,
    encode_json,
    refuse_lost_numbers,
)
from latchwork.views import Tag

if TYPE_CHECKING:
    from latchwork.context import JobContext

P = ParamSpec("P")
R = TypeVar("R")

_NO_ARGUMENTS = "{}"


@dataclass(frozen=True, slots=True)
class JobCall:
    """A job type with its arguments, ready to be enqueued: what ``JobType.bind`` returns."""

    job_type: "JobType[..., Any]"
    payload: str


class JobType(Generic[P, R]):
    """One kind of job: a wire name, the function that handles it, and its defaults.

    Made by ``@app.job``. Calling it calls the function, so a handler is tested as a function.

    Args:
        function: the handler; its first parameter is the job's context, the others are the payload.
        wire_name: the name under which its jobs are stored and routed.
        queue: where its jobs go unless the client names another queue.
        retry: the policy stored with each job at enqueue.
        tags: tags every job of this type carries.
        interrupt: whether a firing cancellation token also cancels an ``async`` handler's task.
        timeout_seconds: after how long the token fires with reason "timeout"; None for never.

    Raises:
        InvalidValue: a name, tag or timeout is malformed, or the function cannot be a handler.
    """

    def __init__(
        self,
        function: "Callable[Concatenate[JobContext, P], R]",
        *,
        wire_name: str,
        queue: str,
        retry: RetryPolicy,
        tags: Iterable[Tag],
        interrupt: bool,
        timeout_seconds: float | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.wire_name = checked_name("wire_name", wire_name)
        self.queue = checked_name("queue", queue)
        self.retry = retry
        self.tags = checked_tags(tags)
        self.interrupt = interrupt
        if timeout_seconds is not None and not 0 < timeout_seconds < float("inf"):
            raise InvalidValue("timeout_seconds", "must be a positive number of seconds")
        self.timeout_seconds = timeout_seconds
        self.is_async = inspect.iscoroutinefunction(function)
        self._parameters = _payload_parameters(wire_name, function)
        self._payloads = _payload_adapter(wire_name, function, self._parameters)

    def __call__(self, context: "JobContext", /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the handler here and now, as the plain function it is."""
        return self.function(context, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<JobType {self.wire_name!r}>"

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> JobCall:
        """Check the handler's arguments and write them as the job's payload.

        Arguments that are left out take the function's defaults when the job runs.

        Returns:
            The call, for ``client.enqueue`` and its relatives.

        Raises:
            InvalidValue: an argument is missing, unknown, of the wrong type or has no JSON form.
            ValueTooLarge: the payload is over 65,536 bytes (contract section 9).
        """
        arguments = dict(zip((parameter.name for parameter in self._parameters), args))  # noqa: B905
        if len(arguments) < len(args) or not arguments.keys().isdisjoint(kwargs):
            raise InvalidValue(
                "payload", f"of {self.wire_name} gives too many arguments, or one twice"
            )
        try:
            checked = self._payloads.validate_python({**arguments, **kwargs})
            plain = self._payloads.dump_python(checked, mode="json")
        except ValidationError as error:
            raise InvalidValue("payload", f"of {self.wire_name}: {explain(error)}") from error
        except PydanticUserError as error:
            raise InvalidValue("payload", f"of {self.wire_name}: {error.message}") from error
        except (ValueError, TypeError) as error:
            raise InvalidValue("payload", f"of {self.wire_name}: {error}") from error
        text = encode_json("payload", plain)
        refuse_lost_numbers("payload", text, checked)
        return JobCall(self, checked_bytes("payload", text, MAX_PAYLOAD_BYTES))

    def arguments(self, payload: str) -> dict[str, Any]:
        """The handler's arguments, decoded from a stored payload.

        Raises:
            pydantic.ValidationError: the payload is not what the function's signature asks for.
        """
        if payload == _NO_ARGUMENTS and not self._parameters:
            return {}
        arguments: dict[str, Any] = self._payloads.validate_json(payload)
        return arguments

    def payload_schema(self) -> dict[str, Any]:
        """The JSON schema of its payloads, as they are stored and read."""
        return self._payloads.json_schema()


def explain(error: ValidationError) -> str:
    """The problems Pydantic found, in one line, without the input and without links."""
    return "; ".join(
        ": ".join(filter(None, (".".join(map(str, problem["loc"])), problem["msg"])))
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    )


def _payload_parameters(wire_name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters after the context: those a payload can fill."""
    if not callable(function):
        raise InvalidValue("handler", f"of {wire_name} must be a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidValue("handler", f"of {wire_name} must not be a generator: it would never run")
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise InvalidValue("handler", f"of {wire_name} must take the job context first")
    for parameter in parameters[1:]:
        if parameter.kind not in (
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            inspect.Parameter.KEYWORD_ONLY,
        ):
            raise InvalidValue(
                "handler", f"of {wire_name} must name all its arguments, not take {parameter}"
            )
    return parameters[1:]


def _payload_adapter(
    wire_name: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> TypeAdapter[Any]:
    """A codec of exactly these parameters.

    A typed dictionary, unlike a model, lets a parameter have any name and leaves out what was not
    given; unlike an adapter of the function itself, it does not call it.
    """
    fields: dict[str, Any] = {}
    for parameter in parameters:
        annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
        required = parameter.default is parameter.empty
        fields[parameter.name] = annotation if required else NotRequired[annotation]
    make_type: Any = TypedDict
    payload_type = make_type(f"{wire_name} payload", fields)
    payload_type.__module__ = function.__module__  # where annotations given as text are looked up
    # Pydantic would write NaN as null in silence; kept as it is, the JSON encoder refuses it.
    payload_type.__pydantic_config__ = ConfigDict(extra="forbid", ser_json_inf_nan="constants")
    try:
        return TypeAdapter(payload_type)
    except PydanticUserError as error:
        raise InvalidValue(
            "handler", f"of {wire_name} has an unusable type: {error.message}"
        ) from error

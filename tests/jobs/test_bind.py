"""``bind``: a call is checked where it is made, not where it runs."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError

from latchwork import InvalidValue, JobContext, Latchwork, ValueTooLarge
from latchwork.jobs import JobType


class Address(BaseModel):
    street: str
    number: int = 1


class Loose(BaseModel):
    value: Any


@dataclass
class Point:
    x: float
    y: float


@pytest.fixture
def app() -> Latchwork:
    """An application whose database is never opened."""
    return Latchwork("sqlite://")


@pytest.fixture
def send(app: Latchwork) -> JobType[..., Any]:
    @app.job("send")
    def send(context: JobContext, to: str, copies: int = 1, *, urgent: bool = False) -> None: ...

    return send


@pytest.fixture
def echo(app: Latchwork) -> JobType[..., Any]:
    @app.job("echo")
    def echo(context: JobContext, value: Any) -> None: ...

    return echo


@pytest.mark.parametrize(
    ("args", "kwargs", "payload"),
    [
        (("ada",), {}, {"to": "ada"}),
        ((), {"to": "ada"}, {"to": "ada"}),
        (("ada", 2), {"urgent": True}, {"to": "ada", "copies": 2, "urgent": True}),
        (("ada",), {"copies": 1}, {"to": "ada", "copies": 1}),
    ],
)
def test_what_is_given_is_written_and_what_is_left_out_is_left_to_the_function(
    send: JobType[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], payload: dict[str, Any]
) -> None:
    call = send.bind(*args, **kwargs)
    assert json.loads(call.payload) == payload
    assert call.job_type is send
    assert send.arguments(call.payload) == payload


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        (("ada", 1, True, 4), {}),
        (("ada",), {"to": "bob"}),
        (("ada",), {"unknown": 1}),
        ((3,), {}),
        (("ada", "many"), {}),
        (("ada", 1.5), {}),
        (("ada", None), {}),
        (("ada",), {"urgent": "perhaps"}),
    ],
)
def test_missing_unknown_repeated_and_mistyped_arguments_are_refused(
    send: JobType[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue) as refused:
        send.bind(*args, **kwargs)
    assert refused.value.field == "payload"
    assert "send" in str(refused.value)


def test_the_refusal_does_not_repeat_the_value(send: JobType[..., Any]) -> None:
    with pytest.raises(InvalidValue) as refused:
        send.bind("ada", "a secret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), [-float("inf")], {"deep": [float("nan")]}]
)
def test_numbers_that_json_does_not_know_are_refused(echo: JobType[..., Any], value: Any) -> None:
    with pytest.raises(InvalidValue):
        echo.bind(value)


def test_numbers_that_json_does_not_know_are_refused_inside_a_model(app: Latchwork) -> None:
    @app.job("loose")
    def loose(context: JobContext, given: Loose) -> None: ...

    assert loose.bind(Loose(value=[None, 1.5])).payload == '{"given":{"value":[null,1.5]}}'
    with pytest.raises(InvalidValue):
        loose.bind(Loose(value=[float("nan")]))


def test_a_float_parameter_does_not_turn_nan_into_null(app: Latchwork) -> None:
    @app.job("measure")
    def measure(context: JobContext, value: float) -> None: ...

    with pytest.raises(InvalidValue):
        measure.bind(float("nan"))


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def its_own_member() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    ["\ud800", {"\ud800": 1}, object(), lambda: None, b"\xff", nested(10_000), its_own_member()],
    ids=["surrogate", "surrogate key", "object", "function", "bytes", "too deep", "a circle"],
)
def test_what_has_no_json_form_is_refused(echo: JobType[..., Any], value: Any) -> None:
    with pytest.raises(InvalidValue):
        echo.bind(value)


@pytest.mark.parametrize(
    "value", ["a\0b", "\U0001f600", "", None, 0, -1.5, [], {"a": [None, True]}, 2**70]
)
def test_every_json_value_comes_back_as_it_was(echo: JobType[..., Any], value: Any) -> None:
    assert echo.arguments(echo.bind(value).payload) == {"value": value}


def test_a_payload_of_exactly_65536_bytes_is_fine_and_one_more_is_not(
    echo: JobType[..., Any],
) -> None:
    frame = len(echo.bind("").payload)
    assert len(echo.bind("b" * (65_536 - frame)).payload) == 65_536
    assert len(echo.bind("\u20ac" * 21_840 + "b" * (16 - frame)).payload.encode()) == 65_536
    for value in ("b" * (65_537 - frame), "\u20ac" * 21_840 + "b" * (17 - frame)):
        with pytest.raises(ValueTooLarge) as refused:
            echo.bind(value)
        assert (refused.value.field, refused.value.bound) == ("payload", 65_536)


def test_models_dataclasses_times_and_ids_come_back_as_themselves(app: Latchwork) -> None:
    @app.job("rich")
    def rich(
        context: JobContext, address: Address, point: Point, at: datetime, subject: UUID
    ) -> None: ...

    given = {
        "address": Address(street="Main"),
        "point": Point(1, 2.5),
        "at": datetime(2026, 12, 1, 12, tzinfo=UTC),
        "subject": UUID(int=7),
    }
    assert rich.arguments(rich.bind(**given).payload) == given  # type: ignore[arg-type]


def test_a_job_without_arguments_has_an_empty_payload(app: Latchwork) -> None:
    @app.job("tick")
    def tick(context: JobContext) -> None: ...

    assert tick.bind().payload == "{}"
    assert tick.arguments("{}") == {}
    with pytest.raises(ValidationError):
        tick.arguments('{"extra": 1}')


def test_a_parameter_may_be_called_anything(app: Latchwork) -> None:
    @app.job("odd")
    def odd(ctx: JobContext, self: int, context: int, model_config: int, schema: int) -> None: ...

    call = odd.bind(1, 2, 3, 4)
    assert odd.arguments(call.payload) == {"self": 1, "context": 2, "model_config": 3, "schema": 4}


def no_context() -> None: ...


def no_arguments(context: JobContext) -> None: ...


def keyword_context(*, context: JobContext) -> None: ...


def any_arguments(context: JobContext, *args: int) -> None: ...


def any_keywords(context: JobContext, **kwargs: int) -> None: ...


def generator(context: JobContext) -> Any:
    yield


async def async_generator(context: JobContext) -> Any:
    yield


@pytest.mark.parametrize(
    "function",
    [no_context, keyword_context, any_arguments, any_keywords, generator, async_generator, "text"],
)
def test_a_function_that_cannot_be_a_handler_is_refused_when_it_is_registered(
    app: Latchwork, function: Any
) -> None:
    with pytest.raises(InvalidValue) as refused:
        app.job("handler")(function)
    assert refused.value.field == "handler"
    assert "handler" not in app.job_types


def test_a_wire_name_is_registered_once(app: Latchwork, echo: JobType[..., Any]) -> None:
    with pytest.raises(InvalidValue):
        app.job("echo")(no_arguments)
    assert app.job_types["echo"] is echo


@pytest.mark.parametrize(
    "options",
    [
        {"queue": ""},
        {"queue": "q" * 129},
        {"tags": ["t" * 65]},
        {"tags": "one"},
        {"timeout_seconds": 0},
        {"timeout_seconds": -1},
        {"timeout_seconds": float("inf")},
        {"timeout_seconds": float("nan")},
    ],
)
def test_a_job_type_with_unusable_options_is_refused(
    app: Latchwork, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidValue):
        app.job("job", **options)(no_arguments)


def test_calling_a_job_type_runs_its_function(app: Latchwork) -> None:
    @app.job("double")
    def double(context: JobContext, number: int) -> int:
        return number * 2

    assert double(None, 21) == 42  # type: ignore[arg-type]

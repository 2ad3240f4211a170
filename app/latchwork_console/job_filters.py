"""Filters as they stand in the address: parsed with bounds, written back as chips and links."""

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException

from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.log_tail import Place
from latchwork.views import JobFilter, LogFilter, Tag
from latchwork_console.formatting import tag_parameter, tag_text

MAX_PARAMETERS = 50
MAX_NAME_CHARACTERS = 128
MAX_TAG_CHARACTERS = 64 + 1 + 256
MAX_CURSOR_CHARACTERS = 200
MAX_TOKEN_CHARACTERS = 4_000
MAX_POSITION = 2**63 - 1


class BadParameter(HTTPException):
    """A query parameter that cannot be right: answered with 400 and a sentence."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(400, f"The parameter “{name}” {problem}.")


@dataclass(frozen=True, slots=True)
class FilterChip:
    """One active filter: what it says, and the query that is left when it is removed."""

    label: str
    value: str
    without: dict[str, object]


def check_parameters(query: QueryParams) -> None:
    """Refuse a query of too many parts before any of them is looked at.

    Raises:
        BadParameter: there are more parameters than any page has.
    """
    if len(query.multi_items()) > MAX_PARAMETERS:
        raise BadParameter("…", f"is one of more than {MAX_PARAMETERS}; that is too many")


def read_text(query: QueryParams, name: str, bound: int = MAX_NAME_CHARACTERS) -> str | None:
    """One text parameter, or None when it is absent or empty.

    Raises:
        BadParameter: it is given twice, is too long, or holds a NUL or a lone surrogate.
    """
    values = query.getlist(name)
    if len(values) > 1:
        raise BadParameter(name, "is given more than once")
    if not values or not values[0]:
        return None
    value = values[0]
    if len(value) > bound:
        raise BadParameter(name, f"is longer than {bound} characters")
    if "\0" in value or not _encodable(value):
        raise BadParameter(name, "holds characters that no name can have")
    return value


def read_name(query: QueryParams, what: str) -> str:
    """The name of the one thing a page is about: a queue, a schedule or an observer.

    Names are a parameter because a path would lose some of them: ``..`` and ``//`` are changed by
    browsers and proxies.

    Raises:
        BadParameter: it is missing, or no name.
    """
    name = read_text(query, what)
    if name is None:
        raise BadParameter(what, f"is missing: it names the {what}")
    return name


def read_states(query: QueryParams) -> tuple[JobState, ...]:
    """The ``state`` parameters, in life-cycle order, each once.

    Raises:
        BadParameter: one of them is no state.
    """
    wanted = {value for value in query.getlist("state") if value}
    unknown = wanted - {state.value for state in JobState}
    if unknown:
        raise BadParameter(
            "state", f"must be one of {', '.join(state.value for state in JobState)}"
        )
    return tuple(state for state in JobState if state.value in wanted)


def read_job_id(query: QueryParams, name: str) -> UUID | None:
    """A job id parameter.

    Raises:
        BadParameter: it is no UUID.
    """
    text = read_text(query, name, bound=64)
    if text is None:
        return None
    try:
        return UUID(text.strip())
    except ValueError:
        raise BadParameter(name, "is not a job id") from None


def read_position(query: QueryParams, name: str) -> int | None:
    """A log position parameter.

    Raises:
        BadParameter: it is no whole number from 0 to 2**63 - 1.
    """
    text = read_text(query, name, bound=19)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= MAX_POSITION):
        raise BadParameter(name, "is not a position of the log")
    return int(text)


def read_time(query: QueryParams, name: str) -> datetime | None:
    """A moment: RFC 3339, or what a browser's date and time field sends, which is read as UTC.

    Raises:
        BadParameter: it is no date and time.
    """
    text = read_text(query, name, bound=40)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadParameter(name, "is not a date and time, such as 2026-11-30T14:30:00Z") from None


def read_token(text: str | None, name: str) -> str | None:
    """A place in the log to follow it from.

    Raises:
        BadParameter: it is no token.
    """
    if not text:
        return None
    if len(text) > MAX_TOKEN_CHARACTERS:
        raise BadParameter(name, "is not a place in the log")
    try:
        return str(Place.parse(text))
    except InvalidValue:
        raise BadParameter(name, "is not a place in the log") from None


def read_tag(query: QueryParams) -> Tag | None:
    """The ``tag`` parameter: ``label``, or ``key=value``; ``=label`` when the label has a ``=``.

    Raises:
        BadParameter: it is too long.
    """
    text = read_text(query, "tag", bound=MAX_TAG_CHARACTERS + 1)
    if text is None:
        return None
    key, equals, value = text.partition("=")
    if not equals:
        return text
    return (key, value) if key else value


def read_job_filter(query: QueryParams) -> JobFilter:
    """The filter of a job listing.

    Raises:
        BadParameter: a parameter is out of bounds.
    """
    check_parameters(query)
    return JobFilter(
        states=read_states(query),
        queue=read_text(query, "queue"),
        wire_name=read_text(query, "wire_name"),
        tag=read_tag(query),
        cause_code=read_text(query, "cause"),
        cause_type=read_text(query, "cause_type"),
        cause_group=read_text(query, "group"),
    )


def read_log_filter(query: QueryParams) -> LogFilter:
    """The filter of the transition log.

    Raises:
        BadParameter: a parameter is out of bounds.
    """
    check_parameters(query)
    return LogFilter(
        states=read_states(query),
        queue=read_text(query, "queue"),
        wire_name=read_text(query, "wire_name"),
        job_id=read_job_id(query, "job"),
        failing=read_text(query, "failing") is not None,
    )


def job_query(jobs: JobFilter) -> dict[str, object]:
    """A job filter as query parameters."""
    return {
        "state": tuple(state.value for state in jobs.states),
        "queue": jobs.queue,
        "wire_name": jobs.wire_name,
        "tag": None if jobs.tag is None else tag_parameter(jobs.tag),
        "cause": jobs.cause_code,
        "cause_type": jobs.cause_type,
        "group": jobs.cause_group,
    }


def log_query(log: LogFilter) -> dict[str, object]:
    """A log filter as query parameters."""
    return {
        "state": tuple(state.value for state in log.states),
        "queue": log.queue,
        "wire_name": log.wire_name,
        "job": log.job_id,
        "failing": "1" if log.failing else None,
    }


def job_chips(jobs: JobFilter) -> tuple[FilterChip, ...]:
    """The active filters of a job listing, beside its states, which are tabs."""
    return _chips(
        job_query(jobs),
        ("queue", "queue", jobs.queue),
        ("wire name", "wire_name", jobs.wire_name),
        ("tag", "tag", None if jobs.tag is None else tag_text(jobs.tag)),
        ("cause", "cause", jobs.cause_code),
        ("exception", "cause_type", jobs.cause_type),
        ("group", "group", jobs.cause_group),
    )


def log_chips(log: LogFilter) -> tuple[FilterChip, ...]:
    """The active filters of the log, beside its states, which are tabs."""
    return _chips(
        log_query(log),
        ("queue", "queue", log.queue),
        ("wire name", "wire_name", log.wire_name),
        ("job", "job", None if log.job_id is None else str(log.job_id)),
        ("", "failing", "failing only" if log.failing else None),
    )


def _chips(
    query: dict[str, object], *fields: tuple[str, str, str | None]
) -> tuple[FilterChip, ...]:
    return tuple(
        FilterChip(label, value, query | {parameter: None})
        for label, parameter, value in fields
        if value is not None
    )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

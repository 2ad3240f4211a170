"""``/audit``: who did what to what, and when."""

from dataclasses import dataclass, fields, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from latchwork.audit_views import AuditFilter, AuditNames, AuditPage
from latchwork.decisions.states import JobState
from latchwork.operator_shapes import audit_page_shape
from latchwork.views import SEARCH_BOUND, AuditRow
from latchwork_console.console import console_of
from latchwork_console.job_filters import BadParameter, FilterChip, read_position, read_text
from latchwork_console.rendering import respond, respond_json, wants_json

PAGE_ROWS = 50
MAX_LIMIT = 200

_SUBJECT_PAGES = {
    "job": ("job", "job_id"),
    "queue": ("queue", "queue"),
    "workflow": ("workflow", "workflow_id"),
    "schedule": ("schedule", "schedule"),
    "observer": ("observer", "observer"),
    "operation": ("operation", "operation_id"),
}
"""Where a subject of each kind is shown: the page's name, and how it is told which one."""

_PARAMETERS = {"actor": "actor", "action": "action", "subject_kind": "kind", "subject": "subject"}
_LABELS = {"actor": "by", "action": "action", "subject_kind": "on a", "subject": "on"}
_FACTS = {"before": "was", "from": "was"}
_STATES = {state.value: state.label for state in JobState}


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One action as it is listed: in words, with a link to what was acted on, if it has a page."""

    row: AuditRow
    action: str
    detail: str
    page: str | None
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class AuditContext:
    """The audit trail."""

    audit_filter: AuditFilter
    chips: tuple[FilterChip, ...]
    lines: tuple[AuditLine, ...]
    audit_page: AuditPage
    known: AuditNames
    query: dict[str, object]
    first_page: bool
    search_bound: int


def show(request: Request) -> Response:
    """Answer one page of operator actions, newest first."""
    monitor, query = console_of(request).app.monitor, request.query_params
    chosen = AuditFilter(**{field: read_text(query, name) for field, name in _PARAMETERS.items()})
    before, after = read_position(query, "before"), read_position(query, "after")
    if before is not None and after is not None:
        raise BadParameter("before", "cannot be combined with “after”")
    limit = min(read_position(query, "limit") or PAGE_ROWS, MAX_LIMIT)
    page = monitor.audit_page(chosen, before=before, after=after, limit=limit)
    if wants_json(request):
        return respond_json(audit_page_shape(page))
    context = AuditContext(
        audit_filter=chosen,
        chips=_chips(chosen),
        lines=tuple(map(audit_line, page.rows)),
        audit_page=page,
        known=monitor.audit_names(),
        query=_query(chosen),
        first_page=before is None and after is None,
        search_bound=SEARCH_BOUND,
    )
    return respond(request, page="pages/audit.html", context=context)


def audit_line(row: AuditRow) -> AuditLine:
    """An audit row in words."""
    page, parameter = _SUBJECT_PAGES.get(row.subject_kind, (None, ""))
    return AuditLine(
        row=row,
        action=row.action.replace("_", " "),
        detail=detail_text(row.detail),
        page=page,
        values={parameter: row.subject} if page else {},
    )


def detail_text(detail: dict[str, object]) -> str:
    """``limited; limit 3, was none``: the outcome first, then every other fact by its name."""
    facts = [
        f"{_FACTS.get(name, name.replace('_', ' '))} {_word(value)}"
        for name, value in detail.items()
        if name != "outcome"
    ]
    outcome = [str(detail["outcome"]).replace("_", " ")] if "outcome" in detail else []
    return "; ".join(part for part in (*outcome, ", ".join(facts)) if part)


def _word(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_word(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_word, value)) or "none"
    return _STATES.get(str(value), str(value))


def _query(chosen: AuditFilter) -> dict[str, object]:
    values = {name: getattr(chosen, field) for field, name in _PARAMETERS.items()}
    return {name: value for name, value in values.items() if value is not None}


def _chips(chosen: AuditFilter) -> tuple[FilterChip, ...]:
    without: Any = {field.name: None for field in fields(chosen)}
    return tuple(
        FilterChip(_LABELS[field], value, _query(replace(chosen, **{field: without[field]})))
        for field in _PARAMETERS
        if (value := getattr(chosen, field)) is not None
    )

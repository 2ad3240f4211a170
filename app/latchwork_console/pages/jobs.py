"""``/jobs``: the listing, filtered by the address, paged both ways by enqueue number."""

from dataclasses import replace
from urllib.parse import quote, urlencode
from uuid import UUID

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from latchwork.decisions.states import JobState
from latchwork.json_shapes import listing_shape
from latchwork.views import SEARCH_BOUND, Counts, JobFilter, TransitionView
from latchwork_console.console import Console, Permission, console_of, permits
from latchwork_console.contexts import JobsContext, LogRowContext, StateTab, TabsContext
from latchwork_console.formatting import tag_parameter
from latchwork_console.job_filters import (
    BadParameter,
    job_chips,
    job_query,
    read_job_filter,
    read_position,
    read_text,
)
from latchwork_console.live_views import LiveView
from latchwork_console.rendering import Surroundings, link, respond, respond_json, wants_json

PAGE_ROWS = 50
MAX_LIMIT = 200
TAGS_SUGGESTED = 30


def show(request: Request) -> Response:
    """Answer one page of jobs, or go straight to the job whose id was typed."""
    console = console_of(request)
    query = request.query_params
    job_filter = read_job_filter(query)
    searched = read_text(query, "id", bound=64)
    job_id = None if searched is None else _as_id(searched)
    if job_id is not None and console.app.monitor.job(job_id) is not None:
        return RedirectResponse(link(request, "job", job_id=job_id), 303)
    before, after = read_position(query, "before"), read_position(query, "after")
    if before is not None and after is not None:
        raise BadParameter("before", "cannot be combined with “after”")
    limit = min(read_position(query, "limit") or PAGE_ROWS, MAX_LIMIT)
    monitor = console.app.monitor
    token = monitor.log_token()
    job_page = monitor.jobs(job_filter, limit=limit, before=before, after=after)
    if wants_json(request):
        return respond_json(
            listing_shape(job_page, sensitive=permits(request, Permission.VIEW_SENSITIVE))
        )
    parameters = job_query(job_filter)
    place = {"before": before, "after": after}
    return respond(
        request,
        page="pages/jobs.html",
        context=JobsContext(
            job_filter=job_filter,
            tabs=state_tabs(job_filter, console.counts()),
            chips=job_chips(job_filter),
            job_page=job_page,
            next_query=_cursor_query(parameters, job_page.next),
            previous_query=_cursor_query(parameters, job_page.previous),
            facets=monitor.facets(),
            tags=tuple(tag_parameter(facet.tag) for facet in monitor.tags(limit=TAGS_SUGGESTED)),
            query=parameters,
            back=urlencode(
                {key: value for key, value in (parameters | place).items() if value is not None},
                doseq=True,
                quote_via=quote,
            ),
            search_bound=SEARCH_BOUND,
            first_page=before is None and after is None,
            stream_token=token,
            searched_id=searched,
        ),
    )


def state_tabs(job_filter: JobFilter, counts: Counts | None) -> tuple[StateTab, ...]:
    """One tab per state in life-cycle order, after one for all of them.

    The counts are exact where the ledger knows them: for all jobs and for one queue. Under any
    other filter a tab shows none rather than a wrong one.
    """
    known: dict[JobState, int] | None = None
    if counts is not None and job_filter == JobFilter(job_filter.states, queue=job_filter.queue):
        queue = job_filter.queue
        known = counts.by_state if queue is None else counts.by_queue.get(queue, {})
    everything = replace(job_filter, states=())
    tabs = [
        StateTab(
            state=None,
            count=None if known is None else sum(known.values()),
            current=not job_filter.states,
            query=job_query(everything),
        )
    ]
    tabs += [
        StateTab(
            state=state,
            count=None if known is None else known.get(state, 0),
            current=state in job_filter.states,
            query=job_query(replace(everything, states=(state,))),
        )
        for state in JobState
    ]
    return tuple(tabs)


def _cursor_query(parameters: dict[str, object], cursor: str | None) -> dict[str, object] | None:
    """The query of the page a cursor (``before:N`` or ``after:N``) leads to."""
    if cursor is None:
        return None
    direction, _, position = cursor.partition(":")
    return parameters | {direction: position}


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text.strip())
    except ValueError:
        return None


def _row(console: Console, around: Surroundings, transition: TransitionView) -> str:
    context = LogRowContext(transition=transition, fresh=True)
    return console.renderer.render("partials/job_moved.html", context, around)


def _regions(console: Console, around: Surroundings, queue: str) -> str:
    tabs = state_tabs(JobFilter(queue=queue or None), around.counts)
    return console.renderer.render("partials/tab_counts.html", TabsContext(tabs), around)


LIVE = LiveView(row=_row, regions=_regions)

"""``latchwork jobs`` and ``nodes``: what one may look at."""

from typing import Annotated

import typer

from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl, JobId
from latchwork.cli.printing import complain, print_facts, print_json, print_table
from latchwork.decisions.states import JobState
from latchwork.json_shapes import detail_shape, listing_shape, node_shape
from latchwork.operator_shapes import tag_shape
from latchwork.views import History, JobDetail, JobFilter, JobPage, RelatedJob, Tag

command = typer.Typer()
jobs = typer.Typer(help="Look at jobs.")
nodes = typer.Typer(help="Look at worker nodes.")
command.add_typer(jobs, name="jobs")
command.add_typer(nodes, name="nodes")


@jobs.command("list")
def list_jobs(
    database: DatabaseUrl,
    *,
    state: Annotated[list[JobState] | None, typer.Option(help="Only in this state.")] = None,
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    wire_name: Annotated[str | None, typer.Option(help="Only of this wire name.")] = None,
    tag: Annotated[
        str | None, typer.Option(help="Only with this tag: label, key=value, or =label.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Jobs on the page, at most 200.")] = 50,
    page: Annotated[
        str | None, typer.Option(help="Another page: a cursor of the one before.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    job_filter = JobFilter(tuple(state or ()), queue, wire_name, tag_of(tag))
    with opened(database) as app:
        found = app.monitor.jobs(job_filter, page, limit=limit)
    if json:
        print_json(listing_shape(found))
    else:
        _print_page(found)


@jobs.command("show")
def show_job(job_id: JobId, database: DatabaseUrl, *, json: AsJson = False) -> None:
    """Show one job: its state and why, payload, output, dependencies and history."""
    with opened(database) as app:
        detail = app.monitor.detail(job_id)
        history = app.monitor.history(job_id)
        explanation = app.monitor.explain(job_id)
    if detail is None:
        complain(f"job {job_id} is not stored here")
        raise typer.Exit(1)
    if json:
        print_json(detail_shape(detail, history.transitions))
    else:
        _print_job(detail, explanation.sentence if explanation else "")
        _print_history(history)


@jobs.command("tags")
def list_tags(
    database: DatabaseUrl,
    prefix: Annotated[str, typer.Argument(help="Only tags that begin so.")] = "",
    *,
    limit: Annotated[int, typer.Option(help="Tags to list, at most 200.")] = 50,
    json: AsJson = False,
) -> None:
    """List the tags in use, most frequent among the newest jobs first."""
    with opened(database) as app:
        found = app.monitor.tags(prefix, limit=limit)
    if json:
        print_json([tag_shape(facet) for facet in found])
        return
    rows = [
        (facet.tag if isinstance(facet.tag, str) else "=".join(facet.tag), facet.jobs)
        for facet in found
    ]
    print_table(("tag", "jobs"), rows)


@nodes.command("list")
def list_nodes(database: DatabaseUrl, *, json: AsJson = False) -> None:
    """List the worker nodes of the last day, live ones first."""
    with opened(database) as app:
        found = app.monitor.nodes()
    if json:
        print_json([node_shape(node) for node in found])
        return
    headings = ("node", "live", "running", "slots", "queues", "last seen", "version")
    rows = [
        (
            node.worker_id,
            "draining" if node.live and node.draining else "yes" if node.live else "no",
            len(node.running),
            node.slots,
            ", ".join(node.queues),
            node.last_seen_at,
            node.version,
        )
        for node in found
    ]
    print_table(headings, rows)


def tag_of(option: str | None) -> Tag | None:
    """``label``, or ``key=value``; ``=label`` for a label that has a ``=``, as in the console."""
    if not option:
        return None
    key, equals, value = option.partition("=")
    if not equals:
        return option
    return (key, value) if key else value


def _print_page(page: JobPage) -> None:
    headings = ("id", "state", "wire name", "queue", "attempt", "due", "why")
    rows = [
        (
            job.id,
            job.state.label,
            job.wire_name,
            job.queue,
            f"{job.attempt}/{job.max_attempts}",
            job.due_at,
            job.cause.code if job.cause else None,
        )
        for job in page.jobs
    ]
    print_table(headings, rows)
    if page.next:
        typer.echo(f"more: --page {page.next}")


def _print_job(detail: JobDetail, why: str) -> None:
    job, cause = detail.job, detail.job.cause
    print_facts(
        (
            ("id", job.id),
            ("state", job.state.label),
            ("why", why),
            ("wire name", job.wire_name),
            ("queue", job.queue),
            ("attempt", f"{job.attempt} of {job.max_attempts}"),
            ("enqueued", job.enqueued_at),
            ("due", job.due_at),
            ("owner", job.owner),
            ("lease expires", job.lease_expires_at),
            ("ended", job.terminal_at),
            ("cause", f"{cause.code} {cause.type or ''} {cause.text or ''}" if cause else None),
            ("cancel asked", job.cancel_requested_at),
            ("cancel asked by", job.cancel_requested_by),
            ("tags", ", ".join(one if isinstance(one, str) else "=".join(one) for one in job.tags)),
            ("waits for", _related(detail.parents)),
            ("waited for by", _related(detail.children)),
            ("payload", detail.payload),
            ("output", detail.output),
        )
    )


def _related(others: tuple[RelatedJob, ...]) -> str:
    return "\n".join(f"{one.id} {one.wire_name} {one.state.label}" for one in others)


def _print_history(history: History) -> None:
    typer.echo()
    if history.dropped:
        typer.echo(f"{history.dropped} older rows are gone")
    headings = ("#", "time", "state", "attempt", "worker", "failure")
    rows = [
        (
            row.ordinal,
            row.at,
            row.state.label,
            row.attempt,
            row.worker,
            (row.failure_detail or "").partition("\n")[0],
        )
        for row in history.transitions
    ]
    print_table(headings, rows)

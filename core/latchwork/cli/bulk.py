"""``latchwork operations``: requeueing and cancelling all jobs of a filter as one operation."""

import time
from typing import Annotated
from uuid import UUID

import typer
from rich.console import Console
from rich.progress import Progress

from latchwork.application import Latchwork
from latchwork.bulk_shapes import member_shape, operation_shape
from latchwork.bulk_views import BulkOperation, BulkOutcome, BulkState
from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_facts, print_json, print_table
from latchwork.cli.reading import tag_of
from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.maintenance.bulk_runner import BulkRunner
from latchwork.views import JobFilter

OperationId = Annotated[UUID, typer.Argument(metavar="ID", help="An operation's id.")]
States = Annotated[list[JobState] | None, typer.Option("--state", help="All jobs in this state.")]
Queue = Annotated[str | None, typer.Option(help="All jobs of this queue.")]
WireName = Annotated[str | None, typer.Option(help="All jobs of this wire name.")]
TagText = Annotated[
    str | None, typer.Option("--tag", help="All jobs with this tag: label, key=value, or =label.")
]
Canary = Annotated[
    bool, typer.Option("--canary", help="Let one go first; the rest waits for `continue`.")
]
Everything = Annotated[bool, typer.Option("--everything", help="Without any filter.")]

command = typer.Typer()
operations = typer.Typer(help="Look at requeues and cancels of many jobs, and direct them.")
command.add_typer(operations, name="operations")


@operations.command("requeue")
def requeue(
    database: DatabaseUrl,
    actor: Actor,
    *,
    state: States = None,
    queue: Queue = None,
    wire_name: WireName = None,
    tag: TagText = None,
    everything: Everything = False,
    canary: Canary = False,
    json: AsJson = False,
) -> None:
    """Requeue all Dead-Lettered and Quarantined jobs that match, and work them off."""
    chosen = _filter(state, queue, wire_name, tag, everything=everything)
    with opened(database) as app:
        begun = app.operator.requeue_matching(chosen, actor=actor, canary=canary)
        work_off(app, begun.id, json=json)


@operations.command("cancel")
def cancel(
    database: DatabaseUrl,
    actor: Actor,
    *,
    state: States = None,
    queue: Queue = None,
    wire_name: WireName = None,
    tag: TagText = None,
    everything: Everything = False,
    json: AsJson = False,
) -> None:
    """Cancel all jobs that match and have not ended, and work them off."""
    chosen = _filter(state, queue, wire_name, tag, everything=everything)
    with opened(database) as app:
        begun = app.operator.cancel_matching(chosen, actor=actor)
        work_off(app, begun.id, json=json)


@operations.command("list")
def list_operations(database: DatabaseUrl, *, json: AsJson = False) -> None:
    """List the newest operations on many jobs."""
    with opened(database) as app:
        found = app.monitor.bulk_operations()
    if json:
        print_json([operation_shape(one) for one in found])
        return
    headings = ("operation", "action", "state", "done", "skipped", "of", "by", "begun")
    print_table(
        headings,
        [
            (one.id, one.action, one.state, one.done, one.skipped, one.total, one.actor,
             one.created_at)
            for one in found
        ],
    )  # fmt: skip


@operations.command("show")
def show_operation(
    operation_id: OperationId, database: DatabaseUrl, *, json: AsJson = False
) -> None:
    """Show one operation, and what became of its first jobs."""
    with opened(database) as app:
        operation = app.monitor.bulk_operation(operation_id)
        members = app.monitor.bulk_members(operation_id, limit=200)
    if operation is None:
        complain(f"operation {operation_id} is not stored here")
        raise typer.Exit(1)
    if json:
        print_json(operation_shape(operation) | {"members": [member_shape(m) for m in members]})
        return
    print_facts(_facts(operation))
    rows = [(m.number, m.job_id, m.job.state.label if m.job else None, m.outcome) for m in members]
    print_table(("#", "job", "now", "what became of it"), rows)


@operations.command("continue")
def let_follow(operation_id: OperationId, database: DatabaseUrl, actor: Actor) -> None:
    """Let the jobs that wait behind the first one follow, and work them off."""
    with opened(database) as app:
        _told(app.operator.continue_operation(operation_id, actor=actor), operation_id)
        work_off(app, operation_id, json=False)


@operations.command("stop")
def stop(operation_id: OperationId, database: DatabaseUrl, actor: Actor) -> None:
    """Act on no further job of an operation; what was done stays done."""
    with opened(database) as app:
        _told(app.operator.stop_operation(operation_id, actor=actor), operation_id)
    typer.echo(f"{operation_id} stopped")


def work_off(app: Latchwork, operation_id: UUID, *, json: bool) -> None:
    """Work off operations until this one is through or waits for a word; then say where it is.

    A node or console that is at it already is left to it, and watched.
    """
    runner = BulkRunner(app.database)
    with Progress(console=Console(stderr=True), transient=True, disable=json) as progress:
        bar = progress.add_task("listing", total=None)
        while True:
            operation = app.monitor.bulk_operation(operation_id)
            if operation is None or operation.state not in (BulkState.LISTING, BulkState.WORKING):
                break
            progress.update(
                bar, total=operation.total, completed=operation.tried, description=operation.state
            )
            if not runner.run_once():
                time.sleep(runner.pause_seconds)
    if operation is None:
        raise typer.Exit(1)
    if json:
        print_json(operation_shape(operation))
    else:
        print_facts(_facts(operation))
        if operation.state is BulkState.WAITING:
            typer.echo(f"the rest waits: latchwork operations continue {operation_id}")


def _filter(
    states: list[JobState] | None,
    queue: str | None,
    wire_name: str | None,
    tag: str | None,
    *,
    everything: bool,
) -> JobFilter:
    """The filter that the options make; all jobs only if that is what was written."""
    chosen = JobFilter(tuple(states or ()), queue, wire_name, tag_of(tag))
    if chosen == JobFilter() and not everything:
        raise InvalidValue("filter", "is empty: name a state, queue, wire name or tag, or write "
                           "--everything")  # fmt: skip
    return chosen


def _facts(operation: BulkOperation) -> list[tuple[str, object]]:
    return [
        ("operation", operation.id),
        ("action", operation.action.value),
        ("state", operation.state.value),
        ("asked by", operation.actor),
        ("jobs", operation.total if operation.total is not None else operation.listed),
        *((outcome.replace("_", " "), count) for outcome, count in operation.outcomes.items()),
        ("stopped by", operation.stopped_by),
    ]


def _told(outcome: BulkOutcome, operation_id: UUID) -> None:
    if outcome is BulkOutcome.NOT_FOUND:
        complain(f"operation {operation_id} is not stored here")
    elif outcome is BulkOutcome.REFUSED:
        complain(f"operation {operation_id} has ended, or nothing of it waits: refused")
    else:
        return
    raise typer.Exit(1)

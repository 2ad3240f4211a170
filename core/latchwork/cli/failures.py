"""``latchwork failures``: failed jobs by cause, and requeueing one cause's jobs."""

from typing import Annotated

import typer

from latchwork.bulk_shapes import group_shape
from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.bulk import work_off
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_json, print_table
from latchwork.maintenance.failure_grouper import FailureGrouper

Key = Annotated[str, typer.Argument(metavar="KEY", help="A group's key, as `list` shows it.")]
All = Annotated[bool, typer.Option("--all", help="All at once, instead of one first.")]

command = typer.Typer()
failures = typer.Typer(help="Look at failed jobs by cause, and requeue one cause's.")
command.add_typer(failures, name="failures")


@failures.command("list")
def list_failures(
    database: DatabaseUrl,
    *,
    limit: Annotated[int, typer.Option(help="Groups on the page, at most 50.")] = 25,
    page: Annotated[str | None, typer.Option(help="Another page: the cursor `next`.")] = None,
    json: AsJson = False,
) -> None:
    """List causes of failure, those that failed last first."""
    with opened(database) as app:
        # Where no node runs, nobody else sorts what has failed.
        while FailureGrouper(app.database).run_once():
            pass
        found = app.monitor.failures(page, limit=limit)
    if json:
        groups = [group_shape(group) for group in found.groups]
        print_json({"groups": groups, "next": found.next})
        return
    headings = ("key", "jobs", "wire name", "cause", "message", "last seen")
    print_table(
        headings,
        [
            (group.key, group.count, group.wire_name, group.cause_type or group.cause_code,
             group.message, group.last_seen_at)
            for group in found.groups
        ],
    )  # fmt: skip
    if found.next:
        typer.echo(f"more: --page {found.next}")


@failures.command("requeue")
def requeue(
    key: Key, database: DatabaseUrl, actor: Actor, *, everything: All = False, json: AsJson = False
) -> None:
    """Requeue one job of a cause first; the rest follows with `latchwork operations continue`."""
    with opened(database) as app:
        if app.monitor.failure_group(key) is None:
            complain(f"there is no group of failures {key}")
            raise typer.Exit(1)
        operation = app.operator.requeue_group(key, actor=actor, canary=not everything)
        work_off(app, operation.id, json=json)

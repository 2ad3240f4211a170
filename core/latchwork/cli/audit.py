"""``latchwork audit``: who did what to what, and when."""

import json as json_text
from typing import Annotated

import typer

from latchwork.audit_views import AuditFilter
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import print_json, print_table
from latchwork.operator_shapes import audit_page_shape

command = typer.Typer()


@command.command()
def audit(
    database: DatabaseUrl,
    *,
    actor: Annotated[str | None, typer.Option(help="Only by this actor.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action.")] = None,
    subject_kind: Annotated[
        str | None, typer.Option("--kind", help="Only on this kind of subject: job, queue, ...")
    ] = None,
    subject: Annotated[str | None, typer.Option(help="Only on the subject of this name.")] = None,
    limit: Annotated[int, typer.Option(help="Rows on the page, at most 200.")] = 50,
    before: Annotated[
        int | None, typer.Option("--before", metavar="N", help="Only rows older than row N.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List operator actions, newest first."""
    chosen = AuditFilter(actor, action, subject_kind, subject)
    with opened(database) as app:
        page = app.monitor.audit_page(chosen, before=before, limit=limit)
    if json:
        print_json(audit_page_shape(page))
        return
    headings = ("#", "time", "actor", "action", "on", "detail")
    rows = [
        (
            row.id,
            row.at,
            row.actor,
            row.action,
            f"{row.subject_kind} {row.subject}",
            json_text.dumps(row.detail, ensure_ascii=False),
        )
        for row in page.rows
    ]
    print_table(headings, rows)
    if page.older is not None:
        typer.echo(f"more: --before {page.older}")

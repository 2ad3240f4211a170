"""``latchwork queues``: look at queues, pause and resume them, limit how many of their jobs run."""

from collections.abc import Callable
from typing import Annotated

import typer

from latchwork.application import Latchwork
from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import print_json, print_table
from latchwork.decisions.states import JobState
from latchwork.errors import InvalidValue
from latchwork.json_shapes import queue_shape
from latchwork.operator_shapes import queue_preview_shape, queue_result_shape
from latchwork.queue_views import QueueOutcome, QueuePreview, QueueResult

NO_LIMIT = "none"

Names = Annotated[list[str], typer.Argument(metavar="QUEUE...", help="Names of queues.")]
Preview = Annotated[bool, typer.Option("--preview", help="Change nothing, only say.")]

command = typer.Typer()
queues = typer.Typer(help="Look at queues, pause, resume and limit them.")
command.add_typer(queues, name="queues")


@queues.command("list")
def list_queues(database: DatabaseUrl, *, json: AsJson = False) -> None:
    """List queues: their depth, their gates and who serves them."""
    with opened(database) as app:
        found = app.monitor.queues()
    if json:
        print_json([queue_shape(queue) for queue in found])
        return
    headings = ("queue", *(state.label for state in JobState), "due", "limit", "paused by", "nodes")
    rows = [
        (
            queue.name,
            *(queue.counts.get(state, 0) for state in JobState),
            queue.due,
            queue.concurrency_limit,
            queue.paused_by,
            len(queue.served_by),
        )
        for queue in found
    ]
    print_table(headings, rows)


@queues.command()
def pause(
    names: Names, database: DatabaseUrl, actor: Actor, *, preview: Preview = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Let no job of these queues start any more; running ones run on."""
    with opened(database) as app:
        if preview:
            _tell(names, app.operator.preview_pause_queue, json=json)
        else:
            _act(names, lambda name: app.operator.pause_queue(name, actor=actor), json=json)


@queues.command()
def resume(
    names: Names, database: DatabaseUrl, actor: Actor, *, preview: Preview = False,
    json: AsJson = False,
) -> None:  # fmt: skip
    """Let jobs of these queues start again."""
    with opened(database) as app:
        if preview:
            _tell(names, app.operator.preview_resume_queue, json=json)
        else:
            _act(names, lambda name: app.operator.resume_queue(name, actor=actor), json=json)


@queues.command()
def limit(
    name: Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")],
    value: Annotated[
        str, typer.Argument(metavar="N", help="How many of its jobs may run at once, or none.")
    ],
    database: DatabaseUrl,
    actor: Actor,
    *,
    preview: Preview = False,
    json: AsJson = False,
) -> None:
    """Limit how many jobs of a queue run at once, over all nodes; "none" lifts the limit."""
    number = _number(value)
    with opened(database) as app:
        if preview:
            _tell([name], lambda one: app.operator.preview_set_limit(one, number), json=json)
        else:
            _act([name], lambda one: _set_limit(app, one, number, actor), json=json)


def _set_limit(app: Latchwork, name: str, number: int | None, actor: str) -> QueueResult:
    return app.operator.set_limit(name, number, actor=actor)


def _number(value: str) -> int | None:
    if value == NO_LIMIT:
        return None
    try:
        return int(value)
    except ValueError:
        raise InvalidValue("limit", f"must be a whole number or {NO_LIMIT!r}") from None


def _act(names: list[str], act: Callable[[str], QueueResult], *, json: bool) -> None:
    results = [act(name) for name in dict.fromkeys(names)]
    if json:
        print_json([queue_result_shape(result) for result in results])
        return
    for result in results:
        typer.echo(f"{result.queue} {_done(result)}")


def _done(result: QueueResult) -> str:
    match result.outcome:
        case QueueOutcome.PAUSED:
            return "paused"
        case QueueOutcome.RESUMED:
            return "resumed"
        case QueueOutcome.LIMITED:
            return f"limited to {result.concurrency_limit}"
        case QueueOutcome.UNLIMITED:
            return "has no limit any more"
        case QueueOutcome.UNCHANGED:
            return "was so already: nothing changed"


def _tell(names: list[str], tell: Callable[[str], QueuePreview], *, json: bool) -> None:
    previews = {name: tell(name) for name in dict.fromkeys(names)}
    if json:
        print_json([{"queue": name} | queue_preview_shape(one) for name, one in previews.items()])
        return
    for name, one in previews.items():
        typer.echo(f"{name}: {one.reason}")

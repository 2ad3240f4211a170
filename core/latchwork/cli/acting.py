"""``latchwork requeue`` and ``latchwork cancel``."""

from collections.abc import Callable
from typing import Annotated
from uuid import UUID

import typer

from latchwork.action_results import CancelOutcome, CancelResult, RequeueOutcome, RequeueResult
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl, JobIds, shell_actor
from latchwork.cli.printing import complain, print_json

Result = CancelResult | RequeueResult

Actor = Annotated[
    str,
    typer.Option(
        "--actor", default_factory=shell_actor, help="Who acts, for the audit trail.",
        show_default="cli:USER",
    ),
]  # fmt: skip

DONE = {
    CancelOutcome.CANCELLED: "cancelled",
    CancelOutcome.REQUESTED: "asked to stop; its worker hears of it with the next heartbeat",
    RequeueOutcome.REQUEUED: "requeued, due now",
}

command = typer.Typer()


@command.command()
def requeue(ids: JobIds, database: DatabaseUrl, actor: Actor, json: AsJson = False) -> None:  # noqa: FBT002
    """Give Dead-Lettered or Quarantined jobs a new life, due now."""
    with opened(database) as app:
        _act(ids, lambda job_id: app.operator.requeue(job_id, actor=actor), json=json)


@command.command()
def cancel(ids: JobIds, database: DatabaseUrl, actor: Actor, json: AsJson = False) -> None:  # noqa: FBT002
    """Cancel waiting jobs at once, and ask running ones to stop."""
    with opened(database) as app:
        _act(ids, lambda job_id: app.operator.cancel(job_id, actor=actor), json=json)


def _act(ids: list[UUID], act: Callable[[UUID], Result], *, json: bool) -> None:
    results = []
    for job_id in dict.fromkeys(ids):
        result = act(job_id)
        results.append((job_id, result))
        if not json:
            _say(job_id, result)
    if json:
        print_json([_shape(job_id, result) for job_id, result in results])
    if any(result.outcome not in DONE for _, result in results):
        raise typer.Exit(1)


def _say(job_id: UUID, result: Result) -> None:
    done = DONE.get(result.outcome)
    if done:
        typer.echo(f"{job_id} {done}")
    elif result.state is None:
        complain(f"job {job_id} is not stored here")
    else:
        complain(f"job {job_id} is {result.state.label}: refused")


def _shape(job_id: UUID, result: Result) -> dict[str, str | None]:
    state = result.state.value if result.state else None
    return {"id": str(job_id), "outcome": result.outcome.value, "state": state}

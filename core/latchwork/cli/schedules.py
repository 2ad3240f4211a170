"""``latchwork schedules``: what is scheduled, what became of its ticks, and a run just now."""

from typing import Annotated

import typer

from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_facts, print_json, print_table, text
from latchwork.schedule_shapes import (
    schedule_shape,
    tick_shape,
    trigger_preview_shape,
    trigger_shape,
)
from latchwork.schedule_views import (
    ScheduleView,
    Tick,
    TriggerOutcome,
    TriggerPreview,
    TriggerResult,
)

Id = Annotated[str, typer.Argument(metavar="SCHEDULE", help="A schedule's id.")]

command = typer.Typer()
schedules = typer.Typer(help="Look at recurring schedules and trigger them.")
command.add_typer(schedules, name="schedules")


@schedules.command("list")
def list_schedules(database: DatabaseUrl, *, json: AsJson = False) -> None:
    """List schedules: when they tick, and what became of the last tick."""
    with opened(database) as app:
        found = app.monitor.schedules()
    if json:
        print_json([schedule_shape(one) for one in found])
        return
    headings = ("schedule", "job", "cron", "zone", "next tick", "last tick", "outcome")
    rows = [
        (
            one.id,
            one.schedule.wire_name,
            one.schedule.cron,
            one.schedule.zone,
            one.next_tick_at,
            one.last_tick and one.last_tick.at,
            one.last_tick and one.last_tick.outcome.label,
        )
        for one in found
    ]
    print_table(headings, rows)


@schedules.command()
def show(
    schedule_id: Id,
    database: DatabaseUrl,
    *,
    limit: Annotated[int, typer.Option(help="How many of the last ticks.", min=1)] = 20,
    json: AsJson = False,
) -> None:
    """Show one schedule, its next ticks and its last ones."""
    with opened(database) as app:
        found = app.monitor.schedule(schedule_id)
        ticks = app.monitor.schedule_ticks(schedule_id, limit=limit)
    if found is None:
        complain(f"schedule {schedule_id} is not known here")
        raise typer.Exit(1)
    if json:
        print_json(schedule_shape(found) | {"ticks": [tick_shape(one) for one in ticks]})
    else:
        _print_schedule(found)
        _print_ticks(ticks)


@schedules.command()
def trigger(
    schedule_id: Id,
    database: DatabaseUrl,
    actor: Actor,
    *,
    preview: Annotated[bool, typer.Option("--preview", help="Change nothing, only say.")] = False,
    json: AsJson = False,
) -> None:
    """Enqueue a job of the schedule now; its ticks stay as they are."""
    with opened(database) as app:
        if preview:
            _tell(schedule_id, app.operator.preview_trigger_schedule(schedule_id), json=json)
        else:
            _report(schedule_id, app.operator.trigger_schedule(schedule_id, actor=actor), json=json)


def _tell(schedule_id: str, preview: TriggerPreview | None, *, json: bool) -> None:
    if preview is None:
        complain(f"schedule {schedule_id} is not known here")
        raise typer.Exit(1)
    if json:
        print_json({"id": schedule_id} | trigger_preview_shape(preview))
    else:
        typer.echo(f"{schedule_id}: {preview.reason}")


def _report(schedule_id: str, result: TriggerResult, *, json: bool) -> None:
    if json:
        print_json(trigger_shape(schedule_id, result))
    elif result.outcome is TriggerOutcome.TRIGGERED:
        typer.echo(f"{schedule_id} triggered: job {result.job_id}")
    elif result.outcome is TriggerOutcome.REFUSED:
        state = result.state.label if result.state else "live"
        complain(f"{schedule_id} may not overlap: its last job {result.job_id} is {state}")
    else:
        complain(f"schedule {schedule_id} is not known here")
    if result.outcome is not TriggerOutcome.TRIGGERED:
        raise typer.Exit(1)


def _print_schedule(one: ScheduleView) -> None:
    schedule = one.schedule
    print_facts(
        (
            ("id", schedule.id),
            ("job", schedule.wire_name),
            ("queue", schedule.queue),
            ("cron", schedule.cron),
            ("zone", schedule.zone),
            ("in words", one.words),
            ("missed ticks", schedule.catch_up.value),
            ("may overlap", "yes" if schedule.may_overlap else "no"),
            ("created", one.created_at),
            ("changed", one.updated_at),
            ("decided up to", one.cursor_at),
            ("next ticks", ", ".join(text(at) for at in one.next_ticks)),
        )
    )


def _print_ticks(ticks: tuple[Tick, ...]) -> None:
    if not ticks:
        return
    typer.echo()
    headings = ("tick", "outcome", "ticks", "decided", "job", "state")
    rows = [
        (
            one.at,
            one.outcome.label,
            one.count,
            one.decided_at,
            one.job_id,
            one.job_state and one.job_state.label,
        )
        for one in ticks
    ]
    print_table(headings, rows)

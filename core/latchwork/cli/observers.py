"""``latchwork observers``: where they are, what they could not deliver, and what to do about it."""

from typing import Annotated

import typer

from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_facts, print_json, print_table
from latchwork.observer_shapes import dead_delivery_shape, observer_shape
from latchwork.observer_views import (
    DeadDelivery,
    ObserverState,
    ObserverView,
    ReplayOutcome,
    RetireOutcome,
)

command = typer.Typer()
observers = typer.Typer(help="Look at transition observers and act on them.")
command.add_typer(observers, name="observers")

Name = Annotated[str, typer.Argument(metavar="NAME", help="An observer's name.")]


@observers.command("list")
def list_observers(database: DatabaseUrl, *, json: AsJson = False) -> None:
    """List observers: how far behind each is, what waits and what is dead."""
    with opened(database) as app:
        found, now = app.monitor.observers(), app.database.now()
    if json:
        print_json([observer_shape(one, now) for one in found])
        return
    headings = ("observer", "watches", "state", "lag", "pending", "dead", "delivered", "last")
    rows = [
        (
            one.name,
            _watched(one),
            "behind" if one.is_behind(now) else one.state.value,
            one.lag if one.state is ObserverState.ACTIVE else None,
            one.pending,
            one.dead,
            one.delivered,
            one.last_delivered_at,
        )
        for one in found
    ]
    print_table(headings, rows)


@observers.command("show")
def show_observer(name: Name, database: DatabaseUrl, *, json: AsJson = False) -> None:
    """Show one observer and its newest dead deliveries."""
    with opened(database) as app:
        found, now = app.monitor.observer(name), app.database.now()
        dead = app.monitor.dead_deliveries(name)
    if found is None:
        complain(f"observer {name} is not known here")
        raise typer.Exit(1)
    if json:
        shape = observer_shape(found, now)
        print_json(shape | {"dead_deliveries": [dead_delivery_shape(one) for one in dead]})
    else:
        _print_observer(found)
        _print_dead(dead)


@observers.command()
def retire(name: Name, database: DatabaseUrl, actor: Actor, json: AsJson = False) -> None:  # noqa: FBT002
    """Call an observer no more, for good, and give up what it was not called for yet."""
    with opened(database) as app:
        answer = app.operator.retire_observer(name, actor=actor)
    if json:
        print_json({"name": name, "outcome": answer.outcome.value, "given_up": answer.given_up})
    elif answer.outcome is RetireOutcome.RETIRED:
        typer.echo(f"{name} retired; deliveries given up: {answer.given_up}")
    elif answer.outcome is RetireOutcome.REFUSED:
        complain(f"observer {name} was retired before")
    else:
        complain(f"observer {name} is not known here")
    if answer.outcome is not RetireOutcome.RETIRED:
        raise typer.Exit(1)


@observers.command()
def replay(
    deliveries: Annotated[
        list[int], typer.Argument(metavar="DELIVERY...", help="Numbers of dead deliveries.")
    ],
    database: DatabaseUrl,
    actor: Actor,
    json: AsJson = False,  # noqa: FBT002
) -> None:
    """Let dead deliveries be tried again."""
    with opened(database) as app:
        answers = [
            (number, app.operator.replay_delivery(number, actor=actor))
            for number in dict.fromkeys(deliveries)
        ]
    if json:
        print_json(
            [
                {"id": number, "outcome": answer.outcome.value, "observer": answer.observer}
                for number, answer in answers
            ]
        )
    for number, answer in () if json else answers:
        if answer.outcome is ReplayOutcome.REPLAYED:
            typer.echo(f"{number} is tried again by {answer.observer}")
        elif answer.outcome is ReplayOutcome.REFUSED:
            complain(f"delivery {number} is not dead: it is still being tried")
        else:
            complain(f"delivery {number} is not known here")
    if any(answer.outcome is not ReplayOutcome.REPLAYED for _, answer in answers):
        raise typer.Exit(1)


def _watched(one: ObserverView) -> str:
    parts = [", ".join(state.label for state in one.states)]
    parts += [f"of {one.wire_name}"] if one.wire_name else []
    parts += [f"in {one.queue}"] if one.queue else []
    return " ".join(parts)


def _print_observer(one: ObserverView) -> None:
    print_facts(
        (
            ("name", one.name),
            ("watches", _watched(one)),
            ("state", one.state.value),
            ("registered", one.registered_at),
            ("last registered", one.last_seen_at),
            ("retired", one.retired_at),
            ("retired by", one.retired_by),
            ("served by", one.owner),
            ("place", one.token),
            ("rows behind", one.lag),
            ("oldest of them", one.oldest_unpassed_at),
            ("pending", one.pending),
            ("backing off", one.backing_off),
            ("dead", one.dead),
            ("delivered", one.delivered),
            ("last delivered", one.last_delivered_at),
            ("skipped", one.skipped),
            ("last error", one.last_error),
            ("last error at", one.last_error_at),
        )
    )


def _print_dead(dead: tuple[DeadDelivery, ...]) -> None:
    if not dead:
        return
    typer.echo()
    headings = ("delivery", "dead since", "job", "state", "failures", "error")
    rows = [
        (
            one.id,
            one.dead_at,
            one.transition.job_id,
            one.transition.state.label,
            one.failures,
            one.error,
        )
        for one in dead
    ]
    print_table(headings, rows)

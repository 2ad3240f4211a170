"""``latchwork history``: how much the transition log keeps."""

from typing import Annotated

import typer

from latchwork.cli.acting import Actor
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_facts, print_json
from latchwork.decisions.states import HistoryPolicy
from latchwork.observer_shapes import history_policy_shape
from latchwork.observer_views import HistoryOutcome

command = typer.Typer()
history = typer.Typer(help="Look at the job history policy and change it.")
command.add_typer(history, name="history")


@history.command("show")
def show_policy(database: DatabaseUrl, *, json: AsJson = False) -> None:
    """Show how much the transition log keeps, and since when."""
    with opened(database) as app:
        found = app.monitor.history_policy()
    if json:
        print_json(history_policy_shape(found))
    else:
        print_facts((("policy", found.policy.value), ("since", found.since)))


@history.command("set")
def set_policy(
    policy: Annotated[HistoryPolicy, typer.Argument(help="What is kept from now on.")],
    database: DatabaseUrl,
    actor: Actor,
    json: AsJson = False,  # noqa: FBT002
) -> None:
    """Set how much the transition log keeps from now on, for the whole database."""
    with opened(database) as app:
        answer = app.operator.set_history_policy(policy, actor=actor)
    refused = answer.outcome is HistoryOutcome.REFUSED
    if json:
        print_json(
            {
                "outcome": answer.outcome.value,
                "policy": answer.policy.value,
                "observers": list(answer.observers),
            }
        )
    elif refused:
        complain(f"refused: these observers need the log: {', '.join(answer.observers)}")
    else:
        typer.echo(f"the history policy is {answer.policy.value}")
    if refused:
        raise typer.Exit(1)

"""``latchwork log``: the transition log, as it is and as it grows."""

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Annotated

import typer

from latchwork.application import Latchwork
from latchwork.cli.applications import opened
from latchwork.cli.options import AsJson, DatabaseUrl
from latchwork.cli.printing import complain, print_json, text
from latchwork.json_shapes import transition_shape
from latchwork.log_tail import BATCH_ROWS, LogTail, Place
from latchwork.store.transition_log import Reading, read_batch
from latchwork.views import TransitionView

BEGINNING = "0"

RowAndToken = tuple[TransitionView, str]

command = typer.Typer()


@command.command()
def log(
    database: DatabaseUrl,
    *,
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the log grows.")] = False,
    after: Annotated[
        str, typer.Option("--from", metavar="TOKEN", help="Only what comes after this place.")
    ] = BEGINNING,
    json: AsJson = False,
) -> None:
    """Print the transition log, oldest first, one row a line.

    With --json every row has a "token": the --from that goes on after it.
    """
    with opened(database) as app, suppress(KeyboardInterrupt):
        for row, token in _follow(app, after) if follow else _read(app, after):
            if json:
                print_json(transition_shape(row) | {"token": token})
            else:
                _print_row(row)


def _read(app: Latchwork, after: str) -> Iterator[RowAndToken]:
    reading = Reading.at(Place.parse(after))
    while batch := app.database.read(read_batch, reading, limit=BATCH_ROWS):
        _tell_what_is_gone(after, batch.gone_before)
        for row, place in batch.places(reading):
            yield row, str(place)
        reading = batch.reading


def _follow(app: Latchwork, after: str) -> Iterator[RowAndToken]:
    with closing(LogTail(app, after=after)) as tail:
        for row in tail:
            _tell_what_is_gone(after, tail.gone_before)
            tail.gone_before = None
            yield row, tail.token


def _tell_what_is_gone(after: str, gone_before: int | None) -> None:
    """Who asks for a place of their own is told of missing rows; the beginning is what is kept."""
    if gone_before is not None and after != BEGINNING:
        complain(f"rows before position {gone_before} are gone")


def _print_row(row: TransitionView) -> None:
    before = row.previous_state.label if row.previous_state else "enqueued"
    typer.echo(
        f"{row.position:>8}  {text(row.at)}  {row.job_id}  {row.wire_name}  "
        f"{before} -> {row.state.label}  attempt {row.attempt}"
    )

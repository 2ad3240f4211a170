"""``latchwork demo``: everything at work at once, on SQLite, to be looked at in the browser."""

import logging
import os
import signal
import socket
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from latchwork.cli.serving import Port
from latchwork.demo.place import DEFAULT_DATABASE, Place
from latchwork.errors import InvalidValue

HOST = "127.0.0.1"

command = typer.Typer()

DatabaseFile = Annotated[
    Path, typer.Option("--database", metavar="FILE", help="The demo's SQLite file.")
]
Directory = Annotated[
    Path | None,
    typer.Option(
        exists=True, file_okay=False, metavar="DIR",
        help="The folder to take stock of; Python's standard library by default.",
    ),
]  # fmt: skip
Keep = Annotated[bool, typer.Option("--keep", help="Go on with the file of an earlier demo.")]


@command.command()
def demo(
    *,
    port: Port = 8321,
    database: DatabaseFile = DEFAULT_DATABASE,
    directory: Directory = None,
    keep: Keep = False,
) -> None:
    """Serve the console over real work: an inventory of files, a small shop, a node that dies."""
    with _stop_on_signals() as stop:
        _check_port_is_free(port)
        place = Place(database)
        folder = (directory or Path(sysconfig.get_path("stdlib"))).resolve()
        with place.taken(keep=keep):
            # The demo's application and its nodes find their database as any application may.
            os.environ["LATCHWORK_DATABASE_URL"] = place.url
            from latchwork.demo.supervisor import run_demo

            logging.basicConfig(filename=place.node_log, level=logging.WARNING)
            run_demo(
                place, folder, port, stop, lambda address: _say(address, folder, place.results)
            )
    typer.echo("stopped")


@contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    stop = threading.Event()

    def handle(_signal: int, _frame: FrameType | None) -> None:
        if not stop.is_set():
            stop.set()
            typer.echo("stopping")

    signals = (signal.SIGINT, signal.SIGTERM)
    previous = {one: signal.signal(one, handle) for one in signals}
    try:
        yield stop
    finally:
        for one, handler in previous.items():
            signal.signal(one, handler)


def _check_port_is_free(port: int) -> None:
    """Look before anything is started or replaced. Raises InvalidValue."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise InvalidValue("--port", f"{port} cannot be used: {error.strerror}") from error


def _say(address: str, folder: Path, results: Path) -> None:
    pages = Table.grid(padding=(0, 2))
    pages.add_column(style="bold")
    pages.add_row("Overview", "orders come and go; some fail now and then, some for good")
    pages.add_row("Log", "every transition, as it happens")
    pages.add_row("Jobs", "open a hash-files job and its graph; cancel an export-orders")
    pages.add_row("Workflows", "a month-close fails; retry it once the bank's statement is there")
    pages.add_row("Queues", "newsletters are paused: resume them; exports have a limit")
    pages.add_row("Schedules", "a tally every half minute, the books at night")
    pages.add_row("Observers", "an alarm for every job that is given up")
    pages.add_row("Nodes", "one of the two is killed every minute; its jobs go on elsewhere")
    lines = Group(
        f"[bold]Latchwork demo[/bold]  [link={address}]{address}[/link]",
        "",
        pages,
        "",
        f"Takes stock of {escape(str(folder))} and writes to {escape(str(results))}.",
        "Ctrl-C stops everything.",
    )
    Console(highlight=False, emoji=False).print(Padding(lines, (1, 2)))

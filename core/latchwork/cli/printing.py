"""How commands print: tables for people, JSON for programs, one line for a problem."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

WIDTH_WHEN_PIPED = 240


def print_json(value: Any) -> None:
    """One JSON value on a line of its own."""
    typer.echo(json.dumps(value))


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows under headings; an empty table says so."""
    table = Table(*headings, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(text(cell) for cell in row))
    if table.row_count:
        _console().print(table)
    else:
        typer.echo("nothing to show")


def print_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one pair a line; what has no value is left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts:
        if value not in (None, "", ()):
            table.add_row(name, text(value))
    _console().print(table)


def text(value: object) -> str:
    """A cell's text: times in UTC to the second, nothing as a dash."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}Z"
    return str(value)


def complain(sentence: str) -> None:
    """One line on standard error."""
    line = " ".join(sentence.split())
    typer.echo(f"latchwork: {line}", err=True)


def _console() -> Console:
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH_WHEN_PIPED
    return console

"""Options that several commands share."""

import getpass
import os
from typing import Annotated
from uuid import UUID

import typer

DatabaseUrl = Annotated[
    str,
    typer.Option(
        "--database",
        envvar="LATCHWORK_DATABASE_URL",
        metavar="URL",
        help="sqlite:///FILE or postgresql://...",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JobId = Annotated[UUID, typer.Argument(metavar="ID", help="A job's id.")]
JobIds = Annotated[list[UUID], typer.Argument(metavar="ID...", help="Ids of jobs.")]
AppName = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="Where the application is, as in shop:app.")
]


def shell_actor() -> str:
    """Who acts, where nobody is named: ``cli:`` and the user of the operating system."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a user id without a name, as in some containers
        user = str(os.getuid())
    return f"cli:{user}"
